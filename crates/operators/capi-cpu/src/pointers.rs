//! Checks of pointers from C before they are used.

use crate::error::Failure;

const NULL: &str = "a handle is null: see the error of the call that made it";

/// Returns the handle or structure behind a pointer.
///
/// # Safety
///
/// The pointer is null, or to a live value that does not change while the reference is in use.
pub(crate) unsafe fn alive<'a, T>(handle: *const T) -> Result<&'a T, Failure> {
    aligned("a handle", handle)?;
    // SAFETY: aligned, and null or alive by the caller's promise.
    unsafe { handle.as_ref() }.ok_or_else(|| NULL.into())
}

/// Returns a mutable reference; otherwise like [`alive`].
///
/// # Safety
///
/// The pointer is null, or to a live value that is used here only.
pub(crate) unsafe fn alive_mut<'a, T>(handle: *mut T) -> Result<&'a mut T, Failure> {
    aligned("a handle", handle)?;
    // SAFETY: aligned, and null or alive and used here only by the caller's promise.
    unsafe { handle.as_mut() }.ok_or_else(|| NULL.into())
}

/// Returns `count` elements to be read. For a count of 0 the pointer may have any value.
///
/// # Safety
///
/// The pointer is null, or points to `count` elements, which do not change while the slice is in use.
pub(crate) unsafe fn slice<'a, T>(what: &str, start: *const T, count: usize) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    check(what, start, count)?;
    // SAFETY: not null, aligned and within the address space; as many elements by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(start, count) })
}

/// Fails where a pointer cannot be that of `count` elements.
pub(crate) fn check<T>(what: &str, start: *const T, count: usize) -> Result<(), Failure> {
    if start.is_null() {
        return Err(format!("{what}: {count} elements at a null pointer: give the array's").into());
    }
    aligned(what, start)?;
    let bytes = count.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
    if bytes.and_then(|bytes| start.addr().checked_add(bytes)).is_none() {
        return Err(format!("{what}: {count} elements are more than memory holds: check the sizes").into());
    }
    Ok(())
}

/// Fails where a pointer is not aligned for its type.
fn aligned<T>(what: &str, start: *const T) -> Result<(), Failure> {
    if start.is_aligned() {
        return Ok(());
    }
    let align = align_of::<T>();
    Err(format!("{what}: the pointer {start:p} is not a multiple of {align}: give an array that is aligned")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_that_cannot_be_are_refused() {
        let floats = [1.0_f32, 2.0];
        let of = |start: *const f32, count| {
            // SAFETY: the array that is read has two elements; everything else is refused.
            unsafe { slice("floats", start, count) }.map(<[f32]>::len).map_err(|error| error.to_string())
        };
        assert_eq!(of(floats.as_ptr(), 2), Ok(2));
        assert_eq!(of(std::ptr::null(), 0), Ok(0));
        assert!(of(std::ptr::null(), 1).unwrap_err().contains("null"));
        assert!(of(floats.as_ptr().wrapping_byte_add(1), 1).unwrap_err().contains("multiple of 4"));
        for count in [1 << 61, 1 << 62, usize::MAX] {
            assert!(of(floats.as_ptr(), count).unwrap_err().contains("more than memory holds"));
        }
        // SAFETY: null and misaligned pointers are refused.
        unsafe {
            assert!(alive::<u64>(std::ptr::null()).is_err());
            assert!(alive(std::ptr::without_provenance::<u64>(3)).is_err());
            assert!(alive_mut(std::ptr::without_provenance_mut::<u64>(3)).is_err());
        }
    }
}
