//! Sixteen floats at a time, on any instruction set.
//!
//! Kernels are written once over [`Simd`]. All instruction sets round each operation the same way and add up lanes in
//! the same order, so a kernel is bit-identical on all of them.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::arch::Arch;

/// Floats in a vector of [`Simd`].
pub const LANES: usize = 16;

/// Arithmetic on vectors of sixteen floats. A value of an implementing type exists only where the processor has the
/// instructions.
pub trait Simd: Copy {
    /// A vector of sixteen floats.
    type V: Copy;
    /// Sets all lanes to one value.
    fn splat(self, value: f32) -> Self::V;
    /// Loads sixteen neighbours.
    fn load(self, from: &[f32; LANES]) -> Self::V;
    /// Loads fewer than sixteen neighbours; the other lanes are zero.
    fn load_part(self, from: &[f32]) -> Self::V;
    /// Stores sixteen neighbours.
    fn store(self, to: &mut [f32; LANES], value: Self::V);
    /// Stores the first lanes, as many as `to` has; fewer than sixteen.
    fn store_part(self, to: &mut [f32], value: Self::V);
    /// `a + b`.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a - b`.
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b`.
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a / b`.
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// Square roots.
    fn sqrt(self, a: Self::V) -> Self::V;
    /// Adds up the lanes: halves, then quarters, then eighths.
    fn sum(self, a: Self::V) -> f32;
}

/// Work for any instruction set.
pub trait Kernel {
    /// Does the work. Must be `#[inline(always)]`, like everything it calls, since it is compiled for the instructions
    /// of its caller. Vectors must not be used in closures, which cannot have the attribute.
    fn run<S: Simd>(self, simd: S);
}

/// Runs a kernel compiled for an instruction set.
#[inline]
pub(crate) fn dispatch<K: Kernel>(arch: Arch, kernel: K) {
    match arch {
        #[cfg(target_arch = "x86_64")]
        Arch::Avx512(token) => avx512::run(token, kernel),
        #[cfg(target_arch = "x86_64")]
        Arch::Avx2(token) => avx2::run(token, kernel),
        #[cfg(target_arch = "aarch64")]
        Arch::Neon(token) => kernel.run(token),
        _ => kernel.run(scalar::Scalar),
    }
}

/// `update!(simd, [p, m], g, [new_p, new_m])`: sets the slices `p`, `m` at each place to the values of the expression,
/// computed from them and the slice `g` there. In the expression, the names are vectors. Panics where the slices have
/// different lengths.
///
/// Not a function that takes a closure: closures are not compiled for the instructions of their caller.
macro_rules! update {
    ($simd:ident, [$($row:ident),+], $gradient:ident, $new:expr) => {{
        use $crate::optimizer::simd::{LANES, load_all, load_tails, store_all, store_tails};
        assert!($($row.len() == $gradient.len())&&+, "slices of different lengths");
        let (blocks, tail) = $gradient.as_chunks::<LANES>();
        let mut rows = [$($row.as_chunks_mut::<LANES>()),+];
        for (at, block) in blocks.iter().enumerate() {
            let [$($row),+] = load_all($simd, &rows, at);
            let $gradient = $simd.load(block);
            store_all($simd, &mut rows, at, $new);
        }
        if !tail.is_empty() {
            let [$($row),+] = load_tails($simd, &rows);
            let $gradient = $simd.load_part(tail);
            store_tails($simd, &mut rows, $new);
        }
    }};
}
pub(crate) use update;

/// A row: whole blocks, and the remainder.
type Row<'a> = (&'a mut [[f32; LANES]], &'a mut [f32]);

/// Loads block `at` of each row.
#[inline(always)]
pub(crate) fn load_all<S: Simd, const N: usize>(simd: S, rows: &[Row<'_>; N], at: usize) -> [S::V; N] {
    let mut values = [simd.splat(0.0); N];
    for (value, row) in values.iter_mut().zip(rows) {
        *value = simd.load(&row.0[at]);
    }
    values
}

/// Stores block `at` of each row.
#[inline(always)]
pub(crate) fn store_all<S: Simd, const N: usize>(
    simd: S,
    rows: &mut [Row<'_>; N],
    at: usize,
    values: [S::V; N],
) {
    for (value, row) in values.iter().zip(rows) {
        simd.store(&mut row.0[at], *value);
    }
}

/// Loads the remainder of each row.
#[inline(always)]
pub(crate) fn load_tails<S: Simd, const N: usize>(simd: S, rows: &[Row<'_>; N]) -> [S::V; N] {
    let mut values = [simd.splat(0.0); N];
    for (value, row) in values.iter_mut().zip(rows) {
        *value = simd.load_part(row.1);
    }
    values
}

/// Stores the remainder of each row.
#[inline(always)]
pub(crate) fn store_tails<S: Simd, const N: usize>(simd: S, rows: &mut [Row<'_>; N], values: [S::V; N]) {
    for (value, row) in values.iter().zip(rows) {
        simd.store_part(row.1, *value);
    }
}

/// Prefetches a line of memory into the second-level cache: the first allows fewer outstanding misses. Any address is
/// allowed.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    if !cfg!(miri) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch has no effect that a program can see, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    if !cfg!(miri) {
        // SAFETY: a prefetch has no effect that a program can see, whatever the address, and it changes no register.
        unsafe {
            std::arch::asm!("prfm pldl2keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Mixed<'a>(&'a mut [f32], &'a [f32], &'a mut f32);

    impl Kernel for Mixed<'_> {
        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            let mut total = s.splat(0.0);
            for block in self.1.as_chunks::<LANES>().0 {
                total = s.add(total, s.load(block));
            }
            *self.2 = s.sum(total);
            let (p, g) = (self.0, self.1);
            update!(s, [p], g, [s.sub(p, s.div(g, s.sqrt(s.add(s.mul(g, g), s.splat(0.1)))))]);
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        for len in [0, 1, 7, 8, 9, 15, 16, 17, 40, 333] {
            let gradient: Vec<f32> = (0..len).map(|at| (at as f32 * 0.7).sin()).collect();
            let mut seen = Vec::new();
            for arch in Arch::all() {
                let mut row: Vec<f32> = (0..len).map(|at| (at as f32 * 1.3).cos()).collect();
                let mut total = 0.0;
                dispatch(arch, Mixed(&mut row, &gradient, &mut total));
                seen.push((row.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), total.to_bits()));
            }
            assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "length {len}");
        }
    }
}
