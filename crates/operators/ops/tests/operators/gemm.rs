//! Products against the three loops in `f64`: all instruction sets, shapes, strides, types and numbers of threads.

use half::{bf16, f16};
use proptest::prelude::*;
use steptime_ops::gemm::{
    Element, GemmError, MatMut, MatRef, PackedMatrix, Plan, gemm, gemm_cache, gemm_naive, gemm_packed,
    gemm_planned, gemm_register, gemm_vectorized,
};
use steptime_ops::{Cpu, Isa};

/// Numbers in [-1, 1) that differ from place to place.
fn numbers(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn cpus(threads: usize) -> impl Iterator<Item = Cpu> {
    let available = Isa::ALL.into_iter().filter(|isa| isa.is_available());
    available.map(move |isa| Cpu::with_isa(isa, threads).unwrap())
}

/// Asserts equality within rounding: each of `k` roundings may lose half a unit of numbers up to `k`.
fn assert_close(found: &[f32], expected: &[f32], k: usize, what: &str) {
    let bound = 1e-6 * (k as f32 + 4.0);
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= bound, "{what}: element {at} is {found}, not {expected}");
    }
}

/// A matrix with gaps: (row stride, column stride, elements).
fn strides(rows: usize, cols: usize, kind: usize) -> (usize, usize, usize) {
    let (row, col) = match kind {
        0 => (cols, 1),
        1 => (1, rows),
        2 => (cols + 3, 1),
        3 => (1, rows + 5),
        _ => (2 * cols + 1, 2),
    };
    (row, col, rows.saturating_sub(1) * row + cols.saturating_sub(1) * col + 1)
}

fn compare<T: Element>(
    sizes: (usize, usize, usize),
    kinds: [usize; 3],
    scale: (f32, f32),
    cast: fn(f32) -> T,
) {
    let (m, n, k) = sizes;
    let (alpha, beta) = scale;
    let (a_row, a_col, a_len) = strides(m, k, kinds[0]);
    let (b_row, b_col, b_len) = strides(k, n, kinds[1]);
    let (c_row, c_col, c_len) = strides(m, n, kinds[2]);
    let a: Vec<T> = numbers(a_len, 1).into_iter().map(cast).collect();
    let b: Vec<T> = numbers(b_len, 2).into_iter().map(cast).collect();
    let start = numbers(c_len, 3);
    let a = MatRef::with_strides(&a, m, k, a_row, a_col).unwrap();
    let b = MatRef::with_strides(&b, k, n, b_row, b_col).unwrap();
    let mut expected = start.clone();
    gemm_naive(alpha, a, b, beta, MatMut::with_strides(&mut expected, m, n, c_row, c_col).unwrap()).unwrap();
    for cpu in cpus(2) {
        let mut c = start.clone();
        gemm(&cpu, alpha, a, b, beta, MatMut::with_strides(&mut c, m, n, c_row, c_col).unwrap()).unwrap();
        assert_close(&c, &expected, k, &format!("{} {sizes:?} {kinds:?}", cpu.isa()));
        let packed = PackedMatrix::new(&cpu, b);
        let mut again = start.clone();
        let c = MatMut::with_strides(&mut again, m, n, c_row, c_col).unwrap();
        gemm_packed(&cpu, alpha, a, &packed, beta, c).unwrap();
        assert_close(&again, &expected, k, &format!("packed {} {sizes:?} {kinds:?}", cpu.isa()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn products_are_those_of_three_loops(
        m in 0..70_usize, n in 0..90_usize, k in 0..80_usize,
        kinds in [0..5_usize, 0..5_usize, 0..5_usize],
        alpha in prop_oneof![Just(1.0_f32), -2.0..2.0_f32], beta in prop_oneof![Just(0.0_f32), Just(1.0), -2.0..2.0_f32],
    ) {
        compare(( m, n, k), kinds, (alpha, beta), |value| value);
    }

    #[test]
    fn half_precision_is_converted_and_added_in_f32(
        m in 1..40_usize, n in 1..70_usize, k in 1..150_usize, kinds in [0..5_usize, 0..5_usize, 0..1_usize],
    ) {
        compare((m, n, k), kinds, (1.0, 0.0), bf16::from_f32);
        compare((m, n, k), kinds, (1.0, 0.0), f16::from_f32);
    }
}

#[test]
fn awkward_sizes() {
    for sizes in
        [(1, 1, 1), (1, 4097, 3), (4097, 1, 2), (3, 2, 4097), (15, 33, 17), (0, 5, 5), (5, 0, 5), (5, 5, 0)]
    {
        compare(sizes, [0, 1, 0], (1.0, 0.0), |value| value);
        compare(sizes, [2, 4, 3], (0.5, 2.0), |value| value);
    }
}

#[test]
fn bits_do_not_depend_on_threads_or_blocks_of_rows_and_columns() {
    for (m, n, k) in
        [(97, 130, 300), (13, 700, 64), (400, 40, 50), (64, 100, 2500), (16, 520, 1100), (3, 300, 2100)]
    {
        let (a, b) = (numbers(m * k, 4), numbers(k * n, 5));
        let (a, b) = (MatRef::new(&a, m, k).unwrap(), MatRef::new(&b, k, n).unwrap());
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            let run = |threads: usize, m_c: usize, n_c: usize| {
                let cpu = Cpu::with_isa(isa, threads).unwrap();
                let plan = Plan::new(isa, m, n, k).with_blocks(128, m_c, n_c);
                let mut c = vec![0.0; m * n];
                gemm_planned(&cpu, &plan, 1.0, a, b, 0.0, MatMut::new(&mut c, m, n).unwrap()).unwrap();
                c
            };
            let one = run(1, 1 << 20, 1 << 20);
            for threads in [2, 3, 7] {
                assert_eq!(one, run(threads, 28, 64), "{isa} on {threads} threads");
            }
            let old = numbers(m * n, 6);
            let c = |threads: usize, prepacked: bool| {
                let mut c = old.clone();
                let cpu = Cpu::with_isa(isa, threads).unwrap();
                let out = MatMut::new(&mut c, m, n).unwrap();
                if prepacked {
                    gemm_packed(&cpu, 0.5, a, &PackedMatrix::new(&cpu, b), 2.0, out).unwrap();
                } else {
                    gemm(&cpu, 0.5, a, b, 2.0, out).unwrap();
                }
                c
            };
            let one = c(1, false);
            for threads in [2, 3, 7, 16] {
                assert_eq!(one, c(threads, false), "{isa} on {threads} threads");
            }
            assert_eq!(one, c(2, true), "{isa}, packed before");
        }
    }
}

#[test]
fn every_rung_computes_the_same() {
    for (m, n, k) in [(1, 1, 1), (50, 70, 90), (29, 65, 2100), (3, 3, 0)] {
        let (a, b) = (numbers(m * k, 6), numbers(k * n, 7));
        let (a, b) = (MatRef::new(&a, m, k).unwrap(), MatRef::new(&b, k, n).unwrap());
        let mut expected = vec![0.0; m * n];
        gemm_naive(1.0, a, b, 0.0, MatMut::new(&mut expected, m, n).unwrap()).unwrap();
        for cpu in cpus(1) {
            for rung in [gemm_vectorized, gemm_register, gemm_cache] {
                let mut c = vec![f32::NAN; m * n];
                rung(&cpu, a, b, MatMut::new(&mut c, m, n).unwrap()).unwrap();
                assert_close(&c, &expected, k, "a rung");
            }
        }
    }
}

#[test]
fn what_beta_zero_overwrites_is_not_read() {
    let (a, b) = (numbers(20 * 20, 1), numbers(20 * 20, 2));
    let (a, b) = (MatRef::new(&a, 20, 20).unwrap(), MatRef::new(&b, 20, 20).unwrap());
    for cpu in cpus(1) {
        let mut c = vec![f32::NAN; 400];
        gemm(&cpu, 1.0, a, b, 0.0, MatMut::new(&mut c, 20, 20).unwrap()).unwrap();
        assert!(c.iter().all(|value| value.is_finite()));
    }
}

#[test]
fn products_without_rows_are_nothing_on_any_number_of_threads() {
    let b = vec![1.0; 1024 * 1024];
    for cpu in [1, 2, 16].into_iter().flat_map(cpus) {
        let (a, b) = (MatRef::<f32>::new(&[], 0, 1024).unwrap(), MatRef::new(&b, 1024, 1024).unwrap());
        gemm(&cpu, 1.0, a, b, 0.0, MatMut::new(&mut [], 0, 1024).unwrap()).unwrap();
    }
}

#[test]
fn wrong_operands_are_errors() {
    let data = vec![0.0_f32; 12];
    assert!(matches!(MatRef::new(&data, 4, 4), Err(GemmError::TooShort { needed: 16, len: 12, .. })));
    assert!(MatRef::with_strides(&data, usize::MAX, usize::MAX, usize::MAX, 1).is_err());
    let mut out = vec![0.0_f32; 12];
    assert!(matches!(MatMut::with_strides(&mut out, 3, 4, 2, 1), Err(GemmError::Overlap { .. })));
    assert!(matches!(MatMut::with_strides(&mut out, 3, 1, 0, 1), Err(GemmError::Overlap { .. })));
    let cpu = Cpu::new(1).unwrap();
    let a = MatRef::new(&data, 3, 4).unwrap();
    let error = gemm(&cpu, 1.0, a, a, 0.0, MatMut::new(&mut out, 3, 4).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "B is 3 x 4 and should be 4 x 4: transpose or reshape it");
    let square = MatRef::new(&data, 3, 3).unwrap();
    assert!(gemm(&cpu, 1.0, square, square, 0.0, MatMut::new(&mut out, 3, 2).unwrap()).is_err());
    assert!(gemm_register(&cpu, square, square.t(), MatMut::new(&mut out, 3, 3).unwrap()).is_err());
    let plan = Plan::new(cpu.isa(), 3, 3, 4);
    let c = MatMut::new(&mut out, 3, 3).unwrap();
    assert!(gemm_planned(&cpu, &plan, 1.0, square, square, 0.0, c).is_err());
    if cpu.isa() != Isa::Scalar {
        let packed = PackedMatrix::new(&cpu, square);
        let scalar = Cpu::with_isa(Isa::Scalar, 1).unwrap();
        let c = MatMut::new(&mut out, 3, 3).unwrap();
        assert!(matches!(gemm_packed(&scalar, 1.0, square, &packed, 0.0, c), Err(GemmError::Isa { .. })));
        // A plan for other instructions is refused too.
        let plan = Plan::new(cpu.isa(), 3, 3, 3);
        let c = MatMut::new(&mut out, 3, 3).unwrap();
        assert!(gemm_planned(&scalar, &plan, 1.0, square, square, 0.0, c).is_err());
    }
}
