//! What Java makes of texts and numbers, where a format rests on it.

/// `String.hashCode()`: over UTF-16 units, wrapping at 32 bits.
pub(crate) fn string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0, |hash: i32, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// `Double.toString()` as of JDK 19: the shortest digits that read back as the same number, two at
/// least. JDK 18 and older print a digit more for some numbers (their bug 4511638).
pub(crate) fn double(number: f64, out: &mut String) {
    if number.is_finite() {
        decimal(&format!("{number:e}"), &format!("{number:.1e}"), out);
    } else {
        infinite(number.is_nan(), number < 0.0, out);
    }
}

/// `Float.toString()` as of JDK 19, see [`double`].
pub(crate) fn float(number: f32, out: &mut String) {
    if number.is_finite() {
        decimal(&format!("{number:e}"), &format!("{number:.1e}"), out);
    } else {
        infinite(number.is_nan(), number < 0.0, out);
    }
}

fn infinite(is_nan: bool, is_negative: bool, out: &mut String) {
    out.push_str(match (is_nan, is_negative) {
        (true, _) => "NaN",
        (false, true) => "-Infinity",
        (false, false) => "Infinity",
    });
}

/// Turns `-1.25e-7` into Java's layout. Where one digit is enough, Java prints the best two
/// (`4.9E-324`), which is what `two_digits` holds.
fn decimal(shortest: &str, two_digits: &str, out: &mut String) {
    let text = if shortest.contains('.') { shortest } else { two_digits };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let unsigned = mantissa.trim_start_matches('-');
    if unsigned.len() != mantissa.len() {
        out.push('-');
    }
    let digits: String = unsigned.chars().filter(char::is_ascii_digit).collect();
    if digits.bytes().all(|digit| digit == b'0') {
        out.push_str("0.0");
    } else if (-3..7).contains(&exponent) {
        plain(&digits, exponent, out);
    } else {
        let (first, rest) = digits.split_at(1);
        out.push_str(&format!("{first}.{rest}E{exponent}"));
    }
}

/// Writes digits, of which the first is worth 10^exponent, with at least one digit after the point.
fn plain(digits: &str, exponent: i32, out: &mut String) {
    let Ok(exponent) = usize::try_from(exponent) else {
        out.push_str("0.");
        (1..exponent.unsigned_abs()).for_each(|_| out.push('0'));
        out.push_str(digits.trim_end_matches('0'));
        return;
    };
    let whole = exponent + 1;
    if digits.len() <= whole {
        out.push_str(digits);
        (digits.len()..whole).for_each(|_| out.push('0'));
        out.push_str(".0");
        return;
    }
    let (before, after) = digits.split_at(whole);
    out.push_str(before);
    out.push('.');
    let after = after.trim_end_matches('0');
    out.push_str(if after.is_empty() { "0" } else { after });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: f64) -> String {
        let mut out = String::new();
        double(number, &mut out);
        out
    }

    #[test]
    fn doubles_are_laid_out_as_java_does() {
        for (number, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (100.0, "100.0"),
            (1_234_567.0, "1234567.0"),
            (9_999_999.0, "9999999.0"),
            (10_000_000.0, "1.0E7"),
            (12_345_678.9, "1.23456789E7"),
            (0.001, "0.001"),
            (0.00123, "0.00123"),
            (0.000_999, "9.99E-4"),
            (1e23, "1.0E23"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::from_bits(1), "4.9E-324"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(text(number), expected);
        }
    }

    #[test]
    fn floats_have_digits_of_their_own() {
        let mut out = String::new();
        for number in [180.2_f32, 1e10, f32::from_bits(1), 0.1, 16_777_216.0] {
            float(number, &mut out);
            out.push(' ');
        }
        assert_eq!(out, "180.2 1.0E10 1.4E-45 0.1 1.6777216E7 ");
    }

    #[test]
    fn hashes_are_those_of_java() {
        assert_eq!(string_hash(""), 0);
        assert_eq!(string_hash("polygenelubricants"), i32::MIN);
        assert_eq!(string_hash("hello"), 99_162_322);
    }
}
