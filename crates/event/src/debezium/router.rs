//! The router itself.

use super::{
    Converter, OnUpdate, Options, Place, Record, connect,
    converter::{encode, header},
    expand::expand,
    schema::{Data, Schema, SchemaKind},
    topic::TopicPattern,
};
use crate::{
    Error,
    row::{Change, Column, Operation, Table, Type, Value},
};

/// Turns the rows of an outbox into records.
#[derive(Clone, Debug)]
pub struct Router {
    options: Options,
    topic: TopicPattern,
    has_envelope: bool,
}

/// What becomes of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Routed {
    /// It is sent.
    Record(Record),
    /// It was deleted, which is how an outbox is kept small. Nothing is sent.
    Deleted,
    /// It was updated, which an outbox has no use for. Nothing is sent; the relay logs it as the option
    /// `table.op.invalid.behavior` says.
    Updated(OnUpdate),
}

/// One row after its insert.
#[derive(Clone, Copy)]
struct Row<'a> {
    table: &'a Table,
    values: &'a [Value<'a>],
    options: &'a Options,
}

/// A column that was found in the table.
#[derive(Clone, Copy)]
struct Cell<'a> {
    column: &'a Column,
    value: &'a Value<'a>,
    options: &'a Options,
}

impl Router {
    /// A router for these options.
    ///
    /// # Errors
    ///
    /// [`Error::Pattern`] where the pattern of topics cannot be compiled: it may not look around or refer
    /// back to groups, which Java's could. [`Error::Option`] where the replacement refers to no group of it.
    pub fn new(options: Options) -> Result<Self, Error> {
        let topic = TopicPattern::new(&options.topic_regex, &options.topic_replacement)?;
        let has_envelope = options.placements.iter().any(|placement| placement.place == Place::Envelope);
        Ok(Self { options, topic, has_envelope })
    }

    /// The options it was made of.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Turns one row into a record. `now_millis` is when the relay read it, in milliseconds since the Unix
    /// epoch: the timestamp of the record unless a column has it.
    ///
    /// # Errors
    ///
    /// [`Error::Column`] where the table lacks a column or its value does not fit its use,
    /// [`Error::Updated`] where an update is to stop the relay.
    pub fn route(
        &self,
        table: &Table,
        operation: Operation,
        change: &Change<'_>,
        now_millis: i64,
    ) -> Result<Routed, Error> {
        match (operation, self.options.on_update) {
            (Operation::Delete, _) => Ok(Routed::Deleted),
            (Operation::Update, OnUpdate::Fatal) => Err(Error::Updated),
            (Operation::Update, behaviour) => Ok(Routed::Updated(behaviour)),
            (Operation::Insert, _) => {
                let row = Row { table, values: change.after, options: &self.options };
                self.record(row, now_millis).map(Routed::Record)
            }
        }
    }

    fn record(&self, row: Row<'_>, now_millis: i64) -> Result<Record, Error> {
        let options = &self.options;
        let routed_by = row.cell(&options.route_by)?.text()?;
        let key = row.cell(&options.event_key)?;
        let key_schema = schema_if(options.key_converter, options.key_schemas, || key.schema())?;
        let mut record = Record {
            topic: self.topic.apply(&routed_by),
            partition: None,
            key: encode(options.key_converter, key_schema.as_ref(), &key.data()?),
            value: self.value(row, &routed_by)?,
            headers: vec![("id".to_owned(), header(&row.cell(&options.event_id)?.data()?))],
            timestamp: timestamp(row, now_millis)?,
        };
        for placement in &options.placements {
            let Some(cell) = row.placed(&placement.column)? else { continue };
            match placement.place {
                Place::Header => record.headers.push((placement.alias.clone(), header(&cell.data()?))),
                Place::Partition => record.partition = cell.partition()?,
                Place::Envelope => {}
            }
        }
        Ok(record)
    }

    fn value(&self, row: Row<'_>, routed_by: &str) -> Result<Option<Vec<u8>>, Error> {
        let options = &self.options;
        let payload = row.cell(&options.payload)?;
        let with_schema = options.value_converter == Converter::Json && options.value_schemas;
        let mut data = payload.data()?;
        if data.is_empty() && options.tombstone_on_empty_payload {
            return Ok(None);
        }
        let mut schema = if with_schema { Some(payload.schema()?) } else { None };
        if options.expand_json_payload
            && let Data::Text(text) = &data
            && let Some((expanded_schema, expanded)) = expand(text, options)
        {
            data = expanded;
            schema = with_schema.then_some(expanded_schema);
        }
        if self.has_envelope {
            (schema, data) = self.envelope(row, routed_by, schema, data)?;
        }
        Ok(encode(options.value_converter, schema.as_ref(), &data))
    }

    fn envelope<'a>(
        &'a self,
        row: Row<'a>,
        routed_by: &str,
        payload_schema: Option<Schema>,
        payload: Data<'a>,
    ) -> Result<(Option<Schema>, Data<'a>), Error> {
        let mut members = vec![("payload".into(), payload)];
        let mut fields = Vec::new();
        let with_schema = payload_schema.is_some();
        fields.extend(payload_schema.map(|schema| ("payload".to_owned(), schema)));
        for placement in self.options.placements.iter().filter(|placement| placement.place == Place::Envelope) {
            let Some(cell) = row.placed(&placement.column)? else { continue };
            members.push(((&placement.alias).into(), cell.data()?));
            if with_schema {
                fields.push((placement.alias.clone(), cell.schema()?));
            }
        }
        let version = match &self.options.schema_version {
            Some(column) if with_schema => row.cell(column)?.partition()?,
            _ => None,
        };
        // The name of the row's type with the topic put in before its last part.
        let name = format!("{}.{}.{}.{routed_by}.Value", self.options.topic_prefix, row.table.database, row.table.name);
        let schema = Schema { name: Some(name), version, ..Schema::optional(SchemaKind::Struct(fields)) };
        Ok((with_schema.then_some(Schema { is_optional: false, ..schema }), Data::Struct(members)))
    }
}

fn schema_if(
    converter: Converter,
    enabled: bool,
    schema: impl FnOnce() -> Result<Schema, Error>,
) -> Result<Option<Schema>, Error> {
    (converter == Converter::Json && enabled).then(schema).transpose()
}

fn timestamp(row: Row<'_>, now_millis: i64) -> Result<i64, Error> {
    let Some(name) = &row.options.timestamp else { return Ok(now_millis) };
    let cell = row.cell(name)?;
    match (cell.column.kind, cell.data()?) {
        (_, Data::Null) => Ok(now_millis),
        (Type::DateTime, Data::Int(micros)) if cell.column.fraction_digits() > 3 => Ok(micros / 1000),
        (Type::DateTime | Type::BigInt, Data::Int(millis)) => Ok(millis),
        _ => Err(Error::column(name, "has no type that a timestamp can be taken from")),
    }
}

impl<'a> Row<'a> {
    fn find(self, name: &str) -> Option<Cell<'a>> {
        let place = self.table.position(name)?;
        let value = self.values.get(place).unwrap_or(&Value::Absent);
        Some(Cell { column: &self.table.columns[place], value, options: self.options })
    }

    fn cell(self, name: &str) -> Result<Cell<'a>, Error> {
        self.find(name).ok_or_else(|| Error::column(name, "is missing in the outbox"))
    }

    fn placed(self, name: &str) -> Result<Option<Cell<'a>>, Error> {
        if self.options.ignore_missing_placements { Ok(self.find(name)) } else { self.cell(name).map(Some) }
    }
}

impl<'a> Cell<'a> {
    fn data(self) -> Result<Data<'a>, Error> {
        connect::data_of(self.column, self.value, self.options)
    }

    fn schema(self) -> Result<Schema, Error> {
        connect::schema_of(self.column, self.options)
    }

    fn text(self) -> Result<std::borrow::Cow<'a, str>, Error> {
        match self.data()? {
            Data::Text(text) => Ok(text),
            _ => Err(Error::column(&self.column.name, "is no text")),
        }
    }

    fn partition(self) -> Result<Option<i32>, Error> {
        match self.data()? {
            Data::Null => Ok(None),
            Data::Int(number) => i32::try_from(number)
                .map(Some)
                .map_err(|_| Error::column(&self.column.name, "does not fit 32 bits with a sign")),
            _ => Err(Error::column(&self.column.name, "is no integer")),
        }
    }
}
