//! One sample at a time: the plain loops, and the choice between them and vector code.

use super::Interaction;
use crate::arch::Arch;
#[cfg(target_arch = "aarch64")]
use crate::simd::Pair;

/// The forward pass of one sample.
pub(super) struct Forward<'a> {
    of: &'a Interaction,
    arch: Arch,
}

impl<'a> Forward<'a> {
    pub(super) fn new(of: &'a Interaction, arch: Arch) -> Forward<'a> {
        Forward { of, arch }
    }

    /// Runs the pass: `rows` are the sample's `F` vectors of `D` floats; `out` its `D + P` floats.
    pub(super) fn run(&self, rows: &[&[f32]], out: &mut [f32]) {
        let (dense, pairs) = out.split_at_mut(self.of.dim);
        dense.copy_from_slice(rows[0]);
        match self.arch {
            #[cfg(target_arch = "x86_64")]
            Arch::Avx512(token) => super::triangle::triangle(token, self.of, rows, pairs),
            #[cfg(target_arch = "x86_64")]
            Arch::Avx2(token) => super::triangle::triangle(token, self.of, rows, pairs),
            #[cfg(target_arch = "aarch64")]
            Arch::Neon(token) => super::triangle::triangle(token, self.of, rows, pairs),
            _ => triangle(self.of, rows, pairs),
        }
    }
}

/// The backward pass of one sample.
pub(super) struct Backward<'a> {
    of: &'a Interaction,
    arch: Arch,
    /// Whether gradients are written past the caches.
    stream: bool,
}

impl<'a> Backward<'a> {
    pub(super) fn new(of: &'a Interaction, arch: Arch, stream: bool) -> Backward<'a> {
        Backward { of, arch, stream }
    }

    /// Runs the pass: `rows` as in the forward pass, `gradient` of the output, `square` a buffer of `F x F` floats,
    /// `out` the gradients of the rows.
    pub(super) fn run(&self, rows: &[&[f32]], gradient: &[f32], square: &mut [f32], out: &mut [&mut [f32]]) {
        let (dense, pairs) = gradient.split_at(self.of.dim);
        mirror(self.of, pairs, square);
        match self.arch {
            #[cfg(target_arch = "x86_64")]
            Arch::Avx512(token) => super::product::product(token, square, rows, dense, out, self.stream),
            #[cfg(target_arch = "x86_64")]
            Arch::Avx2(token) => super::product::product(token, square, rows, dense, out, self.stream),
            #[cfg(target_arch = "aarch64")]
            Arch::Neon(token) => super::product::product(Pair(token), square, rows, dense, out, self.stream),
            _ => product(square, rows, dense, out),
        }
    }
}

/// The symmetric matrix `G + G^T` of a triangle `G`.
fn mirror(of: &Interaction, pairs: &[f32], square: &mut [f32]) {
    let f = of.features;
    for i in 0..f {
        let pairs = &pairs[of.row_start(i)..][..of.row_len(i)];
        let (above, row) = square.split_at_mut(i * f);
        row[..i].copy_from_slice(&pairs[..i]);
        above.iter_mut().skip(i).step_by(f).zip(pairs).for_each(|(to, &pair)| *to = pair);
        row[i] = pairs.get(i).map_or(0.0, |pair| 2.0 * pair);
    }
}

/// Computes the dot products of all pairs, in order.
fn triangle(of: &Interaction, rows: &[&[f32]], pairs: &mut [f32]) {
    for (i, row) in rows.iter().enumerate() {
        let pairs = &mut pairs[of.row_start(i)..][..of.row_len(i)];
        for (pair, other) in pairs.iter_mut().zip(rows) {
            *pair = dot(row, other);
        }
    }
}

/// A dot product with independent partial sums, which compilers vectorize for every processor.
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0.0; 8];
    let (whole, rest) = left.as_chunks::<8>();
    let (other, other_rest) = right.as_chunks::<8>();
    for (a, b) in whole.iter().zip(other) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest.iter().zip(other_rest).map(|(a, b)| a * b).sum::<f32>()
}

/// Computes `out = square x rows`, and adds `dense` to the first row.
fn product(square: &[f32], rows: &[&[f32]], dense: &[f32], out: &mut [&mut [f32]]) {
    for (i, (out, weights)) in out.iter_mut().zip(square.chunks_exact(rows.len())).enumerate() {
        if i == 0 {
            out.copy_from_slice(dense);
        } else {
            out.fill(0.0);
        }
        for (weight, row) in weights.iter().zip(rows) {
            out.iter_mut().zip(*row).for_each(|(out, value)| *out += weight * value);
        }
    }
}
