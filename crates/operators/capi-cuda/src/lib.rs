//! The operators of `steptime-cuda` behind a C ABI, one file for each op: for benchmarks against other libraries, and
//! for other languages.
//!
//! Pointers of operands are addresses on the GPU, for example of tensors of another library in the same process. They
//! are neither copied nor kept longer than a function's documentation states. Every launch goes to the stream of the
//! call, given by its driver handle as a number (0 is the null stream). No function blocks unless its documentation
//! says so. A function that can fail returns 0 for success and 1 for failure, or a null handle; [`steptime_error`] then
//! returns the error text.

#![deny(missing_docs)]

mod addresses;
mod backward;
mod bag;
mod batch;
#[path = "../../capi-cpu/src/error.rs"]
mod error;
mod gather;
mod interaction;
#[path = "../../capi-cpu/src/pointers.rs"]
mod pointers;
mod states;
mod tables;

use steptime_cuda::Device;

pub use backward::*;
pub use bag::*;
pub use error::*;
pub use gather::*;
pub use interaction::*;

/// Opens the GPU of this number, with the primary context that the process's other libraries use. Null on failure. To
/// be freed with [`steptime_gpu_free`].
#[unsafe(no_mangle)]
pub extern "C" fn steptime_gpu_open(ordinal: usize) -> *mut Device {
    error::handle(|| Ok(Device::open(ordinal)?))
}

/// Frees a handle; objects made from it stay valid.
///
/// # Safety
///
/// `gpu` is null, or came from [`steptime_gpu_open`] and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_free(gpu: *mut Device) {
    // SAFETY: null, or from `handle` and used no more, by the caller's promise.
    unsafe { error::free(gpu) }
}
