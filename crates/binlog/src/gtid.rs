//! Global transaction ids: how far a stream has come, independent of files and servers.
//!
//! - [`mariadb`]: `domain-server-sequence`, one for each domain.
//! - [`mysql`]: sets of `uuid:interval`, with tags.

pub mod mariadb;
pub mod mysql;
