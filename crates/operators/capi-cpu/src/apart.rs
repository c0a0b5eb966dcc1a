//! Arrays that are written must not overlap others.

use std::ops::Range;

use crate::error::Failure;
use crate::pointers;

/// Returns `count` elements to be written. For a count of 0 the pointer may have any value.
///
/// # Safety
///
/// The pointer is null, or points to `count` elements, which no other code uses while the slice is in use.
pub(crate) unsafe fn slice_mut<'a, T>(
    what: &str,
    start: *mut T,
    count: usize,
) -> Result<&'a mut [T], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    pointers::check(what, start, count)?;
    // SAFETY: not null, aligned and within the address space; `count` elements, used here only, by the caller's
    // promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(start, count) })
}

/// Address range of an array, and whether it is written.
#[derive(Debug)]
pub(crate) struct Span {
    what: String,
    places: Range<usize>,
    written: bool,
}

impl Span {
    /// An array that is read. A null pointer gives an empty span.
    pub(crate) fn read<T>(what: &str, start: *const T, count: usize) -> Span {
        let count = if start.is_null() { 0 } else { count };
        let end = start.addr().saturating_add(count.saturating_mul(size_of::<T>()));
        Span { what: what.to_owned(), places: start.addr()..end, written: false }
    }

    /// An array that is written.
    pub(crate) fn written<T>(what: &str, start: *const T, count: usize) -> Span {
        Span { written: true, ..Span::read(what, start, count) }
    }
}

/// Fails where an array that is written overlaps another one: no two slices could be made of them.
pub(crate) fn check(spans: Vec<Span>) -> Result<(), Failure> {
    check_with(&spans, &[])
}

/// Checks as [`check`] does, but also against the arrays that a handle keeps.
pub(crate) fn check_with(given: &[Span], kept: &[Span]) -> Result<(), Failure> {
    let mut spans: Vec<&Span> = given.iter().chain(kept).filter(|span| !span.places.is_empty()).collect();
    spans.sort_unstable_by_key(|span| span.places.start);
    // Of the earlier spans, the one that ends last, and the written one that ends last.
    let [mut any, mut written]: [Option<&Span>; 2] = [None, None];
    for span in spans {
        let before = if span.written { any } else { written };
        if let Some(before) = before.filter(|before| before.places.end > span.places.start) {
            let what = format!("{} and {} overlap", before.what, span.what);
            return Err(format!("{what}: give arrays of their own, and check the sizes").into());
        }
        let later = |last: Option<&Span>| last.is_none_or(|last| last.places.end < span.places.end);
        if later(any) {
            any = Some(span);
        }
        if span.written && later(written) {
            written = Some(span);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reads_may_meet() {
        let data = [0_u8; 100];
        let read = |from: usize, to: usize| Span::read("a", &raw const data[from], to - from);
        let written = |from: usize, to: usize| Span::written("b", &raw const data[from], to - from);
        assert!(check(vec![read(0, 50), read(10, 20), written(50, 60), written(60, 99)]).is_ok());
        assert!(check(vec![read(0, 50), read(10, 20), written(49, 60)]).is_err());
        assert!(check(vec![written(0, 50), read(1, 2)]).is_err());
        assert!(check(vec![written(0, 50), written(50, 60), read(55, 56)]).is_err());
        assert!(check(vec![written(0, 50), read(50, 60), read(52, 54), written(58, 62)]).is_err());
        let error = check(vec![written(3, 4), written(3, 4)]).unwrap_err().to_string();
        assert!(error.contains("b and b overlap"), "{error}");
        assert!(check(vec![written(3, 3), read(3, 3), written(0, 9)]).is_ok());
        let null = || Span::written("c", std::ptr::null::<u8>(), 9);
        assert!(check(vec![null(), null()]).is_ok());
        // SAFETY: a null pointer is refused.
        assert!(unsafe { slice_mut::<u8>("d", std::ptr::null_mut(), 1) }.is_err());
    }
}
