//! Rows of an outbox table as a SELECT gives them.

use std::borrow::Cow;

use mysql_async::Value as Answer;
use tidings_event::{
    Timestamp,
    row::{self, Change, Date, DateTime, Operation, Time, Value},
};

use super::{
    Gap,
    change::{Changes, Table},
    connection::Connection,
    definition::{Described, Reading},
    options::OutboxTable,
    seen::Known,
    server::quoted,
};
use crate::{Error, Result};

/// A name for a statement.
pub(super) fn name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The columns as they must be asked for: labels of ENUM and SET as numbers, as the binlog has them.
pub(super) fn columns(columns: &[Described]) -> String {
    columns_of("outbox", columns)
}

/// The same of the table with that alias.
pub(super) fn columns_of(alias: &str, columns: &[Described]) -> String {
    let column = |described: &Described| match described.data_type.as_str() {
        "enum" | "set" => format!("CAST({alias}.{} AS UNSIGNED)", name(&described.column.name)),
        _ => format!("{alias}.{}", name(&described.column.name)),
    };
    columns.iter().map(column).collect::<Vec<_>>().join(", ")
}

/// Rows by their numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) from: u64,
    /// The last number; none for all that follow.
    pub(super) to: Option<u64>,
    /// Of each period, counted from a number on, only so many.
    pub(super) comb: Option<Comb>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Comb {
    start: u64,
    hole: u64,
    period: u64,
}

impl Range {
    /// Rows that would fill a gap.
    pub(super) fn of(gap: &Gap) -> Self {
        let comb = match gap.known() {
            Known::Comb { hole, period } => Some(Comb { start: gap.from, hole, period }),
            Known::Hole | Known::Blur { .. } => None,
        };
        Self { from: gap.from, to: Some(gap.to), comb }
    }

    /// The condition, and what [`Range::params`] are for.
    fn condition(&self, seq: &str) -> String {
        let mut condition = format!("{seq} >= ?");
        if self.to.is_some() {
            condition.push_str(&format!(" AND {seq} <= ?"));
        }
        if self.comb.is_some() {
            condition.push_str(&format!(" AND MOD({seq} - ?, ?) < ?"));
        }
        condition
    }

    pub(super) fn params(&self) -> Vec<Answer> {
        let mut params = vec![self.from.into()];
        params.extend(self.to.map(Answer::from));
        params.extend(self.comb.into_iter().flat_map(|comb| [comb.start, comb.period, comb.hole]).map(Answer::from));
        params
    }
}

/// The statement for a page of rows in a range, in the order of numbers.
pub(super) fn page(outbox: &OutboxTable, described: &[Described], range: &Range, rows: u64) -> String {
    let (table, seq) = (quoted(&outbox.database, &outbox.name), name(&outbox.columns.seq));
    let (columns, condition) = (columns(described), range.condition(&seq));
    format!("SELECT {columns} FROM {table} AS outbox WHERE {condition} ORDER BY {seq} LIMIT {rows}")
}

/// How many rows there are from a number to another.
pub(super) async fn count(connection: &mut Connection, outbox: &OutboxTable, from: u64, to: u64) -> Result<u64> {
    let (table, seq) = (quoted(&outbox.database, &outbox.name), name(&outbox.columns.seq));
    let sql = format!("SELECT COUNT(*) FROM {table} WHERE {seq} BETWEEN ? AND ?");
    let count: Option<(u64,)> = connection.first("counting rows of an outbox", &sql, (from, to)).await?;
    Ok(count.map_or(0, |(count,)| count))
}

/// The table as those columns make it.
pub(super) fn table(outbox: &OutboxTable, described: &[Described]) -> Table {
    let columns = described.iter().map(|described| described.column.clone()).collect();
    let definition = row::Table { database: outbox.database.clone(), name: outbox.name.clone(), columns };
    Table::new(definition, &outbox.columns)
}

/// Rows that were selected are rows that were inserted, now and nowhere in the binlog.
pub(super) fn changes<'a>(table: &'a Table, rows: &'a [Change<'a>], now: Timestamp) -> Changes<'a> {
    Changes {
        table,
        operation: Operation::Insert,
        rows,
        event_seconds: u32::try_from(now.0 / 1_000).unwrap_or(u32::MAX),
        gtid: "",
        file: "",
        position: 0,
        server_id: 0,
    }
}

/// The number in a column.
pub(super) fn number(values: &[Value<'_>], place: Option<usize>) -> Option<u64> {
    match values.get(place?)? {
        Value::UInt(number) => Some(*number),
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// The values of a row that was asked for by [`columns`], with the session's time zone at UTC.
pub(super) fn values(row: mysql_async::Row, described: &[Described]) -> Result<Vec<Value<'static>>> {
    values_behind(row, 0, described)
}

/// The same of a row in which so many other columns stand before them.
pub(super) fn values_behind(
    mut row: mysql_async::Row,
    before: usize,
    described: &[Described],
) -> Result<Vec<Value<'static>>> {
    let mut answer = |column: usize| row.take(before + column).unwrap_or(Answer::NULL);
    described.iter().enumerate().map(|(column, described)| value(answer(column), described)).collect()
}

fn value(answer: Answer, described: &Described) -> Result<Value<'static>> {
    let data_type = described.data_type.as_str();
    Ok(match (answer, data_type) {
        (Answer::NULL, _) => Value::Null,
        (Answer::UInt(number), "enum") => Value::Enum(u16::try_from(number).unwrap_or(0)),
        (Answer::Int(number), "enum") => Value::Enum(u16::try_from(number).unwrap_or(0)),
        (Answer::UInt(bits), "set") => Value::Set(bits),
        (Answer::Int(bits), "set") => Value::Set(u64::try_from(bits).unwrap_or(0)),
        (Answer::UInt(year), "year") => Value::Year(u16::try_from(year).unwrap_or(0)),
        (Answer::Int(year), "year") => Value::Year(u16::try_from(year).unwrap_or(0)),
        (Answer::Int(number), _) if described.column.is_unsigned() => Value::UInt(number.cast_unsigned()),
        (Answer::Int(number), _) => Value::Int(number),
        (Answer::UInt(number), _) => Value::UInt(number),
        (Answer::Float(number), _) => Value::Float(number),
        (Answer::Double(number), _) => Value::Double(number),
        (Answer::Date(year, month, day, ..), "date") => Value::Date(Date { year, month, day }),
        (Answer::Date(year, month, day, hours, minutes, seconds, micros), _) => {
            let moment = DateTime { date: Date { year, month, day }, hours, minutes, seconds, micros };
            if data_type == "timestamp" { timestamp(moment) } else { Value::DateTime(moment) }
        }
        (Answer::Time(is_negative, days, hours, minutes, seconds, micros), _) => {
            let hours = u16::try_from(days * 24 + u32::from(hours)).unwrap_or(u16::MAX);
            Value::Time(Time { is_negative, hours, minutes, seconds, micros })
        }
        (Answer::Bytes(bytes), "bit") => Value::Bit(bytes.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))),
        (Answer::Bytes(bytes), "decimal") => Value::Decimal(text(bytes, described)?),
        (Answer::Bytes(bytes), "json") if !matches!(described.reading, Reading::Text(_)) => {
            Value::Json(text(bytes, described)?)
        }
        (Answer::Bytes(bytes), _) if described.reading == Reading::Plain => Value::Bytes(Cow::Owned(bytes)),
        (Answer::Bytes(bytes), _) if matches!(described.reading, Reading::Padded(_)) => Value::Bytes(Cow::Owned(bytes)),
        // The server has turned it into the connection's character set, or into its usual text.
        (Answer::Bytes(bytes), _) => Value::Text(text(bytes, described)?),
    })
}

fn text(bytes: Vec<u8>, described: &Described) -> Result<Cow<'static, str>> {
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Error::MalformedRow {
        table: "outbox",
        reason: format!("`{}` is not UTF-8", described.column.name),
    })
}

/// A moment that was shown in UTC. The zero timestamp is the start of the epoch, as in the binlog.
fn timestamp(moment: DateTime) -> Value<'static> {
    let Date { year, month, day } = moment.date;
    if year == 0 {
        return Value::Timestamp { seconds: 0, micros: 0 };
    }
    // Days since 1970 of the civil calendar, counted in years that begin in March.
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
    let (shifted, since_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let day_of_year = (153 * since_march + 2) / 5 + day - 1;
    let days = 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year - 719_468;
    let of_day = i64::from(moment.hours) * 3_600 + i64::from(moment.minutes) * 60 + i64::from(moment.seconds);
    Value::Timestamp { seconds: days * 86_400 + of_day, micros: moment.micros }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_seconds_since_the_epoch() {
        let at = |year, month, day, hours| {
            let date = Date { year, month, day };
            timestamp(DateTime { date, hours, minutes: 0, seconds: 1, micros: 5 })
        };
        assert_eq!(at(1970, 1, 1, 0), Value::Timestamp { seconds: 1, micros: 5 });
        assert_eq!(at(2000, 2, 29, 0), Value::Timestamp { seconds: 951_782_401, micros: 5 });
        assert_eq!(at(2038, 1, 19, 3), Value::Timestamp { seconds: 2_147_482_801, micros: 5 });
        assert_eq!(at(0, 0, 0, 0), Value::Timestamp { seconds: 0, micros: 0 });
    }
}
