//! The one representation of time.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::Error;

/// A moment in UTC, in milliseconds since the Unix epoch. In JSON it is that integer.
///
/// As text it is RFC 3339 in UTC with exactly three digits of fraction, such as
/// `2026-11-29T15:26:17.123Z`, so that texts sort like moments. Any offset and any fraction is
/// read; what is finer than a millisecond is cut off.
///
/// Only the years 1 to 9999 have such a text. A moment outside of them shows as its number of
/// milliseconds followed by `ms`, which is for people and is not read back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The first moment that has a text: `0001-01-01T00:00:00.000Z`.
    pub const EARLIEST: Self = Self(-62_135_596_800_000);
    /// The last moment that has a text: `9999-12-31T23:59:59.999Z`.
    pub const LATEST: Self = Self(253_402_300_799_999);

    /// The moment itself, or an error where it has no text in RFC 3339.
    pub(crate) fn in_range(self) -> Result<Self, Error> {
        if (Self::EARLIEST..=Self::LATEST).contains(&self) { Ok(self) } else { Err(Error::TimeOutOfRange) }
    }

    /// Reads a moment from whole seconds since the epoch and nanoseconds within the second.
    pub(crate) fn from_seconds(seconds: i64, nanos: u32) -> Result<Self, Error> {
        seconds
            .checked_mul(1_000)
            .and_then(|millis| millis.checked_add(i64::from(nanos / 1_000_000)))
            .ok_or(Error::TimeOutOfRange)
            .and_then(|millis| Self(millis).in_range())
    }

    /// Whole seconds since the epoch, rounded down, and the milliseconds left, 0 to 999.
    pub(crate) fn seconds_and_millis(self) -> (i64, i32) {
        let millis = i32::try_from(self.0.rem_euclid(1_000)).unwrap_or_default();
        (self.0.div_euclid(1_000), millis)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = self.seconds_and_millis();
        match self.in_range().map(|_| OffsetDateTime::from_unix_timestamp(seconds)) {
            Ok(Ok(moment)) => {
                let (year, month, day) = moment.to_calendar_date();
                let (hour, minute, second) = moment.to_hms();
                let mut text = *b"0000-00-00T00:00:00.000Z";
                // In range the year has four digits and no sign.
                put_digits(&mut text[0..4], year.unsigned_abs());
                put_digits(&mut text[5..7], u32::from(u8::from(month)));
                put_digits(&mut text[8..10], u32::from(day));
                put_digits(&mut text[11..13], u32::from(hour));
                put_digits(&mut text[14..16], u32::from(minute));
                put_digits(&mut text[17..19], u32::from(second));
                put_digits(&mut text[20..23], millis.unsigned_abs());
                f.write_str(std::str::from_utf8(&text).unwrap_or_default())
            }
            _ => write!(f, "{}ms", self.0),
        }
    }
}

/// Writes a number into all the places given, with leading zeros. Every event has a time, and this
/// takes a quarter of what `write!` takes.
fn put_digits(places: &mut [u8], mut number: u32) {
    for place in places.iter_mut().rev() {
        *place = b"0123456789"[(number % 10) as usize];
        number /= 10;
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // The reader below takes any byte between date and time.
        if text.as_bytes().get(10).is_some_and(|byte| !b"Tt ".contains(byte)) {
            return Err(Error::Time { source: None });
        }
        let moment = OffsetDateTime::parse(text, &Rfc3339).map_err(|source| Error::Time { source: Some(source) })?;
        Self::from_seconds(moment.unix_timestamp(), moment.nanosecond())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().0
    }

    #[test]
    fn text_has_three_digits_of_fraction_and_ends_in_z() {
        assert_eq!(Timestamp(1_795_965_977_123).to_string(), "2026-11-29T15:26:17.123Z");
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp(-1).to_string(), "1969-12-31T23:59:59.999Z");
        assert_eq!(Timestamp::EARLIEST.to_string(), "0001-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::LATEST.to_string(), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn every_offset_and_fraction_is_read() {
        let moment = 1_795_965_977_000;
        assert_eq!(read("2026-11-29T15:26:17Z"), moment);
        assert_eq!(read("2026-11-29t15:26:17z"), moment);
        assert_eq!(read("2026-11-29 15:26:17.1Z"), moment + 100);
        assert_eq!(read("2026-11-29T23:26:17.123456789123+08:00"), moment + 123);
        assert_eq!(read("2026-11-29T11:56:17.9999-03:30"), moment + 999);
        assert_eq!(read("1969-12-31T23:59:59.9999Z"), -1);
        assert_eq!(read("2016-12-31T23:59:60Z"), 1_483_228_799_999);
    }

    #[test]
    fn what_is_not_rfc_3339_is_refused() {
        let refused = [
            "",
            "2026-11-29",
            "2026-11-29T15:26Z",
            "2026-11-29T15:26:17",
            "2026-11-29x15:26:17Z",
            "2026-02-30T15:26:17Z",
            "2026-11-29T24:00:00Z",
            "2026-11-29T15:26:17.Z",
            "2026-11-29T15:26:17Z ",
            "2026-11-29T15:26:17+0800",
            "2026-11-29T15:26:17é",
        ];
        for text in refused {
            assert!(matches!(text.parse::<Timestamp>(), Err(Error::Time { .. })), "{text:?}");
        }
    }

    #[test]
    fn moments_beyond_the_years_of_rfc_3339_are_errors_and_not_panics() {
        for text in ["0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"] {
            assert!(matches!(text.parse::<Timestamp>(), Err(Error::TimeOutOfRange)), "{text}");
        }
        assert_eq!(Timestamp(i64::MAX).to_string(), "9223372036854775807ms");
        assert_eq!(Timestamp(i64::MIN).to_string(), "-9223372036854775808ms");
        assert_eq!(Timestamp(Timestamp::LATEST.0 + 1).to_string(), "253402300800000ms");
    }

    #[test]
    fn json_is_the_integer() {
        assert_eq!(serde_json::to_string(&Timestamp(1_795_965_977_123)).unwrap(), "1795965977123");
        assert_eq!(serde_json::from_str::<Timestamp>("-5").unwrap(), Timestamp(-5));
    }
}
