//! `[telemetry]`: where traces go.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use super::{
    secret::{Address, Headers, Properties},
    values::{COUNT_MAX, between, wrong},
};
use crate::Result;

/// What is added to an endpoint without a path.
const TRACES_PATH: &str = "v1/traces";

/// `[telemetry]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// Base URL of a collector; empty for none.
    pub otlp_endpoint: Address,
    /// Share of the requests without a trace that get one.
    pub sample_ratio: f64,
    /// The service in traces.
    pub service_name: String,
    /// Spans that wait to be sent.
    pub queue_spans_max: usize,
    /// Headers of what is sent.
    pub headers: Headers,
    /// What else is told of the process.
    pub resource: Properties,
}

impl Telemetry {
    /// Where spans are sent; nothing where nothing is traced.
    pub fn traces_url(&self) -> Option<reqwest::Url> {
        let mut url = reqwest::Url::parse(self.otlp_endpoint.reveal()).ok()?;
        if matches!(url.path(), "" | "/") {
            url.set_path(TRACES_PATH);
        }
        Some(url)
    }

    /// The headers of what is sent.
    ///
    /// # Errors
    /// When one of them is none; the error shows no value.
    pub fn header_map(&self) -> Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers.reveal() {
            let key = format!("telemetry.headers.{name}");
            let header = HeaderName::try_from(name).map_err(|_| wrong(&key, "is no name of a header".to_owned()))?;
            let mut text = HeaderValue::try_from(value)
                .map_err(|_| wrong(&key, "has characters that no header may have".to_owned()))?;
            text.set_sensitive(true);
            headers.insert(header, text);
        }
        Ok(headers)
    }

    pub(super) fn check(&self) -> Result<()> {
        if !self.otlp_endpoint.is_empty() {
            let url = reqwest::Url::parse(self.otlp_endpoint.reveal())
                .map_err(|error| wrong("telemetry.otlp_endpoint", error.to_string()))?;
            if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
                let reason = "is the http or https URL of a collector: http://127.0.0.1:4318";
                return Err(wrong("telemetry.otlp_endpoint", reason.to_owned()));
            }
            if !url.username().is_empty() || url.password().is_some() {
                let reason = "has a user or a password, which would not be sent; put them into `[telemetry.headers]`: \
                              authorization = \"Basic ..\"";
                return Err(wrong("telemetry.otlp_endpoint", reason.to_owned()));
            }
        }
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            let reason = format!("must be from 0 to 1, is {}", self.sample_ratio);
            return Err(wrong("telemetry.sample_ratio", reason));
        }
        if self.service_name.is_empty() {
            return Err(wrong("telemetry.service_name", "is empty".to_owned()));
        }
        between("telemetry.queue_spans_max", self.queue_spans_max as u64, 1, COUNT_MAX)?;
        self.header_map().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, load, masked};

    fn from_environment(variables: &[(&str, &str)]) -> crate::Result<Config> {
        load(None, variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn nothing_is_traced_unless_a_collector_is_named_and_its_path_may_be_left_out() {
        assert_eq!(from_environment(&[]).unwrap().telemetry.traces_url(), None);
        for (endpoint, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("https://otel.example/", "https://otel.example/v1/traces"),
            ("https://otel.example/tempo/v1/traces", "https://otel.example/tempo/v1/traces"),
        ] {
            let config = from_environment(&[("TIDINGS__TELEMETRY__OTLP_ENDPOINT", endpoint)]).unwrap();
            assert_eq!(config.telemetry.traces_url().unwrap().as_str(), expected);
        }
    }

    #[test]
    fn a_wrong_value_names_its_key_and_no_header_is_shown() {
        for (name, value, key) in [
            ("TIDINGS__TELEMETRY__OTLP_ENDPOINT", "127.0.0.1:4318", "telemetry.otlp_endpoint"),
            ("TIDINGS__TELEMETRY__OTLP_ENDPOINT", "file:///etc/passwd", "telemetry.otlp_endpoint"),
            ("TIDINGS__TELEMETRY__OTLP_ENDPOINT", "http://me:hunter2@collector:4318", "telemetry.otlp_endpoint"),
            ("TIDINGS__TELEMETRY__OTLP_ENDPOINT", "http://hunter2@collector:4318", "telemetry.otlp_endpoint"),
            ("TIDINGS__TELEMETRY__SAMPLE_RATIO", "1.5", "telemetry.sample_ratio"),
            ("TIDINGS__TELEMETRY__SAMPLE_RATIO", "-0.1", "telemetry.sample_ratio"),
            ("TIDINGS__TELEMETRY__SAMPLE_RATIO", "NaN", "telemetry.sample_ratio"),
            ("TIDINGS__TELEMETRY__SAMPLE_RATIO", "some", "telemetry.sample_ratio"),
            ("TIDINGS__TELEMETRY__SERVICE_NAME", "", "telemetry.service_name"),
            ("TIDINGS__TELEMETRY__HEADERS__A B", "x", "telemetry.headers.a b"),
            ("TIDINGS__TELEMETRY__HEADERS__AUTHORIZATION", "hunter2\n", "telemetry.headers.authorization"),
        ] {
            let message = from_environment(&[(name, value)]).unwrap_err().to_string();
            assert!(message.contains(&format!("`{key}`")) && !message.contains("hunter"), "{name}: {message}");
        }
        let config = from_environment(&[
            ("TIDINGS__TELEMETRY__HEADERS__AUTHORIZATION", "Bearer hunter2"),
            ("TIDINGS__TELEMETRY__OTLP_ENDPOINT", "http://collector:4318?key=hunter3"),
            ("TIDINGS__TELEMETRY__SAMPLE_RATIO", "1"),
        ]);
        let config = config.unwrap();
        let shown = format!("{} {config:?}", masked(&config).unwrap());
        assert!(!shown.contains("hunter") && shown.contains("authorization"), "{shown}");
    }
}
