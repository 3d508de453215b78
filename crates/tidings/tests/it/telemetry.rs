//! What is told of the path while it works, and while it does not.

mod collector;
mod delays;
mod metrics;
mod ops;
mod pages;
mod traces;
