//! Who is told when a key dies.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tidings_backbone::{alerts, relay::sink::webhook};

use super::{
    secret::{Capability, Secret},
    values::{MS_MAX, between, is_safe_to_fetch, wrong},
};
use crate::{Error, Result};

const SECRET_RULE: &str = "must be `whsec_` and the Base64 of 24 to 64 bytes";

/// `[alerts]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alerts {
    /// Where it is told; empty for nowhere.
    pub webhook_url: Capability,
    /// The secret that is shared with the receiver.
    pub webhook_secret: Secret,
    /// File with the secret.
    pub webhook_secret_file: PathBuf,
    /// Time that the receiver has to answer, in milliseconds.
    pub webhook_timeout_ms: u64,
}

impl Alerts {
    pub(super) fn check(&self) -> Result<()> {
        between("alerts.webhook_timeout_ms", self.webhook_timeout_ms, 1, MS_MAX)?;
        let has_file = !self.webhook_secret_file.as_os_str().is_empty();
        if has_file && !self.webhook_secret.is_empty() {
            let reason = "is set beside `alerts.webhook_secret`; one of them is enough";
            return Err(wrong("alerts.webhook_secret_file", reason.to_owned()));
        }
        if self.webhook_url.is_empty() {
            return Ok(());
        }
        let url = reqwest::Url::parse(self.webhook_url.reveal())
            .map_err(|error| wrong("alerts.webhook_url", error.to_string()))?;
        if !is_safe_to_fetch(&url) || !url.username().is_empty() || url.password().is_some() {
            let reason = "must be an https URL, or an http URL of this machine (localhost, 127.0.0.1, [::1]), \
                          without a user or a password";
            return Err(wrong("alerts.webhook_url", reason.to_owned()));
        }
        if !has_file && webhook::Secret::parse(self.webhook_secret.reveal()).is_none() {
            return Err(wrong("alerts.webhook_secret", SECRET_RULE.to_owned()));
        }
        Ok(())
    }

    /// What is to be told to whom, if anything.
    ///
    /// # Errors
    /// When the file of the secret cannot be read, or holds none.
    pub fn options(&self) -> Result<Option<alerts::Options>> {
        if self.webhook_url.is_empty() {
            return Ok(None);
        }
        let file: &Path = &self.webhook_secret_file;
        let (key, text) = if file.as_os_str().is_empty() {
            ("alerts.webhook_secret", self.webhook_secret.reveal().to_owned())
        } else {
            let read = std::fs::read_to_string(file);
            ("alerts.webhook_secret_file", read.map_err(Error::file("reading the secret in", file))?)
        };
        let secret = webhook::Secret::parse(text.trim()).ok_or_else(|| wrong(key, SECRET_RULE.to_owned()))?;
        let timeout = Duration::from_millis(self.webhook_timeout_ms);
        Ok(Some(alerts::Options { url: self.webhook_url.reveal().to_owned(), secret, timeout }))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{load, masked};

    #[test]
    fn of_a_receiver_only_its_host_is_shown() {
        let url = "https://hooks.example:8443/services/hunter1/hunter2?key=hunter3#hunter4";
        let secret = format!("whsec_{}", "A".repeat(32));
        let variables = [("TIDINGS__ALERTS__WEBHOOK_URL", url), ("TIDINGS__ALERTS__WEBHOOK_SECRET", secret.as_str())];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = load(None, variables).unwrap();
        assert_eq!(config.alerts.webhook_url.reveal(), url);
        for shown in [masked(&config).unwrap(), format!("{:?}", config.alerts)] {
            assert!(shown.contains("https://hooks.example:8443/***") && !shown.contains("hunter"), "{shown}");
        }
    }
}
