//! Second rung: one row of C at a time, v2 columns of it in registers. Predicted reads: n^3 of B, n^3 / v2 of A; every
//! multiply-add still waits for a load.

use super::kernel::tile_cols;
use super::register::in_tiles;
use super::{GemmError, MatMut, MatRef};
use crate::Cpu;

/// Computes `c = a * b` with tiles of one row, on one thread.
///
/// # Errors
///
/// The shapes do not fit, or the rows of `b` are not contiguous.
pub fn gemm_vectorized(cpu: &Cpu, a: MatRef<'_>, b: MatRef<'_>, c: MatMut<'_>) -> Result<(), GemmError> {
    in_tiles(cpu, a, b, c, (1, tile_cols(cpu.isa())))
}
