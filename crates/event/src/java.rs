//! What Java makes of texts and numbers, where a format rests on it.

/// `String.hashCode()`: over UTF-16 units, wrapping at 32 bits.
pub(crate) fn string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0, |hash: i32, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// `Double.toString()` of Java 8 to 18. Java 19 prints fewer digits of some whole numbers beyond 2^53.
pub(crate) fn double(number: f64, out: &mut String) {
    let shortest = |digits: usize| format!("{number:.digits$e}");
    write(number, 53, &format!("{number:e}"), |text| text.parse() == Ok(number), shortest, out);
}

/// `Float.toString()` of Java 8 to 18. Java 19 prints fewer digits of some whole numbers beyond 2^24.
pub(crate) fn float(number: f32, out: &mut String) {
    let shortest = |digits: usize| format!("{number:.digits$e}");
    write(f64::from(number), 24, &format!("{number:e}"), |text| text.parse() == Ok(number), shortest, out);
}

/// Writes a number of which `bits` are significant, and whose shortest text is `shortest`. Of texts as
/// short, Java takes the nearest, then the one whose last digit is even.
fn write(
    number: f64,
    bits: u32,
    shortest: &str,
    is_same: impl Fn(&str) -> bool,
    rounded_to: impl Fn(usize) -> String,
    out: &mut String,
) {
    if !number.is_finite() {
        out.push_str(match (number.is_nan(), number < 0.0) {
            (true, _) => "NaN",
            (false, true) => "-Infinity",
            (false, false) => "Infinity",
        });
        return;
    }
    if number.is_sign_negative() {
        out.push('-');
    }
    if number == 0.0 {
        out.push_str("0.0");
    } else if number.fract() == 0.0 && number.abs() < 2_f64.powi(63) {
        let (digits, exponent) = whole(number.abs() as u64, bits);
        layout(&digits, exponent, out);
    } else {
        // Where one digit is enough, Java prints the best two (`4.9E-324`).
        let digits = shortest.bytes().take_while(|letter| *letter != b'e').filter(u8::is_ascii_digit).count();
        let nearest = rounded_to(digits.max(2) - 1);
        let (mantissa, exponent) =
            (if is_same(&nearest) { &nearest } else { shortest }).split_once('e').unwrap_or_default();
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        layout(&digits, exponent.parse().unwrap_or(0), out);
    }
}

/// The digits of a whole number and the exponent of the first. Digits that the significant bits do not
/// tell are rounded away, though not as many as could be.
fn whole(number: u64, bits: u32) -> (String, i32) {
    let exponent = number.ilog2();
    let insignificant = match exponent.checked_sub(bits + 1) {
        Some(power @ 2..) => 2_u64.checked_pow(power).map_or(0, u64::ilog10),
        _ => 0,
    };
    let unit = 10_u64.pow(insignificant);
    let rounded = if insignificant > 0 && number % unit >= unit / 2 { number / unit + 1 } else { number / unit };
    let exponent = rounded.checked_ilog10().unwrap_or(0) + insignificant;
    (rounded.to_string(), exponent.cast_signed())
}

fn layout(digits: &str, exponent: i32, out: &mut String) {
    if (-3..7).contains(&exponent) {
        plain(digits, exponent, out);
        return;
    }
    let (first, rest) = digits.split_at(1);
    let rest = match rest.trim_end_matches('0') {
        "" => "0",
        rest => rest,
    };
    out.push_str(&format!("{first}.{rest}E{exponent}"));
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
            (1_323_840_379_431_467_008.0, "1.32384037943146701E18"),
            (1e18, "1.0E18"),
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
        for number in [180.2_f32, 1e10, f32::from_bits(1), 0.1, 71_918_352.0, 5_203_854.5 / 2.0] {
            float(number, &mut out);
            out.push(' ');
        }
        assert_eq!(out, "180.2 1.0E10 1.4E-45 0.1 7.1918352E7 2601927.2 ");
    }

    #[test]
    fn hashes_are_those_of_java() {
        assert_eq!(string_hash(""), 0);
        assert_eq!(string_hash("polygenelubricants"), i32::MIN);
        assert_eq!(string_hash("hello"), 99_162_322);
    }
}
