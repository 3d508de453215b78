//! Connect's converters: values in, bytes out.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    Converter,
    schema::{Data, Schema, SchemaKind},
};
use crate::java;

/// The bytes of a key or value. A NULL is none to the plain converters, and the text `null` in JSON.
pub(super) fn encode(converter: Converter, schema: Option<&Schema>, data: &Data<'_>) -> Option<Vec<u8>> {
    match (converter, data) {
        (Converter::Json, _) => {
            let mut out = String::new();
            if let Some(schema) = schema {
                out.push_str("{\"schema\":");
                write_schema(&mut out, schema, None);
                out.push_str(",\"payload\":");
            }
            write_json(&mut out, data);
            if schema.is_some() {
                out.push('}');
            }
            Some(out.into_bytes())
        }
        (_, data) => plain(data),
    }
}

/// A header's value as `SimpleHeaderConverter` writes it: texts as they are, bytes as Base64.
pub(super) fn header(data: &Data<'_>) -> Option<Vec<u8>> {
    match data {
        Data::Bytes(bytes) => Some(STANDARD.encode(bytes).into_bytes()),
        data => plain(data),
    }
}

fn plain(data: &Data<'_>) -> Option<Vec<u8>> {
    match data {
        Data::Null => None,
        Data::Text(text) => Some(text.as_bytes().to_vec()),
        Data::Bytes(bytes) => Some(bytes.to_vec()),
        data => {
            let mut out = String::new();
            write_plain(&mut out, data);
            Some(out.into_bytes())
        }
    }
}

/// Java's `toString()`.
fn write_plain(out: &mut String, data: &Data<'_>) {
    match data {
        Data::Null => out.push_str("null"),
        Data::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Data::Int(number) => write_display(out, number),
        Data::Float(number) => java::float(*number, out),
        Data::Double(number) => java::double(*number, out),
        Data::Text(text) | Data::Decimal(text) => out.push_str(text),
        Data::Bytes(bytes) => out.push_str(&STANDARD.encode(bytes)),
        Data::Array(items) => {
            separated(out, ('[', ", ", ']'), items, write_plain);
        }
        Data::Struct(fields) => {
            out.push_str("Struct");
            let present = fields.iter().filter(|(_, value)| *value != Data::Null);
            separated(out, ('{', ",", '}'), present, |out, (name, value)| {
                out.push_str(name);
                out.push('=');
                write_plain(out, value);
            });
        }
    }
}

pub(super) fn write_json(out: &mut String, data: &Data<'_>) {
    match data {
        Data::Text(text) => write_string(out, text),
        Data::Bytes(bytes) => write_string(out, &STANDARD.encode(bytes)),
        Data::Decimal(digits) => write_string(out, &STANDARD.encode(unscaled(digits))),
        Data::Array(items) => separated(out, ('[', ",", ']'), items, write_json),
        Data::Struct(fields) => separated(out, ('{', ",", '}'), fields, |out, (name, value)| {
            write_string(out, name);
            out.push(':');
            write_json(out, value);
        }),
        Data::Null | Data::Bool(_) | Data::Int(_) | Data::Float(_) | Data::Double(_) => write_plain(out, data),
    }
}

fn write_schema(out: &mut String, schema: &Schema, field: Option<&str>) {
    out.push_str("{\"type\":");
    match &schema.kind {
        SchemaKind::Simple(kind) => write_string(out, kind),
        SchemaKind::Array(items) => {
            out.push_str("\"array\",\"items\":");
            write_schema(out, items, None);
        }
        SchemaKind::Struct(fields) => {
            out.push_str("\"struct\",\"fields\":");
            separated(out, ('[', ",", ']'), fields, |out, (name, schema)| write_schema(out, schema, Some(name)));
        }
    }
    write_member(out, "optional", |out| out.push_str(if schema.is_optional { "true" } else { "false" }));
    if let Some(name) = &schema.name {
        write_member(out, "name", |out| write_string(out, name));
    }
    if let Some(version) = schema.version {
        write_member(out, "version", |out| write_display(out, version));
    }
    if !schema.parameters.is_empty() {
        write_member(out, "parameters", |out| {
            separated(out, ('{', ",", '}'), &schema.parameters, |out, (name, value)| {
                write_string(out, name);
                out.push(':');
                write_string(out, value);
            });
        });
    }
    if let Some(field) = field {
        write_member(out, "field", |out| write_string(out, field));
    }
    out.push('}');
}

fn write_member(out: &mut String, name: &str, value: impl FnOnce(&mut String)) {
    out.push(',');
    write_string(out, name);
    out.push(':');
    value(out);
}

fn separated<T>(
    out: &mut String,
    (start, separator, end): (char, &str, char),
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push(start);
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push_str(separator);
        }
        write(out, item);
    }
    out.push(end);
}

fn write_display(out: &mut String, value: impl std::fmt::Display) {
    out.push_str(&value.to_string());
}

/// A JSON string as Jackson writes it into bytes: control characters and what lies beyond U+FFFF are
/// escaped with upper-case digits, everything else beyond ASCII is not.
fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\u{20}'..='\u{ffff}' => out.push(letter),
            letter => letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                out.push_str(&format!("\\u{unit:04X}"));
            }),
        }
    }
    out.push('"');
}

/// A decimal without its point as Java's `BigInteger.toByteArray()`: two's complement, most significant
/// byte first, as few bytes as hold the sign.
fn unscaled(digits: &str) -> Cow<'static, [u8]> {
    let mut bytes: Vec<u8> = vec![0];
    for digit in digits.chars().filter_map(|letter| letter.to_digit(10)) {
        let mut carry = digit;
        for byte in bytes.iter_mut().rev() {
            carry += u32::from(*byte) * 10;
            *byte = carry.to_le_bytes()[0];
            carry >>= 8;
        }
        // A zero in front stays, for the sign.
        if carry > 0 || bytes[0] != 0 {
            bytes.insert(0, carry.to_le_bytes()[0]);
        }
    }
    if digits.starts_with('-') {
        let mut carry = true;
        for byte in bytes.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    while let [first, second, ..] = bytes[..]
        && (first, second >> 7) == if second >> 7 == 1 { (255, 1) } else { (0, 0) }
    {
        bytes.remove(0);
    }
    Cow::Owned(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_the_bytes_of_java() {
        for (digits, expected) in [
            ("0", &[0][..]),
            ("1.27", &[127]),
            ("1.28", &[0, 128]),
            ("-1.28", &[128]),
            ("-1.29", &[255, 127]),
            ("-1", &[255]),
            ("255", &[0, 255]),
            ("256", &[1, 0]),
            ("-256", &[255, 0]),
            ("18446744073709551615", &[0, 255, 255, 255, 255, 255, 255, 255, 255]),
        ] {
            assert_eq!(&unscaled(digits)[..], expected, "{digits}");
        }
    }
}
