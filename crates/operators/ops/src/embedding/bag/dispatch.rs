//! The version of a step for the instructions in use.

use super::chunk::{self, Chunk, Output};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::vector;
use crate::arch::{Arch, Code};
use crate::embedding::{Bounds, Ints};
#[cfg(target_arch = "aarch64")]
use crate::simd::Pair;

/// Writes the first byte of each index's row, and returns whether all indices are below `rows`.
pub(super) fn translate(arch: Arch, indices: Ints<'_>, rows: u64, pitch: u64, out: &mut [u64]) -> bool {
    struct Translate<'a, 'o> {
        indices: Ints<'a>,
        rows: u64,
        pitch: u64,
        out: &'o mut [u64],
    }
    impl Code for Translate<'_, '_> {
        type Output = bool;

        #[inline(always)]
        fn run(self) -> bool {
            chunk::translate(self.indices, self.rows, self.pitch, self.out)
        }
    }
    arch.run(Translate { indices, rows, pitch, out })
}

/// Pools a chunk's bags; with `fetch`, rows are prefetched.
///
/// # Safety
///
/// No other code holds the columns of this table in the output rows of these bags.
pub(super) unsafe fn pool(arch: Arch, chunk: &Chunk<'_>, out: Output<'_>, fetch: bool) {
    // SAFETY: no other code holds the output, by the caller's promise.
    unsafe {
        match arch {
            #[cfg(target_arch = "x86_64")]
            Arch::Avx512(token) => vector::pool(token, chunk, out, fetch),
            #[cfg(target_arch = "x86_64")]
            Arch::Avx2(token) => vector::pool(token, chunk, out, fetch),
            #[cfg(target_arch = "aarch64")]
            Arch::Neon(token) => vector::pool(Pair(token), chunk, out, fetch),
            _ => super::reference::pool_chunk(chunk, Bounds::Error, out),
        }
    }
}
