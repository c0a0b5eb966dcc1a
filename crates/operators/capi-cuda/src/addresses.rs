//! Streams and memory of another library, from numbers.

use steptime_cuda::{Device, Slice, SliceMut, Stream};

use crate::error::Failure;

/// A stream of another library.
///
/// # Safety
///
/// It is a stream of the device's primary context that outlives the call.
pub(crate) unsafe fn on(device: &Device, stream: u64) -> Stream {
    // SAFETY: as the caller promises; no clone is kept.
    unsafe { Stream::from_raw(device, stream) }
}

/// `count` elements at an address.
///
/// # Safety
///
/// As that of [`Slice::from_raw`].
pub(crate) unsafe fn given<'a, T: bytemuck::Pod>(
    address: u64,
    count: usize,
) -> Result<Slice<'a, T>, Failure> {
    check::<T>(address, count)?;
    // SAFETY: as the caller promises.
    Ok(unsafe { Slice::from_raw(address, count) })
}

/// Returns `count` elements at an address, for writing.
///
/// # Safety
///
/// As that of [`SliceMut::from_raw`].
pub(crate) unsafe fn taken<'a, T: bytemuck::Pod>(
    address: u64,
    count: usize,
) -> Result<SliceMut<'a, T>, Failure> {
    check::<T>(address, count)?;
    // SAFETY: as the caller promises.
    Ok(unsafe { SliceMut::from_raw(address, count) })
}

/// Fails where an address cannot be that of `count` elements.
fn check<T>(address: u64, count: usize) -> Result<(), Failure> {
    let (bytes, align) = (count.checked_mul(size_of::<T>()), align_of::<T>());
    if count == 0 {
        return Ok(());
    }
    if address == 0 {
        return Err(format!("{count} elements at a null address: give the tensor's").into());
    }
    if !address.is_multiple_of(align as u64) {
        let what = format!("the address {address:#x} is not a multiple of {align}");
        return Err(format!("{what}: give a tensor that is aligned for its elements").into());
    }
    if bytes.and_then(|bytes| address.checked_add(bytes as u64)).is_none() {
        return Err(format!("{count} elements are more than memory holds: check the sizes").into());
    }
    Ok(())
}
