//! What CloudEvents asks of names, texts and sizes.

use super::MAX_EVENT_BYTES;
use crate::Error;

pub(super) const EMPTY: &str = "must not be empty";
pub(super) const FORBIDDEN: &str = "holds a character that CloudEvents forbids";

pub(super) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Whether every character may stand in a CloudEvents String.
pub(super) fn is_text(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) || !text.chars().any(is_forbidden)
}

fn is_forbidden(character: char) -> bool {
    let code = u32::from(character);
    character.is_control() || (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe
}

/// Writes characters that CloudEvents forbids as JSON escapes. In JSON they stand in texts only.
pub(super) fn escaped(json: String) -> String {
    if is_text(&json) {
        return json;
    }
    let mut safe = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if is_forbidden(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(character);
        }
    }
    safe
}

pub(super) fn check_required(name: &str, text: &str) -> Result<(), Error> {
    if text.is_empty() {
        Err(broken(name, EMPTY))
    } else if !is_text(text) {
        Err(broken(name, FORBIDDEN))
    } else {
        Ok(())
    }
}

pub(super) fn broken(name: &str, rule: &'static str) -> Error {
    Error::Attribute { name: name.to_owned(), rule }
}

pub(super) fn check_size(found: usize) -> Result<(), Error> {
    if found > MAX_EVENT_BYTES { Err(Error::TooLarge { found, limit: MAX_EVENT_BYTES }) } else { Ok(()) }
}
