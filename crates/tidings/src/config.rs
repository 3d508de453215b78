//! The configuration: `tidings.default.toml` compiled in, overridden by a file and the environment.

mod alerts;
mod layers;
mod secret;
mod services;
mod telemetry;
mod values;

use std::{ffi::OsString, path::Path};

pub use alerts::Alerts;
pub use secret::{Address, Capability, Headers, Properties, Secret};
pub use services::{Database, EventFormat, Kafka, Mode, Redis, Relay, RelayMode, RelayStart};
pub use telemetry::Telemetry;
pub use values::{
    Audit, Auth, Config, Data, Events, Http, LogFormat, Logging, MissingHistory, ProjectorOptions, Rate, Reconcile,
    Relation,
};

use crate::{Error, Result};

/// Every key with its comment and default: the documentation is what applies.
pub const DEFAULTS: &str = include_str!("../../../tidings.default.toml");

/// Reads the configuration in effect: defaults, then `file`, then `environment`.
///
/// # Errors
/// When the file cannot be read or is not TOML, or a key is unknown or has a wrong value; the
/// error names the key and where it was written.
pub fn load(file: Option<&Path>, environment: impl IntoIterator<Item = (String, String)>) -> Result<Config> {
    let merged = layers::merged(file, environment)?;
    values::Config::from_table(&merged.table).map_err(|error| merged.with_origin(error))
}

/// The environment as text.
///
/// # Errors
/// When a variable that is meant for Tidings is not text. Others do not matter here.
pub fn environment(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for (name, value) in variables {
        let shown = name.to_string_lossy().into_owned();
        match (name.into_string(), value.into_string()) {
            (Ok(name), Ok(value)) => texts.push((name, value)),
            _ if shown.starts_with(layers::VARIABLE_PREFIX) => {
                let key = shown[layers::VARIABLE_PREFIX.len()..].to_ascii_lowercase().replace("__", ".");
                return Err(Error::Config { origin: shown, key, reason: "is not UTF-8".to_owned() });
            }
            _ => {}
        }
    }
    Ok(texts)
}

/// Writes the configuration in effect as TOML, with what is secret masked.
pub fn masked(config: &Config) -> Result<String> {
    // What is secret masks itself.
    toml::to_string_pretty(config).map_err(|error| Error::Usage(format!("cannot print the configuration: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_environment(variables: &[(&str, &str)]) -> Result<Config> {
        load(None, variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    fn from_file(text: &str) -> Result<Config> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tidings.toml");
        std::fs::write(&file, text).unwrap();
        load(Some(&file), [])
    }

    #[test]
    fn the_defaults_are_valid() {
        let config = from_environment(&[]).unwrap();
        assert_eq!(config.http.listen.to_string(), "127.0.0.1:7870");
        assert_eq!(config.rate.follow_capacity, 100);
    }

    #[test]
    fn every_default_key_has_a_comment_before_it() {
        let mut before = "";
        for line in DEFAULTS.lines() {
            if line.contains(" = ") && !line.starts_with('#') {
                assert!(before.starts_with('#'), "`{line}` has no comment");
            }
            before = line;
        }
    }

    #[test]
    fn the_environment_overrides_the_file_and_the_file_the_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tidings.toml");
        std::fs::write(&file, "[http]\nlisten = \"127.0.0.1:1\"\nbody_bytes_max = 2000\n").unwrap();
        let variable = ("TIDINGS__HTTP__LISTEN".to_owned(), "127.0.0.1:2".to_owned());
        let config = load(Some(&file), [variable]).unwrap();
        assert_eq!(config.http.listen.port(), 2);
        assert_eq!(config.http.body_bytes_max, 2_000);
        assert_eq!(config.http.header_bytes_max, 16_384);
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_it() {
        for (text, key) in [
            ("[http]\nlisen = \"127.0.0.1:1\"", "http.lisen"),
            ("[htp]\nlisten = \"127.0.0.1:1\"", "htp"),
            ("listen = \"127.0.0.1:1\"", "listen"),
        ] {
            let message = from_file(text).unwrap_err().to_string();
            assert!(message.contains(&format!("`{key}`")), "{message}");
            assert!(message.contains("unknown"), "{message}");
        }
        let message = from_environment(&[("TIDINGS__HTTP__LISEN", "x")]).unwrap_err().to_string();
        assert!(message.contains("`http.lisen`") && message.contains("TIDINGS__HTTP__LISEN"), "{message}");
    }

    #[test]
    fn a_wrong_value_is_an_error_that_names_its_key() {
        for (name, value, key) in [
            ("TIDINGS__HTTP__LISTEN", "here", "http.listen"),
            ("TIDINGS__HTTP__BODY_BYTES_MAX", "many", "http.body_bytes_max"),
            ("TIDINGS__HTTP__BODY_BYTES_MAX", "0", "http.body_bytes_max"),
            ("TIDINGS__HTTP__HEADER_BYTES_MAX", "10", "http.header_bytes_max"),
            ("TIDINGS__HTTP__METRICS_PUBLIC", "maybe", "http.metrics_public"),
            ("TIDINGS__LOG__FORMAT", "xml", "log.format"),
            ("TIDINGS__LOG__LEVEL", "info,=", "log.level"),
            ("TIDINGS__LOG__LEVEL", "verbose", "log.level"),
            ("TIDINGS__LOG__LEVEL", "tidings::http=debug,verbose", "log.level"),
            ("TIDINGS__LOG__LEVEL", "", "log.level"),
            ("TIDINGS__RATE__FOLLOW_CAPACITY", "-1", "rate.follow_capacity"),
            ("TIDINGS__AUTH__JWKS_URL", "http://example.com/keys", "auth.jwks_url"),
            ("TIDINGS__AUTH__JWKS_URL", "https://example.com/keys", "auth.jwks_issuer"),
            ("TIDINGS__AUTH__JWKS_ISSUER", "https://example.com", "auth.jwks_issuer"),
            ("TIDINGS__PROJECTOR__ON_MISSING_HISTORY", "skip", "projector.on_missing_history"),
            ("TIDINGS__ALERTS__WEBHOOK_URL", "http://example.com/hook", "alerts.webhook_url"),
            ("TIDINGS__ALERTS__WEBHOOK_URL", "https://user:pass@example.com/hook", "alerts.webhook_url"),
            ("TIDINGS__ALERTS__WEBHOOK_URL", "https://example.com/hook", "alerts.webhook_secret"),
            ("TIDINGS__ALERTS__WEBHOOK_TIMEOUT_MS", "0", "alerts.webhook_timeout_ms"),
            ("TIDINGS__AUDIT__RETENTION_DAYS", "-1", "audit.retention_days"),
        ] {
            let message = from_environment(&[(name, value)]).unwrap_err().to_string();
            assert!(message.contains(&format!("`{key}`")), "{name}={value}: {message}");
        }
        let message = from_file("[http]\nlisten = 5").unwrap_err().to_string();
        assert!(message.contains("`http.listen`"), "{message}");
    }

    #[test]
    fn a_wrong_value_is_told_with_where_it_was_written() {
        let file = from_file("[http]\nconnections_max = 0").unwrap_err().to_string();
        assert!(file.contains("tidings.toml"), "{file}");
        let typed = from_file("[log]\nformat = \"xml\"").unwrap_err().to_string();
        assert!(typed.contains("tidings.toml"), "{typed}");
        let variable = from_environment(&[("TIDINGS__HTTP__CONNECTIONS_MAX", "0")]).unwrap_err().to_string();
        assert!(variable.contains("(from TIDINGS__HTTP__CONNECTIONS_MAX)"), "{variable}");
        let missing = from_environment(&[("TIDINGS__AUTH__JWKS_URL", "https://example.com/keys")]).unwrap_err();
        assert!(missing.to_string().contains("(from tidings.default.toml)"), "{missing}");
    }

    #[test]
    fn levels_are_in_letters_of_any_size_and_beside_rules() {
        for level in ["off", "TRACE", "info,tidings::http=debug", "warn,[request]=trace"] {
            assert!(from_environment(&[("TIDINGS__LOG__LEVEL", level)]).is_ok(), "{level}");
        }
    }

    /// Every number of the defaults, too large, is an error that names its key: none may overflow later.
    #[test]
    fn every_number_has_a_largest_value() {
        // Any number of users or reads makes sense here, and nothing is reckoned with it.
        let unlimited = ["relation.top_page_followers_min", "relation.counter_check_every"];
        let defaults: toml::Table = DEFAULTS.parse().unwrap();
        let mut numbers = 0;
        for (section, keys) in &defaults {
            for (name, _) in keys.as_table().unwrap().iter().filter(|(_, value)| value.is_integer()) {
                let key = format!("{section}.{name}");
                let variable = format!("TIDINGS__{}", key.to_uppercase().replace('.', "__"));
                for value in ["4294967295", "9223372036854775807"] {
                    let loaded = from_environment(&[(&variable, value)]);
                    if unlimited.contains(&key.as_str()) && value == "4294967295" {
                        assert!(loaded.is_ok(), "{key}");
                    } else {
                        let message = loaded.unwrap_err().to_string();
                        assert!(message.contains(&format!("`{key}`")), "{message}");
                    }
                }
                numbers += 1;
            }
        }
        assert!(numbers > 15, "{numbers}");
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_of_ours_that_is_not_text_is_an_error_and_others_do_not_matter() {
        use std::os::unix::ffi::OsStringExt as _;
        let variable = |name: &str| (OsString::from(name), OsString::from_vec(vec![0xff]));
        let told = environment([variable("TIDINGS__DATA__DIR")].into_iter()).unwrap_err().to_string();
        assert!(told.contains("`data.dir`") && told.contains("TIDINGS__DATA__DIR"), "{told}");
        assert_eq!(environment([variable("LESSCHARSET")].into_iter()).unwrap(), []);
    }

    #[test]
    fn a_file_that_is_not_toml_is_an_error_that_names_it() {
        let message = from_file("[http").unwrap_err().to_string();
        assert!(message.contains("tidings.toml"), "{message}");
    }

    #[test]
    fn what_is_printed_can_be_read_again_and_hides_credentials() {
        let printed = masked(
            &from_environment(&[
                ("TIDINGS__AUTH__JWKS_URL", "https://me:hunter2@example.com/keys?key=hunter3"),
                ("TIDINGS__AUTH__JWKS_ISSUER", "https://example.com"),
            ])
            .unwrap(),
        )
        .unwrap();
        assert!(!printed.contains("hunter"), "{printed}");
        assert!(printed.contains("example.com/keys"), "{printed}");
        assert_eq!(from_file(&printed).unwrap().http.listen.port(), 7_870);
    }
}
