//! Reconciliation: whether what follows from facts is what it must be, and the repair of what is not.
//!
//! A feature says how its projection is compared with its facts and which events put right what differs
//! ([`Reconciled`]); this room runs the comparisons of all features, beside its own of the outbox with the log.
//!
//! What is only on its way is no difference: it is told apart, and counted as lagging.

mod compared;

pub use compared::{Compared, Comparison, Difference, Reconciled};
