//! DECIMAL, exact.

use std::fmt;

use crate::{Error, cursor::Cursor};

/// Digits that four bytes hold; a rest of fewer takes fewer bytes.
const GROUP_DIGITS: u8 = 9;
const GROUP_BYTES: usize = 4;
const REST_BYTES: [usize; 9] = [0, 1, 1, 2, 2, 3, 3, 4, 4];

/// A DECIMAL, exact. It is written as the database writes it: all digits after the point, none before
/// it that could be left out, but one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal<'a> {
    bytes: &'a [u8],
    precision: u8,
    scale: u8,
}

impl<'a> Decimal<'a> {
    pub(crate) fn read(precision: u8, scale: u8, cursor: &mut Cursor<'a>) -> Result<Self, Error> {
        let Some(whole) = precision.checked_sub(scale) else {
            return Err(cursor.malformed("a DECIMAL has more digits after the point than in all"));
        };
        let bytes = cursor.take(size(whole) + size(scale))?;
        Ok(Self { bytes, precision, scale })
    }

    /// Digits after the point.
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Digits in all.
    pub fn precision(&self) -> u8 {
        self.precision
    }

    /// Whether it is less than zero.
    pub fn is_negative(&self) -> bool {
        // The sign is the first bit, inverted, so that the bytes sort as the numbers do.
        self.bytes.first().is_some_and(|byte| byte & 0x80 == 0)
    }
}

impl fmt::Display for Decimal<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let invert = if self.is_negative() { 0xff } else { 0 };
        let mut bytes = self.bytes.iter().enumerate().map(|(position, byte)| {
            let sign = if position == 0 { 0x80 } else { 0 };
            byte ^ invert ^ sign
        });
        let mut group = |size: usize| bytes.by_ref().take(size).fold(0u32, |value, byte| value << 8 | u32::from(byte));
        if self.is_negative() {
            out.write_str("-")?;
        }
        let whole = self.precision.saturating_sub(self.scale);
        let rest = whole % GROUP_DIGITS;
        let mut is_begun = false;
        for (size, width) in std::iter::once((REST_BYTES[usize::from(rest)], rest))
            .chain((0..whole / GROUP_DIGITS).map(|_| (GROUP_BYTES, GROUP_DIGITS)))
        {
            let value = group(size);
            if is_begun {
                write!(out, "{value:0width$}", width = usize::from(width))?;
            } else if value != 0 {
                write!(out, "{value}")?;
                is_begun = true;
            }
        }
        if !is_begun {
            out.write_str("0")?;
        }
        if self.scale > 0 {
            out.write_str(".")?;
        }
        for _ in 0..self.scale / GROUP_DIGITS {
            write!(out, "{:09}", group(GROUP_BYTES))?;
        }
        let rest = self.scale % GROUP_DIGITS;
        if rest > 0 {
            write!(out, "{:0width$}", group(REST_BYTES[usize::from(rest)]), width = usize::from(rest))?;
        }
        Ok(())
    }
}

/// Bytes of so many digits on one side of the point.
fn size(digits: u8) -> usize {
    usize::from(digits / GROUP_DIGITS) * GROUP_BYTES + REST_BYTES[usize::from(digits % GROUP_DIGITS)]
}
