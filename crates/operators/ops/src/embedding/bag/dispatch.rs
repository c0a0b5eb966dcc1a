//! The version of a step for the instructions in use.

use super::chunk::{self, Chunk, Output};
use crate::Isa;
use crate::embedding::{Bounds, Ints};

/// Writes the first byte of each index's row, and says whether all indices are below `rows`.
pub(super) fn translate(isa: Isa, indices: Ints<'_>, rows: u64, pitch: u64, out: &mut [u64]) -> bool {
    match isa {
        // SAFETY: these are the instructions of a `Cpu`, which is made only where the machine has them.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { super::avx512::translate_avx512(indices, rows, pitch, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { super::avx2::translate_avx2(indices, rows, pitch, out) },
        _ => chunk::translate(indices, rows, pitch, out),
    }
}

/// Pools a chunk's bags; with `fetch`, rows are fetched ahead of use.
///
/// # Safety
///
/// Nobody else holds the columns of this table in the output rows of these bags.
pub(super) unsafe fn pool(isa: Isa, chunk: &Chunk<'_>, out: Output<'_>, fetch: bool) {
    match isa {
        // SAFETY: nobody else holds the output, by the caller's promise; these are the instructions of a `Cpu`, which is
        // made only where the machine has them.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { super::avx512::pool(chunk, out, fetch) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { super::avx2::pool(chunk, out, fetch) },
        // SAFETY: by the caller's promise.
        _ => unsafe { super::reference::pool_chunk(chunk, Bounds::Error, out) },
    }
}
