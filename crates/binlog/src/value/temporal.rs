//! Dates and times.
//!
//! They are kept as their parts and never checked: MySQL stores `0000-00-00`, and with lax modes
//! `2024-02-31`, and what is stored is what is read.

use std::fmt;

use crate::{Error, cursor::Cursor};

/// DATE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// 0 to 9999.
    pub year: u16,
    /// 1 to 12; 0 in a zero date.
    pub month: u8,
    /// 1 to 31; 0 in a zero date.
    pub day: u8,
}

/// TIME: a span, not a time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Time {
    /// Whether it is less than zero.
    pub is_negative: bool,
    /// 0 to 838.
    pub hours: u16,
    /// 0 to 59.
    pub minutes: u8,
    /// 0 to 59.
    pub seconds: u8,
    /// Millionths of a second.
    pub micros: u32,
}

/// DATETIME: a date and time of nowhere in particular.
///
/// `{}` writes `2024-02-29 23:59:59`, `{:.3}` adds three digits of the fraction, cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime {
    /// The date.
    pub date: Date,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// Millionths of a second.
    pub micros: u32,
}

/// TIMESTAMP: a moment. Zero is what `0000-00-00 00:00:00` is stored as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970. MariaDB 11.5 and later goes beyond 2038.
    pub seconds: u32,
    /// Millionths of a second.
    pub micros: u32,
}

impl Date {
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let packed = cursor.little(3)?;
        Ok(Self { year: (packed >> 9) as u16, month: (packed >> 5 & 0xf) as u8, day: (packed & 0x1f) as u8 })
    }
}

impl Time {
    pub(super) fn read(digits: u8, cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let size = fraction_bytes(digits);
        let whole_and_fraction = cursor.big(3 + size)?;
        // Offset so that the bytes sort as the times do: a negative time's bytes are below the middle,
        // and its fraction counts down from the next whole second.
        let offset = 1i64 << (23 + 8 * size);
        let signed = whole_and_fraction as i64 - offset;
        let absolute = signed.unsigned_abs();
        let whole = absolute >> (8 * size);
        Ok(Self {
            is_negative: signed < 0,
            hours: (whole >> 12 & 0x3ff) as u16,
            minutes: (whole >> 6 & 0x3f) as u8,
            seconds: (whole & 0x3f) as u8,
            micros: micros(absolute & ((1 << (8 * size)) - 1), size),
        })
    }

    pub(super) fn read_old(cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let [low, middle, high] = cursor.array()?;
        let signed = (u32::from_le_bytes([low, middle, high, 0]) << 8) as i32 >> 8;
        let absolute = signed.unsigned_abs();
        Ok(Self {
            is_negative: signed < 0,
            hours: (absolute / 10_000) as u16,
            minutes: (absolute / 100 % 100) as u8,
            seconds: (absolute % 100) as u8,
            micros: 0,
        })
    }

    /// Reads what JSON holds: 24 bits of time, 24 bits of microseconds, negated as a whole.
    pub(crate) fn from_packed(packed: i64) -> Self {
        let absolute = packed.unsigned_abs();
        let whole = absolute >> 24;
        Self {
            is_negative: packed < 0,
            hours: (whole >> 12 & 0x3ff) as u16,
            minutes: (whole >> 6 & 0x3f) as u8,
            seconds: (whole & 0x3f) as u8,
            micros: (absolute & 0xff_ffff) as u32,
        }
    }
}

impl DateTime {
    pub(super) fn read(digits: u8, cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let bytes: [u8; 5] = cursor.array()?;
        let whole = bytes.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
        let size = fraction_bytes(digits);
        let micros = micros(cursor.big(size)?, size);
        // The first bit is set for all dates that exist; there are no negative ones.
        Ok(packed_datetime(whole & 0x7f_ffff_ffff, micros))
    }

    pub(super) fn read_old(cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let decimal = cursor.u64()?;
        let (date, time) = (decimal / 1_000_000, decimal % 1_000_000);
        Ok(Self {
            date: Date { year: (date / 10_000) as u16, month: (date / 100 % 100) as u8, day: (date % 100) as u8 },
            hour: (time / 10_000) as u8,
            minute: (time / 100 % 100) as u8,
            second: (time % 100) as u8,
            micros: 0,
        })
    }
}

/// A date and time packed as DATETIME is: years times 13 plus months, then 5 bits of the day, then 5,
/// 6 and 6 bits of the time.
pub(crate) fn packed_datetime(whole: u64, micros: u32) -> DateTime {
    let (months, day) = (whole >> 22, whole >> 17 & 0x1f);
    DateTime {
        date: Date { year: (months / 13) as u16, month: (months % 13) as u8, day: day as u8 },
        hour: (whole >> 12 & 0x1f) as u8,
        minute: (whole >> 6 & 0x3f) as u8,
        second: (whole & 0x3f) as u8,
        micros,
    }
}

impl Timestamp {
    pub(super) fn read(digits: u8, cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let seconds = u32::from_be_bytes(cursor.array()?);
        let size = fraction_bytes(digits);
        Ok(Self { seconds, micros: micros(cursor.big(size)?, size) })
    }

    pub(super) fn read_old(cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        Ok(Self { seconds: cursor.u32()?, micros: 0 })
    }

    /// Microseconds since 1970.
    pub fn unix_micros(&self) -> i64 {
        i64::from(self.seconds) * 1_000_000 + i64::from(self.micros)
    }

    /// The date and time in UTC; all zero for the zero timestamp, as the database shows it.
    pub fn to_utc(&self) -> DateTime {
        self.to_offset(0)
    }

    /// The date and time in a zone that is `seconds_east` ahead of UTC; all zero for the zero timestamp.
    pub fn to_offset(&self, seconds_east: i32) -> DateTime {
        if *self == Self::default() {
            return DateTime::default();
        }
        let seconds = i64::from(self.seconds) + i64::from(seconds_east);
        let second = seconds.rem_euclid(86_400);
        DateTime {
            date: civil(seconds.div_euclid(86_400)),
            hour: (second / 3600) as u8,
            minute: (second / 60 % 60) as u8,
            second: (second % 60) as u8,
            micros: self.micros,
        }
    }
}

/// The date so many days after 1970-01-01. Years are counted from March, so that the day which is
/// there in some years only is the last one.
fn civil(days: i64) -> Date {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Date { year: year as u16, month: month as u8, day: day as u8 }
}

/// Bytes of the fraction: one for each two digits.
fn fraction_bytes(digits: u8) -> usize {
    usize::from(digits).div_ceil(2).min(3)
}

/// Microseconds of a fraction that was stored in so many bytes.
fn micros(fraction: u64, bytes: usize) -> u32 {
    const UNIT: [u64; 4] = [0, 10_000, 100, 1];
    (fraction * UNIT[bytes & 3]) as u32
}

/// Writes the first `precision` of six digits of the fraction, with a point before them.
fn write_fraction(out: &mut fmt::Formatter<'_>, micros: u32) -> fmt::Result {
    match out.precision().unwrap_or(0).min(6) {
        0 => Ok(()),
        digits => {
            let shown = micros / 10u32.pow(6 - digits as u32);
            write!(out, ".{shown:0digits$}")
        }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative { "-" } else { "" };
        write!(out, "{sign}{:02}:{:02}:{:02}", self.hours, self.minutes, self.seconds)?;
        write_fraction(out, self.micros)
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {:02}:{:02}:{:02}", self.date, self.hour, self.minute, self.second)?;
        write_fraction(out, self.micros)
    }
}
