//! Payloads that are the text of a JSON object, as the object (`JsonSchemaData`).
//!
//! Debezium turns the text into a struct of Connect, and a struct has a type for each of its parts:
//! arrays hold one type only, nulls and empty arrays have none and are dropped unless told otherwise,
//! and numbers are `int`, `long` or `double`. A text that has no such type stays a text.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::{
    Options,
    schema::{Data, Schema, SchemaKind},
};

/// The struct and its type, or nothing where the text has none.
pub(super) fn expand(text: &str, options: &Options) -> Option<(Schema, Data<'static>)> {
    // Debezium looks at the first character; white space before the object makes it a text.
    let Some(Ok(Value::Object(object))) = text.starts_with('{').then(|| serde_json::from_str(text)) else {
        return None;
    };
    let schema = struct_of(&options.payload, &object, options)?;
    let data = struct_data(&object, &schema)?;
    Some((schema, data))
}

/// The type of a value: an error (the outer option) where it has none and must have one, nothing (the
/// inner one) where it is to be dropped.
fn schema_of(key: &str, value: &Value, options: &Options) -> Option<Option<Schema>> {
    Some(match value {
        Value::Null => options.keep_json_nulls.then(|| Schema::simple("bytes")),
        Value::Bool(_) => Some(Schema::simple("boolean")),
        Value::Number(number) => Some(Schema::simple(number_kind(number)?)),
        Value::String(_) => Some(Schema::simple("string")),
        Value::Object(object) => Some(struct_of(key, object, options)?),
        Value::Array(items) if items.is_empty() => {
            let text = || Schema::optional(SchemaKind::Array(Box::new(Schema::simple("string"))));
            options.keep_json_empty_arrays.then(text)
        }
        Value::Array(items) => {
            let items = items_of(key, items, options)?;
            Some(Schema::optional(SchemaKind::Array(Box::new(items))))
        }
    })
}

fn struct_of(key: &str, object: &Map<String, Value>, options: &Options) -> Option<Schema> {
    let mut fields = Vec::with_capacity(object.len());
    for (name, value) in object {
        let key = if key.trim().is_empty() { name.clone() } else { format!("{key}.{name}") };
        if let Some(schema) = schema_of(&key, value, options)? {
            fields.push((name.clone(), schema));
        }
    }
    Some(Schema { name: Some(key.to_owned()), ..Schema::optional(SchemaKind::Struct(fields)) })
}

/// The one type of all items. Objects may differ in what they have: their type has all of it.
fn items_of(key: &str, items: &[Value], options: &Options) -> Option<Schema> {
    let first = items.iter().find(|item| !item.is_null())?;
    if items.iter().any(|item| !item.is_null() && std::mem::discriminant(item) != std::mem::discriminant(first)) {
        return None;
    }
    if !first.is_object() {
        let schema = schema_of("", first, options)??;
        let is_same = |item: &Value| match item {
            Value::Number(number) => number_kind(number).is_some_and(|kind| schema.is(kind)),
            _ => true,
        };
        return items.iter().all(is_same).then_some(schema);
    }
    let mut distinct: Vec<Schema> = Vec::new();
    for object in items.iter().filter_map(Value::as_object) {
        let schema = struct_of(key, object, options)?;
        if !distinct.contains(&schema) {
            distinct.push(schema);
        }
    }
    distinct.into_iter().reduce(merge)
}

/// The order of the fields is by chance in Debezium; here it is that of their first occurrence.
fn merge(mut left: Schema, right: Schema) -> Schema {
    // A type made of several is not optional, since Connect's copy of a type leaves that out.
    left.is_optional = false;
    if let (SchemaKind::Struct(fields), SchemaKind::Struct(more)) = (&mut left.kind, right.kind) {
        for (name, schema) in more {
            match fields.iter_mut().find(|(field, _)| *field == name) {
                // Bytes stand for a null; what is known of the field elsewhere is better.
                Some((_, known)) if known.is("bytes") => *known = schema,
                Some(_) => {}
                None => fields.push((name, schema)),
            }
        }
    }
    left
}

/// Jackson reads whole numbers as `int` where they fit, then as `long`; beyond that Connect has no type.
fn number_kind(number: &Number) -> Option<&'static str> {
    match number.as_i64() {
        Some(number) if i32::try_from(number).is_ok() => Some("int32"),
        Some(_) => Some("int64"),
        None if number.is_f64() => Some("double"),
        None => None,
    }
}

/// The value in its type; nothing where it does not fit.
fn data_of(value: &Value, schema: &Schema) -> Option<Data<'static>> {
    Some(match (value, &schema.kind) {
        (Value::Null, _) => Data::Null,
        (Value::Bool(value), SchemaKind::Simple("boolean")) => Data::Bool(*value),
        (Value::String(text), SchemaKind::Simple("string")) => Data::Text(Cow::Owned(text.clone())),
        (Value::Number(number), SchemaKind::Simple(kind)) if number_kind(number) == Some(*kind) => {
            match number.as_i64() {
                Some(number) => Data::Int(number),
                None => Data::Double(number.as_f64()?),
            }
        }
        (Value::Array(values), SchemaKind::Array(items)) => {
            Data::Array(values.iter().map(|value| data_of(value, items)).collect::<Option<_>>()?)
        }
        (Value::Object(object), SchemaKind::Struct(_)) => struct_data(object, schema)?,
        _ => return None,
    })
}

fn struct_data(object: &Map<String, Value>, schema: &Schema) -> Option<Data<'static>> {
    let SchemaKind::Struct(fields) = &schema.kind else { return None };
    let field = |(name, schema): &(String, Schema)| {
        let data = object.get(name).map_or(Some(Data::Null), |value| data_of(value, schema))?;
        Some((Cow::Owned(name.clone()), data))
    };
    Some(Data::Struct(fields.iter().map(field).collect::<Option<_>>()?))
}
