//! Matrix products of other crates, `c = a b` in row-major order, with `a` `[m, k]` and `b` `[k, n]`.

use std::num::NonZero;

/// The product of `faer`.
///
/// # Safety
///
/// The pointers are valid for these numbers of floats; no other code accesses `c` during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_faer(
    threads: usize,
    m: usize,
    n: usize,
    k: usize,
    a: *const f32,
    b: *const f32,
    c: *mut f32,
) {
    use faer::{Accum, MatMut, MatRef, Par};
    // SAFETY: as the caller promises.
    let (a, b, c) = unsafe {
        (
            MatRef::from_raw_parts(a, m, k, k as isize, 1),
            MatRef::from_raw_parts(b, k, n, n as isize, 1),
            MatMut::from_raw_parts_mut(c, m, n, n as isize, 1),
        )
    };
    let par = match NonZero::new(threads) {
        Some(threads) if threads.get() > 1 => Par::Rayon(threads),
        _ => Par::Seq,
    };
    faer::linalg::matmul::matmul(c, Accum::Replace, a, b, 1.0, par);
}

/// The product of `gemm`.
///
/// # Safety
///
/// As for [`peer_faer`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_gemm(
    threads: usize,
    m: usize,
    n: usize,
    k: usize,
    a: *const f32,
    b: *const f32,
    c: *mut f32,
) {
    let par = if threads > 1 { gemm::Parallelism::Rayon(threads) } else { gemm::Parallelism::None };
    let (row_a, row_b) = (k as isize, n as isize);
    // SAFETY: as the caller promises.
    unsafe {
        gemm::gemm(m, n, k, c, 1, row_b, false, a, 1, row_a, b, 1, row_b, 0.0, 1.0, false, false, false, par);
    }
}
