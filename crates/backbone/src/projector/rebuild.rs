//! Rebuilding a projection: the next generation of it is built beside the one that is read, checked against
//! facts, and then readers are given it at once.
//!
//! A command writes a wish into the table `rebuild`. The processes that run the projector notice: all of them
//! apply events to the new generation, as a consumer group of its own, and one of them, the foreman, leads it
//! from state to state. Every step commits with what it did, so whoever is killed is replaced and goes on
//! where he was.
//!
//! | state | meanwhile |
//! |---|---|
//! | wished | the foreman notes where the log stands, and gives the generation its positions |
//! | seeding | he copies facts, a chunk at a time; only where the log does not reach back |
//! | applying | all processes apply events, from the noted positions |
//! | checking | it has caught up: the foreman compares it with facts, and switches |
//! | ready, failed | it is kept up to date, and waits for an operator |
//! | removing | readers are given the new one; positions, parking lot and rows of the old one go |
//! | cancelling | the same, of the new one |
//! | done, cancelled | nothing more |
//!
//! **From facts** there is neither gap nor double: positions are noted first, so what is read later has at
//! least all that was in the log then; and what is both in the facts and behind the positions has no effect
//! when it is applied, since its version is not newer.

mod catching_up;
mod check;
mod control;
mod foreman;
mod refusal;
mod removal;
mod starting;
mod store;
mod switching;

pub use check::{Check, Checked, Generations, Seeded};
pub use control::Rebuilds;
pub use refusal::Refusal;
pub use starting::Start;
pub use store::{PartPlan, Rebuild, Source, State, Wish};

pub(super) use foreman::Foreman;
pub(crate) use store::replays;
pub(super) use store::{Look, look, names_of_unfinished, take_lead, told_states};
