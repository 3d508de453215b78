//! The registry of users: id, handle, dense ordinal. It is filled by an admin and by import until
//! identity comes.

pub mod facts;
mod handle;
mod id;
pub mod read;

use tidings_event::Timestamp;

pub use handle::{Handle, InvalidHandle};
pub use id::UserId;

/// A registered user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The identity, chosen by whoever registered the user or given by the registry.
    pub user_id: UserId,
    /// The unique name.
    pub handle: Handle,
    /// Position in the dense numbering of users, from 0, without gaps.
    pub ordinal: u32,
    /// When the user was registered.
    pub created_at: Timestamp,
}
