//! Layers of TOML, each overriding the one below key by key. A key is known when the lowest layer,
//! the defaults, has it; its value there tells the type.

use std::{collections::HashMap, path::Path};

use toml::{Table, Value};

use super::DEFAULTS;
use crate::{Error, Result};

/// Names of variables that are meant for Tidings begin so.
pub(super) const VARIABLE_PREFIX: &str = "TIDINGS__";
/// Tables whose keys are the operator's: names that the defaults cannot know.
const FREE_TABLES: [&str; 4] = ["kafka.properties", "relay.formats", "telemetry.headers", "telemetry.resource"];
const DEFAULTS_FILE: &str = "tidings.default.toml";

/// The layers, merged.
pub(super) struct Merged {
    pub(super) table: Table,
    /// Where each key was written that is not as in the defaults.
    origins: HashMap<String, String>,
}

impl Merged {
    /// Says in an error about a key where that key was written.
    pub(super) fn with_origin(&self, error: Error) -> Error {
        match error {
            Error::Config { key, reason, .. } => {
                let origin = self.origins.get(&key).map_or(DEFAULTS_FILE, String::as_str).to_owned();
                Error::Config { origin, key, reason }
            }
            error => error,
        }
    }
}

/// The defaults with `file` and `environment` laid over them.
pub(super) fn merged(file: Option<&Path>, environment: impl IntoIterator<Item = (String, String)>) -> Result<Merged> {
    let mut table = read(DEFAULTS, DEFAULTS_FILE)?;
    let mut origins = HashMap::new();
    if let Some(file) = file {
        let text = std::fs::read_to_string(file).map_err(Error::file("reading the configuration file", file))?;
        let origin = file.display().to_string();
        let layer = read(&text, &origin)?;
        lay_over(&mut table, layer, "", &mut |key| drop(origins.insert(key.to_owned(), origin.clone())), &origin)?;
    }
    for (name, text) in environment {
        if let Some(path) = name.strip_prefix(VARIABLE_PREFIX) {
            let key = path.to_ascii_lowercase().replace("__", ".");
            set(&mut table, &key, &text, &name)?;
            origins.insert(key, name);
        }
    }
    Ok(Merged { table, origins })
}

fn read(text: &str, origin: &str) -> Result<Table> {
    text.parse().map_err(|source| Error::ConfigSyntax { origin: origin.to_owned(), source })
}

/// Lays `layer`, written in `origin`, over `below`; `written` is told each key.
fn lay_over(below: &mut Table, layer: Table, prefix: &str, written: &mut dyn FnMut(&str), origin: &str) -> Result<()> {
    for (name, value) in layer {
        let key = format!("{prefix}{name}");
        if is_free(prefix) {
            written(&key);
            below.insert(name, value);
            continue;
        }
        let Some(slot) = below.get_mut(&name) else {
            return Err(unknown(&key, origin));
        };
        match (slot, value) {
            (Value::Table(inner), Value::Table(layer)) => lay_over(inner, layer, &format!("{key}."), written, origin)?,
            // A share of 1 is the same number.
            (slot @ Value::Float(_), Value::Integer(number)) => {
                *slot = Value::Float(number as f64);
                written(&key);
            }
            (slot, value) if slot.type_str() == value.type_str() => {
                *slot = value;
                written(&key);
            }
            (slot, value) => {
                let reason = format!("is a {}, not a {}", slot.type_str(), value.type_str());
                return Err(wrong(&key, origin, reason));
            }
        }
    }
    Ok(())
}

/// Whether keys that begin so are the operator's.
fn is_free(prefix: &str) -> bool {
    FREE_TABLES.iter().any(|table| prefix.strip_prefix(table).is_some_and(|rest| rest.starts_with('.')))
}

/// Sets one key from text, as the environment holds it.
fn set(table: &mut Table, key: &str, text: &str, origin: &str) -> Result<()> {
    let free = FREE_TABLES.iter().find_map(|free| Some((*free, key.strip_prefix(free)?.strip_prefix('.')?)));
    if let Some((free, name)) = free {
        let inner = free.split('.').try_fold(&mut *table, |table, part| table.get_mut(part)?.as_table_mut());
        let inner = inner.ok_or_else(|| unknown(key, origin))?;
        inner.insert(name.to_owned(), Value::String(text.to_owned()));
        return Ok(());
    }
    let (sections, name) = key.rsplit_once('.').unwrap_or(("", key));
    let mut section = table;
    for part in sections.split('.').filter(|part| !part.is_empty()) {
        section = section.get_mut(part).and_then(Value::as_table_mut).ok_or_else(|| unknown(key, origin))?;
    }
    let slot = section.get_mut(name).filter(|slot| !slot.is_table()).ok_or_else(|| unknown(key, origin))?;
    let value = match slot {
        Value::Integer(_) => text.parse().map(Value::Integer).ok(),
        Value::Boolean(_) => text.parse().map(Value::Boolean).ok(),
        Value::Float(_) => text.parse().map(Value::Float).ok(),
        _ => Some(Value::String(text.to_owned())),
    };
    *slot = value.ok_or_else(|| wrong(key, origin, format!("is a {}, not `{text}`", slot.type_str())))?;
    Ok(())
}

fn unknown(key: &str, origin: &str) -> Error {
    wrong(key, origin, "is unknown".to_owned())
}

fn wrong(key: &str, origin: &str, reason: String) -> Error {
    Error::Config { origin: origin.to_owned(), key: key.to_owned(), reason }
}
