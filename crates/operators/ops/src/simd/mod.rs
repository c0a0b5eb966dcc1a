//! Vectors of floats, on any instruction set.
//!
//! Kernels are written once over [`Simd`], which the tokens of [`arch`](crate::arch) implement: as wide as a register,
//! or as [`Pair`]s. All instruction sets round each operation the same way.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod memory;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod pair;
mod scalar;

pub(crate) use memory::{fence, prefetch, prefetch_row};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) use pair::Pair;

use crate::arch::{Arch, Code};

/// Floats in a vector of a [`Kernel`], and the most of any vector.
pub const LANES: usize = 16;

/// Arithmetic on vectors of floats. A value of an implementing type exists only where the processor has the
/// instructions. Everything is `#[inline(always)]`, since it is compiled for the instructions of its caller.
pub trait Simd: Copy {
    /// A vector.
    type V: Copy;
    /// Number of floats in a vector, at most 16.
    const LANES: usize;

    /// Runs code, compiled for these instructions.
    fn compile<C: Code>(self, code: C) -> C::Output;
    /// Sets all lanes to one value.
    fn splat(self, value: f32) -> Self::V;

    /// Loads a vector.
    ///
    /// # Safety
    ///
    /// As many floats as lanes can be read.
    unsafe fn read(self, from: *const f32) -> Self::V;

    /// Loads the first `count` lanes; the others are zero.
    ///
    /// # Safety
    ///
    /// `count` floats can be read, at most as many as lanes.
    #[inline(always)]
    unsafe fn read_first(self, from: *const f32, count: usize) -> Self::V {
        let mut whole = [0.0_f32; LANES];
        // SAFETY: `count` floats can be read, by the caller's promise, and fit; no vector has more lanes than `whole`.
        unsafe {
            from.copy_to_nonoverlapping(whole.as_mut_ptr(), count);
            self.read(whole.as_ptr())
        }
    }

    /// Stores a vector.
    ///
    /// # Safety
    ///
    /// As many floats as lanes can be written.
    unsafe fn write(self, to: *mut f32, value: Self::V);

    /// Stores the first `count` lanes.
    ///
    /// # Safety
    ///
    /// `count` floats can be written, at most as many as lanes.
    #[inline(always)]
    unsafe fn write_first(self, to: *mut f32, value: Self::V, count: usize) {
        let mut whole = [0.0_f32; LANES];
        // SAFETY: no vector has more lanes than `whole`; `count` floats can be written, by the caller's promise.
        unsafe {
            self.write(whole.as_mut_ptr(), value);
            to.copy_from_nonoverlapping(whole.as_ptr(), count);
        }
    }

    /// Stores a vector past the caches, where the instruction set has such stores; [`fence`] must follow.
    ///
    /// # Safety
    ///
    /// As many floats as lanes can be written, and the address is a multiple of their size.
    #[inline(always)]
    unsafe fn stream(self, to: *mut f32, value: Self::V) {
        // SAFETY: by the caller's promise.
        unsafe { self.write(to, value) }
    }

    /// `a + b`.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a - b`.
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b`.
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a / b`.
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + sum`, rounded once; twice in portable code, where a call would replace the instruction.
    fn mul_add(self, a: Self::V, b: Self::V, sum: Self::V) -> Self::V;
    /// The larger of the two; `b` where they do not compare.
    fn larger(self, a: Self::V, b: Self::V) -> Self::V;
    /// Square roots.
    fn sqrt(self, a: Self::V) -> Self::V;
    /// Adds up the lanes: halves, then quarters, and so on.
    fn sum(self, a: Self::V) -> f32;

    /// Loads sixteen neighbours. Only for vectors of sixteen.
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::V {
        const { assert!(Self::LANES == LANES) };
        // SAFETY: sixteen readable floats.
        unsafe { self.read(from.as_ptr()) }
    }

    /// Loads the first neighbours, at most as many as lanes; the other lanes are zero.
    #[inline(always)]
    fn load_part(self, from: &[f32]) -> Self::V {
        // SAFETY: as many floats can be read.
        unsafe { self.read_first(from.as_ptr(), from.len().min(Self::LANES)) }
    }

    /// Stores sixteen neighbours. Only for vectors of sixteen.
    #[inline(always)]
    fn store(self, to: &mut [f32; LANES], value: Self::V) {
        const { assert!(Self::LANES == LANES) };
        // SAFETY: sixteen writable floats.
        unsafe { self.write(to.as_mut_ptr(), value) }
    }

    /// Stores the first lanes, as many as `to` has, or all.
    #[inline(always)]
    fn store_part(self, to: &mut [f32], value: Self::V) {
        // SAFETY: as many floats can be written.
        unsafe { self.write_first(to.as_mut_ptr(), value, to.len().min(Self::LANES)) }
    }
}

/// Work on vectors of sixteen floats. All instruction sets add up lanes in the same order, so a kernel without
/// [`Simd::mul_add`] is bit-identical on all of them.
pub trait Kernel {
    /// Does the work. Must be `#[inline(always)]`, as for [`Code`].
    fn run<S: Simd>(self, simd: S);
}

/// Runs a kernel compiled for an instruction set.
#[inline]
pub(crate) fn dispatch<K: Kernel>(arch: Arch, kernel: K) {
    match arch {
        #[cfg(target_arch = "x86_64")]
        Arch::Avx512(token) => run(token, kernel),
        #[cfg(target_arch = "x86_64")]
        Arch::Avx2(token) => run(Pair(token), kernel),
        #[cfg(target_arch = "aarch64")]
        Arch::Neon(token) => run(Pair(Pair(token)), kernel),
        _ => run(scalar::Scalar, kernel),
    }
}

/// Runs a kernel compiled for the instructions of its vectors.
#[inline(always)]
fn run<S: Simd, K: Kernel>(simd: S, kernel: K) {
    struct With<S, K>(S, K);
    impl<S: Simd, K: Kernel> Code for With<S, K> {
        type Output = ();

        #[inline(always)]
        fn run(self) {
            self.1.run(self.0);
        }
    }
    simd.compile(With(simd, kernel));
}

/// `update!(simd, [p, m], g, [new_p, new_m])`: sets the slices `p`, `m` at each place to the values of the expression,
/// computed from them and the slice `g` there. In the expression, the names are vectors. Panics where the slices have
/// different lengths.
///
/// Not a function that takes a closure: closures are not compiled for the instructions of their caller.
macro_rules! update {
    ($simd:ident, [$($row:ident),+], $gradient:ident, $new:expr) => {{
        use $crate::simd::{LANES, load_all, load_tails, store_all, store_tails};
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
