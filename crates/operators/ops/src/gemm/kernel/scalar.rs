//! The register tile in portable code.

use super::{Store, Strip, Window};

const ROWS: usize = 6;
const COLS: usize = 8;

/// Computes one tile of at most `ROWS x COLS`.
pub(super) fn tile(k: usize, a: Strip, b: Strip, c: &Window, rows: usize, cols: usize, store: &Store) {
    let mut sums = [[0.0_f32; COLS]; ROWS];
    for step in 0..k {
        let b = &b.data[step * b.step_stride..][..cols];
        for (row, sums) in sums.iter_mut().enumerate().take(rows) {
            let a = a.data[row * a.lane_stride + step * a.step_stride];
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum += a * b;
            }
        }
    }
    for (row, sums) in sums.iter().enumerate().take(rows) {
        for (col, &sum) in sums.iter().enumerate().take(cols) {
            let place = c.place(row, col);
            // SAFETY: `tile` of the parent checked that the tile is inside of the window, which only this thread holds.
            unsafe { place.write(store.value(sum, || place.read(), col)) };
        }
    }
}
