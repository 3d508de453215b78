//! What is told of the path while it works, and while it does not.

mod collector;
mod metrics;
mod pages;
mod traces;
