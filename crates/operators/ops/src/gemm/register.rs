//! Third rung: v1 x v2 elements of C in registers. Predicted reads: n^3 / v1 of B and n^3 / v2 of A, so that arithmetic,
//! not loads, is the limit of small matrices; C is written n^2 times. Large matrices still come from distant levels.

use super::kernel::{Store, Strip, Window, tile, tile_cols, tile_rows};
use super::{GemmError, MatMut, MatRef};
use crate::Cpu;

/// Computes `c = a * b` in register tiles that read both operands in place, on one thread.
///
/// # Errors
///
/// The shapes do not fit, or the rows of `b` are not contiguous.
pub fn gemm_register(cpu: &Cpu, a: MatRef<'_>, b: MatRef<'_>, c: MatMut<'_>) -> Result<(), GemmError> {
    in_tiles(cpu, a, b, c, (tile_rows(cpu.isa()), tile_cols(cpu.isa())))
}

/// Checks the operands of a rung that reads in place.
pub(super) fn check(a: &MatRef<'_>, b: &MatRef<'_>, c: &MatMut<'_>) -> Result<(), GemmError> {
    b.expect("B", a.cols(), b.cols())?;
    c.expect("C", a.rows(), b.cols())?;
    if b.col_stride() == 1 || b.cols() <= 1 { Ok(()) } else { Err(GemmError::Scattered { what: "B" }) }
}

/// Storing of a tile: overwriting at first, then adding.
pub(super) const FIRST: Store<'static> = Store { alpha: 1.0, beta: 0.0, bias: None, relu: false };

/// Computes all of C in tiles of one size, each over all of k.
pub(super) fn in_tiles(
    cpu: &Cpu,
    a: MatRef<'_>,
    b: MatRef<'_>,
    mut c: MatMut<'_>,
    (v1, v2): (usize, usize),
) -> Result<(), GemmError> {
    check(&a, &b, &c)?;
    let (m, n, k) = (a.rows(), b.cols(), a.cols());
    let window = Window::new(&mut c);
    for row in (0..m).step_by(v1) {
        for col in (0..n).step_by(v2) {
            let (rows, cols) = (v1.min(m - row), v2.min(n - col));
            // SAFETY: one thread, one tile at a time.
            let c = unsafe { window.part(row, col, rows, cols) };
            let (a, b) = strips(&a, &b, row, col, 0);
            tile(cpu.arch(), k, a, b, &c, rows, cols, &FIRST);
        }
    }
    Ok(())
}

/// Returns the operands, in place, of the tile at (`row`, `col`) from step `step` on.
pub(super) fn strips<'a>(
    a: &MatRef<'a>,
    b: &MatRef<'a>,
    row: usize,
    col: usize,
    step: usize,
) -> (Strip<'a>, Strip<'a>) {
    (
        Strip { data: a.tail(row, step), lane_stride: a.row_stride(), step_stride: a.col_stride() },
        Strip { data: b.tail(step, col), lane_stride: 1, step_stride: b.row_stride() },
    )
}
