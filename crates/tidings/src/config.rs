//! The configuration: `tidings.default.toml` compiled in, overridden by a file and the environment.

mod layers;
mod values;

use std::path::Path;

pub use values::{
    Auth, Config, Data, Events, Http, LogFormat, Logging, MissingHistory, ProjectorOptions, Rate, Relation,
};

use crate::{Error, Result};

/// Every key with its comment and default: the documentation is what applies.
pub const DEFAULTS: &str = include_str!("../../../tidings.default.toml");

/// Shown instead of a secret.
const MASK: &str = "***";

/// Reads the configuration in effect: defaults, then `file`, then `environment`.
///
/// # Errors
/// When the file cannot be read or is not TOML, or a key is unknown or has a wrong value; the
/// error names the key and where it was written.
pub fn load(file: Option<&Path>, environment: impl IntoIterator<Item = (String, String)>) -> Result<Config> {
    let table = layers::merged(file, environment)?;
    values::Config::from_table(&table)
}

/// Writes the configuration in effect as TOML, with what is secret masked.
pub fn masked(config: &Config) -> Result<String> {
    let mut shown = config.clone();
    shown.auth.jwks_url = mask_url(&shown.auth.jwks_url);
    toml::to_string_pretty(&shown).map_err(|error| Error::Usage(format!("cannot print the configuration: {error}")))
}

/// A URL may carry credentials before its host and a key in its query.
fn mask_url(url: &str) -> String {
    let Ok(mut parsed) = reqwest::Url::parse(url) else {
        return url.to_owned();
    };
    // Setting them fails only for URLs that cannot have them, and those have nothing to hide.
    if !parsed.username().is_empty() {
        parsed.set_username(MASK).unwrap_or_default();
    }
    if parsed.password().is_some() {
        parsed.set_password(Some(MASK)).unwrap_or_default();
    }
    if parsed.query().is_some() {
        parsed.set_query(Some(MASK));
    }
    parsed.to_string()
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
            ("TIDINGS__RATE__FOLLOW_CAPACITY", "-1", "rate.follow_capacity"),
            ("TIDINGS__AUTH__JWKS_URL", "http://example.com/keys", "auth.jwks_url"),
            ("TIDINGS__AUTH__JWKS_URL", "https://example.com/keys", "auth.jwks_issuer"),
            ("TIDINGS__PROJECTOR__ON_MISSING_HISTORY", "skip", "projector.on_missing_history"),
        ] {
            let message = from_environment(&[(name, value)]).unwrap_err().to_string();
            assert!(message.contains(&format!("`{key}`")), "{name}={value}: {message}");
        }
        let message = from_file("[http]\nlisten = 5").unwrap_err().to_string();
        assert!(message.contains("`http.listen`"), "{message}");
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
