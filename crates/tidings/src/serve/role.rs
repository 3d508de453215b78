//! What a process does of all that there is to do.

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything: the only role of the embedded mode.
    All,
    /// HTTP and the ledgers.
    Api,
    /// Carries committed events to the log.
    Relay,
    /// Maintains projections.
    Project,
}

impl Role {
    /// Whether it serves the API.
    pub fn has_api(self) -> bool {
        matches!(self, Self::All | Self::Api)
    }

    /// Whether it carries events to a log that is not the outbox.
    pub fn has_relay(self) -> bool {
        matches!(self, Self::All | Self::Relay)
    }

    /// Whether it runs projectors.
    pub fn has_projectors(self) -> bool {
        matches!(self, Self::All | Self::Project)
    }

    /// The command of the role.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "serve",
            Self::Api => "api",
            Self::Relay => "relay",
            Self::Project => "project",
        }
    }
}
