//! Parsing of numbers from their digits, without floating point.

/// Returns the value of `text` times ten to the `shift`, rounded half away from zero.
///
/// Accepts JSON numbers and a little more (a leading `+`, a missing integer part). `None` if
/// the text is not a number or the result does not fit.
#[inline]
pub(crate) fn scaled(text: &[u8], shift: i32) -> Option<i64> {
    plain(text, shift).or_else(|| general(text, shift))
}

/// Handles the common case: up to eighteen digits, none of them rounded away.
#[inline]
fn plain(text: &[u8], shift: i32) -> Option<i64> {
    let mut value: i64 = 0;
    let mut decimals = None;
    if text.len() > 18 {
        return None;
    }
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => value = value * 10 + i64::from(byte - b'0'),
            b'.' if decimals.is_none() && at > 0 => decimals = Some(text.len() - at - 1),
            _ => return None,
        }
    }
    let power = u32::try_from(shift).ok()?.checked_sub(decimals.unwrap_or(0) as u32)?;
    if text.is_empty() { None } else { value.checked_mul(10i64.checked_pow(power)?) }
}

fn general(text: &[u8], shift: i32) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let mut mantissa: u128 = 0;
    let mut exponent = shift;
    let mut any = false;
    let mut fraction = false;
    let mut at = 0;
    while at < digits.len() {
        match digits[at] {
            digit @ b'0'..=b'9' => {
                any = true;
                // Past thirty digits the value no longer fits, or further digits affect only its rounding.
                if mantissa < 10u128.pow(30) {
                    mantissa = mantissa * 10 + u128::from(digit - b'0');
                    exponent = exponent.saturating_sub(i32::from(fraction));
                } else {
                    exponent = exponent.saturating_add(i32::from(!fraction));
                }
            }
            b'.' if !fraction => fraction = true,
            b'e' | b'E' => {
                exponent = exponent.saturating_add(power(&digits[at + 1..])?);
                break;
            }
            _ => return None,
        }
        at += 1;
    }
    if !any {
        return None;
    }
    let magnitude = shifted(mantissa, exponent)?;
    let value = i128::try_from(magnitude).ok()?;
    i64::try_from(if negative { -value } else { value }).ok()
}

/// Returns `mantissa * 10^exponent`, rounded half up.
fn shifted(mantissa: u128, exponent: i32) -> Option<u128> {
    if mantissa == 0 {
        return Some(0);
    }
    let scale = 10u128.checked_pow(exponent.unsigned_abs());
    if exponent >= 0 {
        return mantissa.checked_mul(scale?);
    }
    let Some(scale) = scale else { return Some(0) };
    let (whole, rest) = (mantissa / scale, mantissa % scale);
    Some(whole + u128::from(rest >= scale - rest))
}

/// Returns the power of ten after an `e`.
fn power(text: &[u8]) -> Option<i32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses a whole number: exactly from its digits, or any decimal form of a whole number (`7.0`, `1e3`).
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if !(1..=18).contains(&digits.len()) {
        return scaled(text, 0);
    }
    let mut value: i64 = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return scaled(text, 0);
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -value } else { value })
}

/// Parses a whole number from zero to 2^64.
pub(crate) fn unsigned(text: &[u8]) -> Option<u64> {
    match integer(text) {
        Some(value) => u64::try_from(value).ok(),
        None => std::str::from_utf8(text).ok()?.parse().ok(),
    }
}

/// Parses any number, including the spellings of not-a-number and the infinities.
pub(crate) fn float(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_common_case_is_no_exception(text in "[0-9]{0,20}[.]?[0-9]{0,4}[.e-]?", shift in 0..4) {
            if let Some(value) = plain(text.as_bytes(), shift) {
                prop_assert_eq!(general(text.as_bytes(), shift), Some(value));
            }
        }
    }

    #[test]
    fn micros_become_exact_nanos() {
        let check = |text: &str, expect| assert_eq!(scaled(text.as_bytes(), 3), expect, "{text}");
        check("1727123456789012.345", Some(1_727_123_456_789_012_345));
        check("4373858359541.594", Some(4_373_858_359_541_594));
        check("7", Some(7_000));
        check("-0.0005", Some(-1));
        check("0.0004", Some(0));
        check("1.2e3", Some(1_200_000));
        check("12E-1", Some(1_200));
        check("0.00000000000000000000000000000000000000000001", Some(0));
        check("1e999999999", None);
        check("0e999999999", Some(0));
        check("1e-999999999", Some(0));
        check("99999999999999999999", None);
        check("", None);
        check("-", None);
        check(".", None);
        check("1.2.3", None);
        check("1e", None);
        check("0x10", None);
    }

    #[test]
    fn whole_numbers() {
        assert_eq!(integer(b"-42"), Some(-42));
        assert_eq!(integer(b"7.0"), Some(7));
        assert_eq!(integer(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(integer(b"9223372036854775808"), None);
        assert_eq!(unsigned(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(unsigned(b"-1"), None);
        assert_eq!(float(b"NaN").map(f64::is_nan), Some(true));
        assert_eq!(float(b"-Infinity"), Some(f64::NEG_INFINITY));
    }
}
