//! Scanning for the end of the plain part of a string, eight bytes at a time.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns the position of the first quote, backslash or control character at or after `from`, otherwise the
/// length of `bytes`.
pub(crate) fn string_stop(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let hits =
            zeros(word ^ (ONES * b'"' as u64)) | zeros(word ^ (ONES * b'\\' as u64)) | below_space(word);
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < bytes.len() && !matches!(bytes[at], b'"' | b'\\' | 0..0x20) {
        at += 1;
    }
    at.min(bytes.len())
}

/// Returns the high bit of every zero byte; bytes above the first zero may be marked wrongly.
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH
}

/// Returns the high bit of every byte below a space; bytes above the first such byte may be marked wrongly.
const fn below_space(word: u64) -> u64 {
    word.wrapping_sub(ONES * 0x20) & !word & HIGH
}

/// Returns the position of the first byte at or after `from` that is neither white space nor a control
/// character, otherwise the length of `bytes`.
#[inline]
pub(crate) fn blank_stop(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    if bytes.get(at).is_some_and(|&byte| byte > b' ') {
        return at;
    }
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let hits = above_space(u64::from_le_bytes(*chunk));
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|&byte| byte <= b' ') {
        at += 1;
    }
    at
}

/// Returns exactly the high bits of the bytes above a space.
const fn above_space(word: u64) -> u64 {
    ((word | HIGH).wrapping_sub(ONES * 0x21) | word) & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_the_plain_loop(bytes in proptest::collection::vec(any::<u8>(), 0..64), from in 0usize..70) {
            let from = from.min(bytes.len());
            let plain = bytes[from..]
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))
                .map_or(bytes.len(), |offset| from + offset);
            prop_assert_eq!(string_stop(&bytes, from), plain);
            let text = bytes[from..].iter().position(|&byte| byte > b' ');
            prop_assert_eq!(blank_stop(&bytes, from), text.map_or(bytes.len(), |offset| from + offset));
        }
    }
}
