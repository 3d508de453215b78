//! The commands on a data folder, with and without a server on it.

mod asked;
mod demo;
mod events;
mod folder;
mod import;
mod mistyped;
mod open_files;
mod relay_alone;
mod relay_page;
mod relay_refused;
mod unread;
mod verify;
