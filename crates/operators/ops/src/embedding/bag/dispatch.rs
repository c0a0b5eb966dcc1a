//! The version of a step for the instructions in use.

use super::chunk::{self, Chunk, Output};
use crate::arch::Arch;
use crate::embedding::{Bounds, Ints};

/// Writes the first byte of each index's row, and returns whether all indices are below `rows`.
pub(super) fn translate(arch: Arch, indices: Ints<'_>, rows: u64, pitch: u64, out: &mut [u64]) -> bool {
    match arch {
        // SAFETY: the token proves that the processor has AVX-512.
        #[cfg(target_arch = "x86_64")]
        Arch::Avx512(token) => unsafe { super::avx512::translate_avx512(token, indices, rows, pitch, out) },
        // SAFETY: the token proves that the processor has AVX2, FMA and F16C.
        #[cfg(target_arch = "x86_64")]
        Arch::Avx2(token) => unsafe { super::avx2::translate_avx2(token, indices, rows, pitch, out) },
        _ => chunk::translate(indices, rows, pitch, out),
    }
}

/// Pools a chunk's bags; with `fetch`, rows are prefetched.
///
/// # Safety
///
/// No other code holds the columns of this table in the output rows of these bags.
pub(super) unsafe fn pool(arch: Arch, chunk: &Chunk<'_>, out: Output<'_>, fetch: bool) {
    match arch {
        // SAFETY: the token proves that the processor has AVX-512; no other code holds the output, by the caller's
        // promise.
        #[cfg(target_arch = "x86_64")]
        Arch::Avx512(token) => unsafe { super::avx512::pool(token, chunk, out, fetch) },
        // SAFETY: the token proves that the processor has AVX2, FMA and F16C; the output as above.
        #[cfg(target_arch = "x86_64")]
        Arch::Avx2(token) => unsafe { super::avx2::pool(token, chunk, out, fetch) },
        // SAFETY: the token proves that the processor has NEON; the output as above.
        #[cfg(target_arch = "aarch64")]
        Arch::Neon(token) => unsafe { super::neon::pool(token, chunk, out, fetch) },
        // SAFETY: by the caller's promise.
        _ => unsafe { super::reference::pool_chunk(chunk, Bounds::Error, out) },
    }
}
