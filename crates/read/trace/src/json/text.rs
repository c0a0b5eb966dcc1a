//! String as written in the file.

/// JSON string between its quotes, with escapes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Text<'a> {
    /// Bytes between the quotes.
    pub(crate) raw: &'a [u8],
    /// Whether they contain a backslash.
    pub(crate) escaped: bool,
}

impl<'a> Text<'a> {
    /// Returns the unescaped bytes; `scratch` holds them if there are escapes.
    pub(crate) fn bytes<'s>(&self, scratch: &'s mut Vec<u8>) -> &'s [u8]
    where
        'a: 's,
    {
        if !self.escaped {
            return self.raw;
        }
        scratch.clear();
        unescape(self.raw, scratch);
        scratch
    }

    /// Returns the unescaped text, with invalid UTF-8 replaced.
    pub(crate) fn decoded(self) -> String {
        String::from_utf8_lossy(self.bytes(&mut Vec::new())).into_owned()
    }
}

/// Appends `raw` with its escapes resolved; a broken escape is copied as written.
fn unescape(raw: &[u8], out: &mut Vec<u8>) {
    let mut rest = raw;
    while let Some(slash) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..slash]);
        rest = &rest[slash..];
        let (plain, used) = match rest.get(1) {
            Some(b'n') => (b'\n', 2),
            Some(b't') => (b'\t', 2),
            Some(b'r') => (b'\r', 2),
            Some(b'b') => (8, 2),
            Some(b'f') => (12, 2),
            Some(&mark @ (b'"' | b'\\' | b'/')) => (mark, 2),
            Some(b'u') => match code_point(rest) {
                Some((point, used)) => {
                    out.extend_from_slice(point.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = &rest[used..];
                    continue;
                }
                None => (b'\\', 1),
            },
            _ => (b'\\', 1),
        };
        out.push(plain);
        rest = &rest[used..];
    }
    out.extend_from_slice(rest);
}

/// Returns the character of `\uXXXX`, or of a surrogate pair, and the number of bytes it takes.
fn code_point(text: &[u8]) -> Option<(char, usize)> {
    let first = unit(text)?;
    if let 0xD800..0xDC00 = first {
        let second = text.get(6..).and_then(unit).filter(|low| (0xDC00..0xE000).contains(low))?;
        let point = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return Some((char::from_u32(point)?, 12));
    }
    Some((char::from_u32(first)?, 6))
}

/// Returns the number in `\uXXXX`.
fn unit(text: &[u8]) -> Option<u32> {
    let [b'\\', b'u', digits @ ..] = text else { return None };
    let digits = std::str::from_utf8(digits.get(..4)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        let check = |raw: &str, expect: &str| {
            let text = Text { raw: raw.as_bytes(), escaped: raw.contains('\\') };
            assert_eq!(text.decoded(), expect, "{raw}");
        };
        check("plain", "plain");
        check(r#"a\"b\\c\/d\n"#, "a\"b\\c/d\n");
        check(r"\u00b5s \ud83d\ude00", "µs 😀");
        check(r"\ud83d alone", r"\ud83d alone");
        check(r"\q \u12", r"\q \u12");
        check("\\", "\\");
    }
}
