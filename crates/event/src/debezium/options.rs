//! The options of the router, under Debezium's names.

use crate::Error;

/// How rows become records. The defaults are Debezium's, with the string converter for key and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `table.field.event.id`: the column of the event's identity.
    pub event_id: String,
    /// `table.field.event.key`: the column of the record's key.
    pub event_key: String,
    /// `table.field.event.payload`: the column of the record's value.
    pub payload: String,
    /// `table.field.event.timestamp`: the column of the record's timestamp, a DATETIME or a BIGINT of
    /// milliseconds since the Unix epoch.
    pub timestamp: Option<String>,
    /// `table.field.event.schema.version`: the column of the version of the envelope's schema.
    pub schema_version: Option<String>,
    /// `route.by.field`: the column that the topic is made of.
    pub route_by: String,
    /// `route.topic.regex`: a pattern for the whole of that column.
    pub topic_regex: String,
    /// `route.topic.replacement`: the topic, with `$1` and `${name}` for groups of the pattern.
    pub topic_replacement: String,
    /// `route.tombstone.on.empty.payload`: whether an empty payload makes a tombstone.
    pub tombstone_on_empty_payload: bool,
    /// `table.fields.additional.placement`: columns beside key and payload.
    pub placements: Vec<Placement>,
    /// `table.field.additional.missing`: whether a placed column that the table lacks is passed over
    /// (`ignore`) and is no error.
    pub ignore_missing_placements: bool,
    /// `table.expand.json.payload`: whether a payload that is the text of a JSON object becomes one.
    pub expand_json_payload: bool,
    /// `table.json.payload.null.behavior`: whether the nulls in an expanded payload stay
    /// (`optional_bytes`) and are not dropped (`ignore`).
    pub keep_json_nulls: bool,
    /// `table.json.payload.empty.array.behavior`: whether the empty arrays in an expanded payload stay
    /// (`optional_string`) and are not dropped (`ignore`).
    pub keep_json_empty_arrays: bool,
    /// `table.op.invalid.behavior`: what an updated row does.
    pub on_update: OnUpdate,
    /// `binary.handling.mode` of the connector.
    pub binary_handling: BinaryHandling,
    /// `bigint.unsigned.handling.mode` of the connector.
    pub bigint_unsigned: BigintUnsigned,
    /// `topic.prefix` of the connector, which the names of JSON schemas begin with.
    pub topic_prefix: String,
    /// `key.converter`.
    pub key_converter: Converter,
    /// `key.converter.schemas.enable`: whether the JSON converter writes the schema too.
    pub key_schemas: bool,
    /// `value.converter`.
    pub value_converter: Converter,
    /// `value.converter.schemas.enable`: whether the JSON converter writes the schema too.
    pub value_schemas: bool,
}

/// A column beside key and payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The column.
    pub column: String,
    /// Where it goes.
    pub place: Place,
    /// What it is called there; the name of the column unless told otherwise.
    pub alias: String,
}

/// Where a column can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A header of the record.
    Header,
    /// A member of the value, beside `payload`.
    Envelope,
    /// The partition of the record.
    Partition,
}

/// What an updated row does. An outbox is only ever inserted into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUpdate {
    /// Nothing is sent and a warning is logged.
    Warn,
    /// Nothing is sent and an error is logged.
    Error,
    /// The relay stops.
    Fatal,
}

/// How bytes are shown where they are not the whole of a key or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryHandling {
    /// As bytes, which JSON and headers hold as Base64.
    Bytes,
    /// As a text of Base64.
    Base64,
    /// As a text of Base64 with `-` and `_`.
    Base64UrlSafe,
    /// As a text of lower-case hexadecimal digits.
    Hex,
}

/// How BIGINT UNSIGNED is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BigintUnsigned {
    /// As a signed 64-bit number: what is above 9223372036854775807 becomes negative, as in Debezium.
    Long,
    /// As a decimal, which JSON holds as the Base64 of its bytes.
    Precise,
}

/// What makes bytes of a key or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Converter {
    /// `JsonConverter`: JSON, a text being a JSON string.
    Json,
    /// `StringConverter`: the text itself.
    String,
    /// `ByteArrayConverter` or `BinaryDataConverter`: the bytes as they are, such as Avro.
    Binary,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            event_id: "id".to_owned(),
            event_key: "aggregateid".to_owned(),
            payload: "payload".to_owned(),
            timestamp: None,
            schema_version: None,
            route_by: "aggregatetype".to_owned(),
            topic_regex: "(?<routedByValue>.*)".to_owned(),
            topic_replacement: "outbox.event.${routedByValue}".to_owned(),
            tombstone_on_empty_payload: false,
            placements: Vec::new(),
            ignore_missing_placements: false,
            expand_json_payload: false,
            keep_json_nulls: false,
            keep_json_empty_arrays: false,
            on_update: OnUpdate::Warn,
            binary_handling: BinaryHandling::Bytes,
            bigint_unsigned: BigintUnsigned::Long,
            topic_prefix: String::new(),
            key_converter: Converter::String,
            key_schemas: true,
            value_converter: Converter::String,
            value_schemas: true,
        }
    }
}

impl Options {
    /// Sets one option by the name it has in the configuration of a Debezium connector, without the
    /// `transforms.outbox.` that stands before it there.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] where there is no such option or it cannot have this value. Patterns are looked at
    /// by [`Router::new`](super::Router::new).
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let text = || value.to_owned();
        match name {
            "table.field.event.id" => self.event_id = text(),
            "table.field.event.key" => self.event_key = text(),
            // The router itself makes no use of the type; placed as a header it is a placement.
            "table.field.event.type" => {}
            "table.field.event.payload" => self.payload = text(),
            "table.field.event.timestamp" => self.timestamp = Some(text()),
            "table.field.event.schema.version" => self.schema_version = Some(text()),
            "route.by.field" => self.route_by = text(),
            "route.topic.regex" => self.topic_regex = text(),
            "route.topic.replacement" => self.topic_replacement = text(),
            "table.fields.additional.placement" => self.placements = placements(value)?,
            "topic.prefix" => self.topic_prefix = text(),
            _ => return self.set_choice(name, value.trim()),
        }
        Ok(())
    }

    fn set_choice(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let boolean = [("true", true), ("false", false)];
        match name {
            "route.tombstone.on.empty.payload" => self.tombstone_on_empty_payload = choice(name, value, &boolean)?,
            "table.expand.json.payload" => self.expand_json_payload = choice(name, value, &boolean)?,
            "key.converter.schemas.enable" => self.key_schemas = choice(name, value, &boolean)?,
            "value.converter.schemas.enable" => self.value_schemas = choice(name, value, &boolean)?,
            "table.field.additional.missing" => {
                self.ignore_missing_placements = choice(name, value, &[("error", false), ("ignore", true)])?;
            }
            "table.json.payload.null.behavior" => {
                self.keep_json_nulls = choice(name, value, &[("ignore", false), ("optional_bytes", true)])?;
            }
            "table.json.payload.empty.array.behavior" => {
                self.keep_json_empty_arrays = choice(name, value, &[("ignore", false), ("optional_string", true)])?;
            }
            "table.op.invalid.behavior" => self.on_update = choice(name, value, &ON_UPDATE)?,
            "binary.handling.mode" => self.binary_handling = choice(name, value, &BINARY_HANDLING)?,
            "bigint.unsigned.handling.mode" => self.bigint_unsigned = choice(name, value, &BIGINT_UNSIGNED)?,
            "key.converter" => self.key_converter = converter(name, value)?,
            "value.converter" => self.value_converter = converter(name, value)?,
            _ => return Err(Error::option(name, "is not known")),
        }
        Ok(())
    }
}

const ON_UPDATE: [(&str, OnUpdate); 3] =
    [("warn", OnUpdate::Warn), ("error", OnUpdate::Error), ("fatal", OnUpdate::Fatal)];

const BINARY_HANDLING: [(&str, BinaryHandling); 4] = [
    ("bytes", BinaryHandling::Bytes),
    ("base64", BinaryHandling::Base64),
    ("base64-url-safe", BinaryHandling::Base64UrlSafe),
    ("hex", BinaryHandling::Hex),
];

const BIGINT_UNSIGNED: [(&str, BigintUnsigned); 2] =
    [("long", BigintUnsigned::Long), ("precise", BigintUnsigned::Precise)];

const CONVERTERS: [(&str, Converter); 4] = [
    ("JsonConverter", Converter::Json),
    ("StringConverter", Converter::String),
    ("ByteArrayConverter", Converter::Binary),
    ("BinaryDataConverter", Converter::Binary),
];

fn choice<T: Copy>(name: &str, value: &str, choices: &[(&str, T)]) -> Result<T, Error> {
    let found = choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(value));
    found.map(|(_, choice)| *choice).ok_or_else(|| Error::option(name, "has no such value"))
}

/// A converter by the name of its class, with or without the package.
fn converter(name: &str, class: &str) -> Result<Converter, Error> {
    choice(name, class.rsplit('.').next().unwrap_or(class), &CONVERTERS)
}

/// Reads `column:place` and `column:place:alias`, parted by commas.
fn placements(list: &str) -> Result<Vec<Placement>, Error> {
    let name = "table.fields.additional.placement";
    let entry = |entry: &str| {
        let parts: Vec<_> = entry.split(':').map(str::trim).collect();
        let (column, place, alias) = match parts[..] {
            [column, place] => (column, place, column),
            [column, place, alias] => (column, place, alias),
            _ => return Err(Error::option(name, "is a list of `column:place` and `column:place:alias`")),
        };
        let places = [("header", Place::Header), ("envelope", Place::Envelope), ("partition", Place::Partition)];
        let place = choice(name, place, &places)?;
        Ok(Placement { column: column.to_owned(), place, alias: alias.to_owned() })
    };
    list.split(',').map(entry).collect()
}
