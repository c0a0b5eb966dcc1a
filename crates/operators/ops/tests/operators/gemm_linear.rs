//! Linear layers and their gradients against plain loops in `f64`.

use proptest::prelude::*;
use steptime_ops::gemm::{
    Activation, Gradients, MatMut, MatRef, PackedMatrix, linear, linear_backward, linear_backward_reference,
    linear_packed, linear_reference,
};
use steptime_ops::{Cpu, Isa};

const ACTIVATIONS: [Activation; 3] = [Activation::Identity, Activation::Relu, Activation::Sigmoid];

fn numbers(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn assert_close(found: &[f32], expected: &[f32], terms: usize, what: &str) {
    assert_eq!(found.len(), expected.len());
    let bound = 1e-6 * (terms as f32 + 4.0);
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= bound, "{what}: element {at} is {found}, not {expected}");
    }
}

/// Computes `y`, `dx`, `dw`, `db` on some threads, from fixed numbers; `pad` elements are between rows of x.
fn all(cpu: &Cpu, shape: (usize, usize, usize), pad: usize, activation: Activation) -> [Vec<f32>; 4] {
    let (batch, inputs, outputs) = shape;
    let (x, weight) = (numbers(batch * (inputs + pad), 1), numbers(outputs * inputs, 2));
    let (bias, dy) = (numbers(outputs, 3), numbers(batch * outputs, 4));
    let x = MatRef::with_strides(&x, batch, inputs, inputs + pad, 1).unwrap();
    let weight = MatRef::new(&weight, outputs, inputs).unwrap();
    let dy = MatRef::new(&dy, batch, outputs).unwrap();
    let mut y = vec![f32::NAN; batch * outputs];
    linear(cpu, x, weight, Some(&bias), activation, MatMut::new(&mut y, batch, outputs).unwrap()).unwrap();
    let what = format!("{} {shape:?} {activation:?}", cpu.isa());
    assert_close(&y, &linear_reference(x, weight, Some(&bias), activation), inputs, &what);

    let packed = PackedMatrix::new(cpu, weight.t());
    let mut again = vec![f32::NAN; batch * outputs];
    let out = MatMut::new(&mut again, batch, outputs).unwrap();
    linear_packed(cpu, x, &packed, Some(&bias), activation, out).unwrap();
    assert_close(&again, &y, inputs, &what);

    let y_view = MatRef::new(&y, batch, outputs).unwrap();
    let (mut dx, mut dw) = (vec![f32::NAN; batch * inputs], vec![f32::NAN; outputs * inputs]);
    let mut db = vec![f32::NAN; outputs];
    let gradients = Gradients {
        x: Some(MatMut::new(&mut dx, batch, inputs).unwrap()),
        weight: Some(MatMut::new(&mut dw, outputs, inputs).unwrap()),
        bias: Some(&mut db),
    };
    linear_backward(cpu, dy, y_view, x, weight, activation, gradients).unwrap();
    let expected = linear_backward_reference(dy, y_view, x, weight, activation);
    assert_close(&dx, &expected.0, outputs, &format!("dx {what}"));
    assert_close(&dw, &expected.1, batch, &format!("dw {what}"));
    assert_close(&db, &expected.2, batch, &format!("db {what}"));

    let mut alone = vec![f32::NAN; outputs];
    let gradients = Gradients { bias: Some(&mut alone), ..Gradients::default() };
    linear_backward(cpu, dy, y_view, x, weight, activation, gradients).unwrap();
    assert_close(&alone, &db, batch, &what);
    [y, dx, dw, db]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn layers_are_those_of_plain_loops(
        batch in 0..150_usize, inputs in 0..60_usize, outputs in prop_oneof![Just(1_usize), 0..70_usize],
        pad in 0..3_usize, activation in 0..3_usize,
    ) {
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            all(&Cpu::with_isa(isa, 2).unwrap(), (batch, inputs, outputs), pad, ACTIVATIONS[activation]);
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    for shape in [(300, 13, 64), (257, 100, 1), (200, 37, 90), (65, 300, 40), (5, 1100, 520)] {
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            for activation in ACTIVATIONS {
                let run = |threads| all(&Cpu::with_isa(isa, threads).unwrap(), shape, 0, activation);
                let one = run(1);
                for threads in [2, 3, 7] {
                    assert_eq!(one, run(threads), "{isa} {shape:?} on {threads} threads");
                }
            }
        }
    }
}

#[test]
fn a_closed_rectifier_stops_even_infinite_gradients() {
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let cpu = Cpu::with_isa(isa, 1).unwrap();
        let (dy, y, x, weight) = ([f32::INFINITY, 1.0], [0.0, 1.0], [1.0], [1.0, 1.0]);
        let mut dw = [0.0; 2];
        let gradients =
            Gradients { weight: Some(MatMut::new(&mut dw, 2, 1).unwrap()), ..Gradients::default() };
        let view = |data, rows, cols| MatRef::new(data, rows, cols).unwrap();
        let (dy, y, x, weight) = (view(&dy, 1, 2), view(&y, 1, 2), view(&x, 1, 1), view(&weight, 2, 1));
        linear_backward(&cpu, dy, y, x, weight, Activation::Relu, gradients).unwrap();
        assert_eq!(dw, [0.0, 1.0]);
    }
}

#[test]
fn what_is_not_a_number_stays_visible() {
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let cpu = Cpu::with_isa(isa, 1).unwrap();
        let (x, weight) = ([f32::NAN, 1.0], [1.0; 4]);
        let mut y = [0.0; 2];
        let (x, weight) = (MatRef::new(&x, 1, 2).unwrap(), MatRef::new(&weight, 2, 2).unwrap());
        linear(&cpu, x, weight, None, Activation::Relu, MatMut::new(&mut y, 1, 2).unwrap()).unwrap();
        assert!(y.iter().all(|value| value.is_nan()), "{isa}");
    }
}

#[test]
fn wrong_shapes_are_errors() {
    let cpu = Cpu::new(1).unwrap();
    let data = vec![0.0_f32; 12];
    let mut out = vec![0.0_f32; 12];
    let (x, weight) = (MatRef::new(&data, 3, 4).unwrap(), MatRef::new(&data, 2, 4).unwrap());
    let y = MatMut::new(&mut out, 3, 2).unwrap();
    let error = linear(&cpu, x, weight, Some(&[0.0; 3]), Activation::Identity, y).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the bias has 3 elements and should have 2: give one for each output feature"
    );
    let y = MatMut::new(&mut out, 2, 2).unwrap();
    assert!(linear(&cpu, x, weight, None, Activation::Identity, y).is_err());
    let narrow = MatRef::new(&data, 2, 3).unwrap();
    let y = MatMut::new(&mut out, 3, 2).unwrap();
    assert!(linear(&cpu, x, narrow, None, Activation::Identity, y).is_err());
    let dy = MatRef::new(&data, 3, 2).unwrap();
    let gradients = Gradients { bias: Some(&mut out[..1]), ..Gradients::default() };
    assert!(linear_backward(&cpu, dy, dy, x, weight, Activation::Relu, gradients).is_err());
    assert!(linear_backward(&cpu, dy, x, x, weight, Activation::Relu, Gradients::default()).is_err());
}

#[test]
fn a_layer_without_inputs_has_a_bias_alone() {
    let cpu = Cpu::with_isa(Isa::Scalar, 2).unwrap();
    for (batch, outputs) in [(200, 1), (200, 3), (0, 1)] {
        let (none, dy) = (MatRef::new(&[], batch, 0).unwrap(), vec![1.0_f32; batch * outputs]);
        let dy = MatRef::new(&dy, batch, outputs).unwrap();
        let weight = MatRef::new(&[], outputs, 0).unwrap();
        let (mut dx, mut dw, mut db) = ([], [], vec![9.0; outputs]);
        let gradients = Gradients {
            // Empty rows may be anywhere: far past the end of the slice.
            x: Some(MatMut::with_strides(&mut dx, batch, 0, 1 << 20, 1).unwrap()),
            weight: Some(MatMut::new(&mut dw, outputs, 0).unwrap()),
            bias: Some(&mut db),
        };
        linear_backward(&cpu, dy, dy, none, weight, Activation::Identity, gradients).unwrap();
        assert_eq!(db, vec![batch as f32; outputs]);
    }
}
