//! Values that are never shown: printing and logging them gives a mask, only who asks gets the text.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Shown instead of a secret.
const MASK: &str = "***";

/// A password or the like; empty where there is none.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

/// A URL that may carry credentials before its host and a key in its query; empty where there is none.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Address(String);

/// A URL that may itself be the permission to use it, by a token in its path: nothing behind its host is shown.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Capability(String);

/// Properties of a client, some of which are secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

/// Headers of requests to another service: any of them may be a secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(BTreeMap<String, String>);

impl Secret {
    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl Address {
    /// The address with what it carries.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The address with a password added; nothing where it cannot have one or has one already.
    pub(super) fn with_password(&self, password: &Secret) -> Option<Self> {
        let mut url = reqwest::Url::parse(&self.0).ok().filter(|url| url.password().is_none())?;
        url.set_password(Some(password.reveal())).ok()?;
        Some(Self(url.into()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mask_url(&self.0))
    }
}

impl Capability {
    /// The URL whole.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn masked(&self) -> String {
        match reqwest::Url::parse(&self.0) {
            Ok(url) if url.has_host() => format!("{}/{MASK}", url.origin().ascii_serialization()),
            _ if self.is_empty() => String::new(),
            _ => MASK.to_owned(),
        }
    }
}

/// What cannot be read may hide a secret anywhere.
fn mask_url(url: &str) -> String {
    let Ok(mut parsed) = reqwest::Url::parse(url) else {
        return if url.is_empty() { String::new() } else { MASK.to_owned() };
    };
    // Setting them fails only for URLs that cannot have them, and those have nothing to hide.
    if parsed.password().is_some() {
        parsed.set_password(Some(MASK)).unwrap_or_default();
    }
    // In a web address a name may be a token, in that of a database it only says who asks.
    let is_token = parsed.scheme().starts_with("http");
    if is_token && !parsed.username().is_empty() {
        parsed.set_username(MASK).unwrap_or_default();
    }
    if is_token && parsed.query().is_some() {
        parsed.set_query(Some(MASK));
    }
    parsed.to_string()
}

impl Properties {
    /// Names and values.
    pub fn reveal(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    fn masked<'s>(&'s self) -> BTreeMap<&'s str, &'s str> {
        let shown = |(name, value): (&'s String, &'s String)| {
            (name.as_str(), if is_secret(name) { MASK } else { value.as_str() })
        };
        self.0.iter().map(shown).collect()
    }
}

impl Headers {
    /// Names and values.
    pub fn reveal(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

/// By its name, as librdkafka calls them: `sasl.password`, `ssl.key.pem`, `sasl.oauthbearer.client.secret`.
fn is_secret(name: &str) -> bool {
    ["password", "secret", "token", ".pem", "oauthbearer.config"].iter().any(|word| name.contains(word))
}

impl<'de> Deserialize<'de> for Properties {
    /// A name with dots may be quoted, or not, and then stands as tables within tables.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut properties = BTreeMap::new();
        flatten("", toml::Table::deserialize(deserializer)?, &mut properties).map_err(D::Error::custom)?;
        Ok(Self(properties))
    }
}

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Properties::deserialize(deserializer).map(|properties| Self(properties.0))
    }
}

impl Serialize for Headers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.keys().map(|name| (name, MASK)))
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.keys().map(|name| (name, MASK))).finish()
    }
}

fn flatten(prefix: &str, table: toml::Table, into: &mut BTreeMap<String, String>) -> Result<(), String> {
    for (name, value) in table {
        let name = format!("{prefix}{name}");
        let text = match value {
            toml::Value::Table(inner) => {
                flatten(&format!("{name}."), inner, into)?;
                continue;
            }
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Boolean(yes) => yes.to_string(),
            other => return Err(format!("`{name}` is a text, a number or true or false, not a {}", other.type_str())),
        };
        into.insert(name, text);
    }
    Ok(())
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if self.is_empty() { "" } else { MASK })
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&mask_url(&self.0))
    }
}

impl Serialize for Capability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.masked())
    }
}

impl fmt::Debug for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.masked())
    }
}

impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.masked().serialize(serializer)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "none" } else { MASK })
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", mask_url(&self.0))
    }
}

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.masked().fmt(f)
    }
}
