//! Type strings: `Tensor(float)`, `GenericList[Int,Tensor(long int)]`.

/// Returns the element type of `Tensor(…)`.
pub(super) fn tensor(name: &[u8]) -> Option<&[u8]> {
    name.strip_prefix(b"Tensor(")?.strip_suffix(b")")
}

/// Returns the types in `GenericList[…]` or `Tuple[…]`; if there are more values than types, the last type repeats.
pub(super) fn elements(name: &[u8]) -> Elements<'_> {
    let inner = name.iter().position(|&byte| byte == b'[').map(|open| &name[open + 1..]);
    let rest = inner.and_then(|inner| inner.strip_suffix(b"]")).unwrap_or_default();
    Elements { rest, last: b"" }
}

/// Endless iterator over the types in a list type.
pub(super) struct Elements<'a> {
    rest: &'a [u8],
    last: &'a [u8],
}

impl<'a> Elements<'a> {
    pub(super) fn next(&mut self) -> &'a [u8] {
        if self.rest.is_empty() {
            return self.last;
        }
        let mut depth = 0usize;
        let end = self.rest.iter().position(|byte| {
            match byte {
                b'[' | b'(' => depth += 1,
                b']' | b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && *byte == b','
        });
        let (first, rest) = match end {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, &b""[..]),
        };
        self.rest = rest;
        self.last = first;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_types_come_apart() {
        let mut types = elements(b"GenericList[GenericList[Int,Int],Tensor(nullptr (uninitialized)),Bool]");
        assert_eq!(types.next(), b"GenericList[Int,Int]");
        let uninitialized = types.next();
        assert_eq!(tensor(uninitialized), Some(&b"nullptr (uninitialized)"[..]));
        assert_eq!(types.next(), b"Bool");
        assert_eq!(types.next(), b"Bool");
        assert_eq!(elements(b"GenericList[]").next(), b"");
        assert_eq!(elements(b"Int").next(), b"");
        assert_eq!(tensor(b"Int"), None);
    }
}
