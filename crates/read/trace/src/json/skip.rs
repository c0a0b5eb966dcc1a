//! Skipping of values without parsing them.

use super::{Cursor, Fault, Value};

/// Maximum nesting depth of containers.
const MAX_DEPTH: usize = 1024;

impl<'a> Cursor<'a> {
    /// Skips one value; only strings and brackets are examined, and no stack is used.
    pub(crate) fn skip(&mut self) -> Result<(), Fault> {
        let first = self.peek()?;
        if first == b'"' {
            // Of any length: it is not stored.
            self.at += 1;
            self.after_value = true;
            return self.text().map(|_| ());
        }
        if !matches!(first, b'{' | b'[') {
            return self.value().map(|_: Value<'_>| ());
        }
        // One bit per level: whether it is an object.
        let mut objects = [0u64; MAX_DEPTH / 64];
        let mut depth = 0;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'"' => {
                    self.text()?;
                }
                b'{' | b'[' => {
                    let level = objects.get_mut(depth / 64).ok_or(Fault::Unexpected)?;
                    let bit = 1 << (depth % 64);
                    *level = if byte == b'{' { *level | bit } else { *level & !bit };
                    depth += 1;
                }
                b'}' | b']' => {
                    depth -= 1;
                    let object = objects[depth / 64] >> (depth % 64) & 1 == 1;
                    if object != (byte == b'}') {
                        return Err(Fault::Unexpected);
                    }
                    if depth == 0 {
                        self.after_value = true;
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        Err(Fault::End)
    }

    /// Skips one value and returns its bytes.
    pub(crate) fn raw(&mut self) -> Result<&'a [u8], Fault> {
        self.peek()?;
        let start = self.at;
        self.skip()?;
        Ok(&self.bytes[start..self.at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_over_one_value() {
        let check = |json: &str, expect: Result<&str, Fault>| {
            let raw = Cursor::new(json.as_bytes()).raw();
            assert_eq!(raw.map(|raw| std::str::from_utf8(raw).unwrap_or("")), expect, "{json}");
        };
        check(r#" {"a]": [1, {}]} , 7"#, Ok(r#"{"a]": [1, {}]}"#));
        check("12 ,", Ok("12"));
        check("[}", Err(Fault::Unexpected));
        check("[[", Err(Fault::End));
        check(&"[".repeat(100_000), Err(Fault::Unexpected));
        check(&("[".repeat(1000) + &"]".repeat(1000)), Ok(&("[".repeat(1000) + &"]".repeat(1000))));
    }
}
