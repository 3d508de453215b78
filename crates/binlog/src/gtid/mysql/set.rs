//! Sets of GTIDs.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{Gtid, Source, Tag, variable};
use crate::{Error, cursor::Cursor};

/// Numbers from `start` up to, but without, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Numbers are below this, as the server has them in an `i64`.
pub(super) const NUMBER_END: u64 = i64::MAX as u64;

/// A set of GTIDs, such as `gtid_executed`: which transactions a stream has given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Of each source the intervals, in their order, none touching another and none empty.
    sources: BTreeMap<Source, Vec<Interval>>,
}

impl Set {
    /// Whether there is no GTID in it.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Whether the GTID is in it.
    pub fn contains(&self, gtid: &Gtid) -> bool {
        let Some(intervals) = self.sources.get(&gtid.source) else {
            return false;
        };
        let after = intervals.partition_point(|interval| interval.start <= gtid.number);
        after > 0 && intervals.get(after - 1).is_some_and(|interval| gtid.number < interval.end)
    }

    /// Adds a GTID. A number that no transaction can have (0, or the largest) is left out.
    pub fn insert(&mut self, gtid: &Gtid) {
        if let Some(end) = gtid.number.checked_add(1) {
            self.insert_interval(&gtid.source, Interval { start: gtid.number, end });
        }
    }

    /// Adds all GTIDs of another set.
    pub fn insert_all(&mut self, other: &Self) {
        for (source, intervals) in &other.sources {
            intervals.iter().for_each(|interval| self.insert_interval(source, *interval));
        }
    }

    /// Whether all GTIDs of another set are in this one.
    pub fn contains_all(&self, other: &Self) -> bool {
        other.sources.iter().all(|(source, intervals)| {
            let known = self.sources.get(source).map_or(&[][..], Vec::as_slice);
            intervals.iter().all(|wanted| {
                // Intervals do not touch, so one alone must have all of it.
                let after = known.partition_point(|interval| interval.start <= wanted.start);
                after > 0 && known.get(after - 1).is_some_and(|interval| wanted.end <= interval.end)
            })
        })
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = (&Source, &[Interval])> {
        self.sources.iter().map(|(source, intervals)| (source, intervals.as_slice()))
    }

    pub(super) fn insert_interval(&mut self, source: &Source, interval: Interval) {
        let Interval { start, end } = interval;
        if start == 0 || start >= end || end > NUMBER_END {
            return;
        }
        if !self.sources.contains_key(source) {
            self.sources.insert(source.clone(), Vec::new());
        }
        let Some(intervals) = self.sources.get_mut(source) else {
            return;
        };
        // The usual case: the next transaction of that source.
        match intervals.last_mut() {
            Some(last) if last.end == start => return last.end = end,
            Some(last) if last.end > start => {}
            _ => return intervals.push(interval),
        }
        let from = intervals.partition_point(|known| known.end < start);
        let to = intervals.partition_point(|known| known.start <= end);
        let touched = intervals.get(from..to).unwrap_or_default();
        let start = touched.first().map_or(start, |first| first.start.min(start));
        let end = touched.last().map_or(end, |last| last.end.max(end));
        intervals.splice(from..to, [Interval { start, end }]);
    }

    /// The form that `COM_BINLOG_DUMP_GTID` and the `PREVIOUS_GTIDS` event have. Without tags it is the
    /// one that servers before 8.4 know too.
    pub fn encode(&self) -> Vec<u8> {
        let is_tagged = self.sources.keys().any(|source| !source.tag.is_empty());
        let count = self.sources.len() as u64;
        let mut bytes = Vec::new();
        // The tagged form has a mark in the first and last of the eight bytes of the count.
        let count = if is_tagged { count << 8 | 1 | 1 << 56 } else { count };
        bytes.extend_from_slice(&count.to_le_bytes());
        for (source, intervals) in &self.sources {
            bytes.extend_from_slice(source.uuid.as_bytes());
            if is_tagged {
                // At most 32 bytes, so that the length has one byte.
                bytes.push((source.tag.as_str().len() as u8) << 1);
                bytes.extend_from_slice(source.tag.as_str().as_bytes());
            }
            bytes.extend_from_slice(&(intervals.len() as u64).to_le_bytes());
            for Interval { start, end } in intervals {
                bytes.extend_from_slice(&start.to_le_bytes());
                bytes.extend_from_slice(&end.to_le_bytes());
            }
        }
        bytes
    }

    /// Reads what [`Set::encode`] writes, and any server.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] and [`Error::Malformed`] if it is not such a set.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(bytes, "set of GTIDs");
        let count = cursor.array::<8>()?;
        let is_tagged = count[7] == 1;
        let count = u64::from_le_bytes(count);
        let count = if is_tagged { count << 8 >> 16 } else { count };
        let mut set = Self::default();
        for _ in 0..count {
            let source = source(&mut cursor, is_tagged)?;
            for _ in 0..cursor.u64()? {
                let (start, end) = (cursor.u64()?, cursor.u64()?);
                if start == 0 || start >= end || end > NUMBER_END {
                    return Err(cursor.malformed("an interval is empty or out of range"));
                }
                set.insert_interval(&source, Interval { start, end });
            }
        }
        match cursor.is_empty() {
            true => Ok(set),
            false => Err(cursor.malformed("bytes are left after the last interval")),
        }
    }
}

fn source(cursor: &mut Cursor<'_>, is_tagged: bool) -> Result<Source, Error> {
    let uuid = Uuid::from_bytes(cursor.array()?);
    if !is_tagged {
        return Ok(Source { uuid, tag: Tag::default() });
    }
    let length = variable(cursor)?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    Ok(Source { uuid, tag: Tag::new(cursor.text(length)?)? })
}
