//! The product of the backward pass of one sample, with vectors.
//!
//! It is divided into tiles of two vectors of columns and up to 14 rows with sixteen lanes (28 accumulators), 6 with
//! eight (12 accumulators).

use crate::arch::Code;
use crate::simd::Simd;

/// Computes `out = square x rows`, and adds `dense` to the first row; with `stream`, past the caches where outputs are
/// aligned: [`fence`](crate::simd::fence) must follow.
pub(super) fn product<S: Simd>(
    s: S,
    square: &[f32],
    rows: &[&[f32]],
    dense: &[f32],
    out: &mut [&mut [f32]],
    stream: bool,
) {
    let (f, d) = (rows.len(), dense.len());
    assert!(square.len() == f * f && out.len() == f && rows.iter().all(|row| row.len() == d));
    assert!(out.iter().all(|row| row.len() == d));
    let bytes = S::LANES * size_of::<f32>();
    let stream = stream && out.iter().all(|row| row.as_ptr().addr().is_multiple_of(bytes));
    let many = S::LANES == 16;
    let tiles = f.div_ceil(if many { 14 } else { 6 });
    for tile in 0..tiles {
        let first = f * tile / tiles;
        let out = &mut out[first..f * (tile + 1) / tiles];
        let product = Product { s, square, rows, dense, first, stream };
        match out.len() {
            1 => s.compile(Tile::<S, 1>(&product, out)),
            2 => s.compile(Tile::<S, 2>(&product, out)),
            3 => s.compile(Tile::<S, 3>(&product, out)),
            4 => s.compile(Tile::<S, 4>(&product, out)),
            5 => s.compile(Tile::<S, 5>(&product, out)),
            6 => s.compile(Tile::<S, 6>(&product, out)),
            7 if many => s.compile(Tile::<S, 7>(&product, out)),
            8 if many => s.compile(Tile::<S, 8>(&product, out)),
            9 if many => s.compile(Tile::<S, 9>(&product, out)),
            10 if many => s.compile(Tile::<S, 10>(&product, out)),
            11 if many => s.compile(Tile::<S, 11>(&product, out)),
            12 if many => s.compile(Tile::<S, 12>(&product, out)),
            13 if many => s.compile(Tile::<S, 13>(&product, out)),
            14 if many => s.compile(Tile::<S, 14>(&product, out)),
            rows => unreachable!("a tile of {rows} rows"),
        }
    }
}

/// Operands of a tile, whose rows begin with `first`. Made only by [`product`]: `square` is `F x F` floats; there are
/// `F` rows, and they and `dense` are `D` floats each.
struct Product<'a, S> {
    s: S,
    square: &'a [f32],
    rows: &'a [&'a [f32]],
    dense: &'a [f32],
    first: usize,
    stream: bool,
}

/// A tile and its outputs, `R` of `D` floats each, with `stream` aligned to a vector.
struct Tile<'p, 'a, 'o, S, const R: usize>(&'p Product<'a, S>, &'p mut [&'o mut [f32]]);

impl<S: Simd, const R: usize> Code for Tile<'_, '_, '_, S, R> {
    type Output = ();

    /// Columns are the inner loop: otherwise the same columns of the next tile would be read while those of this one,
    /// which may be a multiple of 4 KiB away, are being written, and processors take the two for one address.
    #[inline(always)]
    fn run(self) {
        let Tile(product, out) = self;
        let Some(out) = out.first_chunk_mut() else { return };
        let (columns, step) = (product.dense.len(), 2 * S::LANES);
        let whole = columns - columns % step;
        for column in (0..whole).step_by(step) {
            product.tile::<R, true>(column, out);
        }
        if whole < columns {
            product.tile::<R, false>(whole, out);
        }
    }
}

impl<S: Simd> Product<'_, S> {
    /// Computes two vectors of columns from `column`; with `WHOLE`, all lanes are columns.
    #[inline(always)]
    fn tile<const R: usize, const WHOLE: bool>(&self, column: usize, out: &mut [&mut [f32]; R]) {
        let (s, f) = (self.s, self.rows.len());
        let mut sums = [[s.splat(0.0); 2]; R];
        if self.first == 0 {
            sums[0] = self.load::<WHOLE>(self.dense, column);
        }
        for (j, row) in self.rows.iter().enumerate() {
            let row = self.load::<WHOLE>(row, column);
            // The matrix is symmetric: column `first..` of row `j` is row `j` of columns `first..`.
            let weights = self.square.as_ptr().wrapping_add(j * f + self.first);
            for (i, sums) in sums.iter_mut().enumerate() {
                // SAFETY: `first + R` is at most `f`, and `square` has `f` rows of `f`.
                let weight = s.splat(unsafe { *weights.add(i) });
                sums[0] = s.mul_add(weight, row[0], sums[0]);
                sums[1] = s.mul_add(weight, row[1], sums[1]);
            }
        }
        for (sums, out) in sums.iter().zip(out) {
            for (half, &sum) in sums.iter().enumerate() {
                let (to, count) = self.half(out.as_mut_ptr(), column, half);
                // SAFETY: `count` floats inside of the row, with `WHOLE` as many as lanes; past the caches only where
                // aligned.
                unsafe {
                    if WHOLE && self.stream {
                        s.stream(to, sum);
                    } else if WHOLE {
                        s.write(to, sum);
                    } else {
                        s.write_first(to, sum, count);
                    }
                }
            }
        }
    }

    /// Loads these columns of a row; those past the last are zero.
    #[inline(always)]
    fn load<const WHOLE: bool>(&self, row: &[f32], column: usize) -> [S::V; 2] {
        let mut values = [self.s.splat(0.0); 2];
        for (half, value) in values.iter_mut().enumerate() {
            let (from, count) = self.half(row.as_ptr().cast_mut(), column, half);
            // SAFETY: `count` floats inside of the row, with `WHOLE` as many as lanes.
            *value = unsafe { if WHOLE { self.s.read(from) } else { self.s.read_first(from, count) } };
        }
        values
    }

    /// Address of the first or second vector of columns of a row, and number of its columns.
    #[inline(always)]
    fn half(&self, row: *mut f32, column: usize, half: usize) -> (*mut f32, usize) {
        let at = column + half * S::LANES;
        (row.wrapping_add(at), self.dense.len().saturating_sub(at).min(S::LANES))
    }
}
