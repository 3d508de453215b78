//! The relay's source against real servers: what is committed comes, once, in order, whatever happens.

mod failover;
mod outage;
mod path;
mod poll;
mod servers;
mod steps;
mod tables;
mod transactions;
mod whole;
mod wire;
mod world;
