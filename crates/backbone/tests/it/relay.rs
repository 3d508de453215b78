//! The relay's source against real servers: what is committed comes, once, in order, whatever happens.

mod failover;
mod hard;
mod large;
mod names;
mod outage;
mod path;
mod poll;
mod quiet;
mod redis;
mod refusals;
mod servers;
mod statements;
mod steps;
mod tables;
mod transactions;
mod whole;
mod wire;
mod world;
