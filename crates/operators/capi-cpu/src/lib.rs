//! The operators of `steptime-ops` behind a C ABI, one file for each op: for benchmarks against other libraries, and
//! for other languages.
//!
//! Pointers refer to plain arrays, which are neither copied nor kept longer than a function's documentation states. A
//! function that can fail returns 0 for success and 1 for failure, or a null handle; [`steptime_error`] then returns
//! the error text. Such failures include null or misaligned pointers, arrays of a call that overlap where one of them
//! is written, and panics.

#![deny(missing_docs)]

mod apart;
mod backward;
mod bag;
mod convolution;
mod error;
mod gemm;
mod interaction;
mod pointers;
mod pool;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, c_char};

use steptime_ops::{Cpu, Isa};

pub use backward::*;
pub use bag::*;
pub use convolution::*;
pub use error::*;
pub use gemm::*;
pub use interaction::*;
pub use pool::*;

/// Makes a processor with `threads` threads, 0 for as many as the machine has. `isa` is the name of the instruction set
/// (`"scalar"`, `"neon"`, `"avx2"`, `"avx512"`), or null for the widest. Null where the machine does not have it. To be
/// freed with [`steptime_cpu_free`].
///
/// # Safety
///
/// `isa` is null or a zero-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_cpu_new(threads: usize, isa: *const c_char) -> *mut Cpu {
    error::handle(|| {
        if isa.is_null() {
            return Ok(Cpu::new(threads)?);
        }
        // SAFETY: a zero-terminated string, by the caller's promise.
        let name = unsafe { CStr::from_ptr(isa) }.to_str()?;
        Ok(Cpu::with_isa(name.parse::<Isa>()?, threads)?)
    })
}

/// Ends the threads of a handle.
///
/// # Safety
///
/// `cpu` is null, or came from [`steptime_cpu_new`] and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_cpu_free(cpu: *mut Cpu) {
    // SAFETY: as the caller promises.
    unsafe { error::free(cpu) }
}
