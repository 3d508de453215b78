//! Reconciliation: whether what follows from facts is what it must be, and the repair of what is not.
//!
//! A feature says how its projection is compared with its facts and which events put right what differs
//! ([`Reconciled`]); this room runs the comparisons of all features, beside its own of the outbox with the log.
//!
//! What is only on its way is no difference: it is told apart, and counted as lagging.
//!
//! A run is a row that any process shows. It is begun on schedule or because somebody asks for it, and done by one
//! process, the [`Reconciler`], which keeps it by a lease: who is killed is replaced, and the run begins anew. One
//! runs or repairs at a time, over all processes. Differences that events can put right are kept with the last run;
//! a repair hands them to their feature, batch by batch, each batch with its events and its line in the audit in
//! one transaction. So whoever is killed while he repairs leaves what is not repaired yet, and nothing twice.
//!
//! In reading order: `compared` is what features say, `run` what is stored of a run, `store` how; `control` is what an
//! operator may ask for; `runner` does it, `outcome` makes the checks, `repairing` is what follows; `lateness`,
//! `sequence` and `shards` are this room's own checks; `waiting` tells what cannot have been applied yet.

mod compared;
mod control;
mod lateness;
mod outcome;
mod repairing;
mod run;
mod runner;
mod sequence;
mod shards;
mod store;
mod waiting;

pub use compared::{Compared, Comparison, Difference, Reconciled};
pub use control::{Reconciliations, Refusal};
pub use run::{Found, Repair, RepairState, Run, State, Trigger};
pub use runner::{Options, Reconciler};
pub use waiting::Waiting;
