//! Convolutions and their gradients against the definition in double precision.

use crate::common;

use common::exact::{close, doubles};
use common::floats::floats;
use proptest::prelude::*;
use steptime_ops::convolution::{Convolution, ConvolutionError, Layout, Sizes, reference};
use steptime_ops::{Cpu, Isa};

/// Operands of a convolution.
struct Operands {
    of: Convolution,
    x: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
    dy: Vec<f32>,
}

impl Operands {
    fn new(sizes: Sizes, seed: u64) -> Operands {
        let of = Convolution::new(sizes).unwrap();
        let x = floats(seed, of.input_len());
        let (weight, bias) = (floats(seed + 1, of.weight_len()), floats(seed + 2, sizes.outputs));
        let dy = floats(seed + 3, of.output_len());
        Operands { of, x, weight, bias, dy }
    }

    fn forward(&self, cpu: &Cpu, bias: bool) -> Vec<f32> {
        let mut y = vec![f32::NAN; self.of.output_len()];
        let bias = bias.then_some(&self.bias[..]);
        self.of.forward(cpu, &self.x, &self.weight, bias, &mut y).unwrap();
        y
    }

    /// All results.
    fn run(&self, cpu: &Cpu) -> Vec<Vec<f32>> {
        let Operands { of, x, weight, bias, dy } = self;
        let [mut dx, mut dweight, mut dbias] =
            [x.len(), weight.len(), bias.len()].map(|len| vec![f32::NAN; len]);
        of.input_gradient(cpu, dy, weight, &mut dx).unwrap();
        of.weight_gradient(cpu, x, dy, &mut dweight).unwrap();
        of.bias_gradient(cpu, dy, &mut dbias).unwrap();
        vec![self.forward(cpu, true), self.forward(cpu, false), dx, dweight, dbias]
    }
}

/// Checks all passes against the definition.
fn check(isa: Isa, threads: usize, sizes: Sizes, seed: u64) {
    let operands = Operands::new(sizes, seed);
    let found = operands.run(&Cpu::with_isa(isa, threads).unwrap());
    let Operands { of, x, weight, bias, dy } = &operands;
    let [x, weight, bias, dy] = [x, weight, bias, dy].map(|values| doubles(values));
    let terms = of.weight_len() / sizes.outputs;
    let what = |pass: &str| format!("{pass}, {isa}, {threads} threads, {sizes:?}");
    close(&what("forward with bias"), &found[0], &reference::forward(of, &x, &weight, Some(&bias)), terms);
    close(&what("forward"), &found[1], &reference::forward(of, &x, &weight, None), terms);
    let reached = terms / sizes.inputs * sizes.groups * sizes.outputs;
    close(&what("gradient of the input"), &found[2], &reference::input_gradient(of, &dy, &weight), reached);
    let pixels = sizes.samples * of.output()[0] * of.output()[1];
    close(&what("gradient of the weights"), &found[3], &reference::weight_gradient(of, &x, &dy), pixels);
    close(&what("gradient of the bias"), &found[4], &reference::bias_gradient(of, &dy), pixels);
}

fn available() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

const LAYOUTS: [Layout; 2] = [Layout::ChannelsFirst, Layout::ChannelsLast];

prop_compose! {
    /// Sizes that fit together.
    fn sizes()(
        (samples, inputs, outputs, groups) in (0..4usize, 1..7usize, 1..7usize, 1..4usize),
        (kernel, extra) in (any_pair(1..4), any_pair(0..9)),
        (stride, padding, dilation) in (any_pair(1..4), any_pair(0..3), any_pair(1..3)),
        last in any::<bool>(),
    ) -> Sizes {
        let image = [0, 1].map(|at| {
            let reach: usize = (kernel[at] - 1) * dilation[at] + 1;
            reach.saturating_sub(2 * padding[at]).max(1) + extra[at]
        });
        let layout = LAYOUTS[usize::from(last)];
        let (inputs, outputs) = (inputs * groups, outputs * groups);
        Sizes { samples, inputs, outputs, image, kernel, stride, padding, dilation, groups, layout }
    }
}

fn any_pair(range: std::ops::Range<usize>) -> impl Strategy<Value = [usize; 2]> {
    [range.clone(), range]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_size_matches_the_definition(sizes in sizes(), threads in 1..4usize, seed in any::<u32>()) {
        available().for_each(|isa| check(isa, threads, sizes, seed.into()));
    }
}

/// Sizes at which the product is divided in many ways: more terms than a block has, more lanes than a tile, few pixels.
fn awkward() -> Vec<Sizes> {
    let of = |samples, inputs, outputs, image, kernel| Sizes {
        samples,
        inputs,
        outputs,
        image: [image, image],
        kernel: [kernel, kernel],
        padding: [kernel / 2, kernel / 2],
        ..Sizes::default()
    };
    let same = |sizes: Sizes, stride, groups| Sizes { stride: [stride, stride], groups, ..sizes };
    vec![
        same(of(2, 3, 64, 30, 7), 2, 1),
        of(1, 64, 70, 9, 3),
        of(3, 100, 33, 7, 3),
        of(5, 70, 40, 5, 1),
        same(of(2, 40, 24, 9, 1), 2, 1),
        same(of(2, 32, 32, 14, 3), 1, 8),
        same(of(2, 24, 24, 15, 3), 2, 24),
        same(of(1, 12, 36, 11, 5), 3, 12),
        Sizes { dilation: [3, 2], ..of(1, 5, 6, 12, 3) },
        Sizes { padding: [4, 0], image: [1, 40], ..of(1, 2, 3, 1, 3) },
        of(1, 1, 1, 1, 1),
        // Depthwise: several planes of an image, several vectors of a row and of channels.
        same(of(1, 21, 21, 130, 3), 1, 21),
        same(of(2, 3, 3, 131, 5), 2, 3),
        // Channels first, transposed: small images, a stride, groups.
        of(3, 20, 18, 7, 3),
        same(of(1, 17, 35, 37, 3), 2, 1),
        same(of(2, 64, 32, 10, 3), 3, 2),
    ]
}

#[test]
fn awkward_sizes_match_the_definition() {
    for (isa, layout) in available().flat_map(|isa| LAYOUTS.map(|layout| (isa, layout))) {
        for sizes in awkward() {
            check(isa, 2, Sizes { layout, ..sizes }, 7);
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for (sizes, layout) in awkward().into_iter().flat_map(|sizes| LAYOUTS.map(|layout| (sizes, layout))) {
        let operands = Operands::new(Sizes { layout, ..sizes }, 3);
        for isa in available() {
            let one = operands.run(&Cpu::with_isa(isa, 1).unwrap());
            for threads in [2, 3, 7] {
                let many = operands.run(&Cpu::with_isa(isa, threads).unwrap());
                assert!(one == many, "{isa}, {threads} threads, {layout:?}, {sizes:?}");
            }
        }
    }
}

/// NaN in the image reaches the pixels whose taps cover it, and no others.
#[test]
fn odd_values_go_where_they_are_seen() {
    for layout in LAYOUTS {
        let sizes = Sizes { image: [6, 6], kernel: [3, 3], padding: [1, 1], layout, ..Sizes::default() };
        let of = Convolution::new(sizes).unwrap();
        let (mut x, mut y) = (vec![1.0; 36], vec![0.0; 36]);
        x[3 * 6 + 3] = f32::NAN;
        for isa in available() {
            of.forward(&Cpu::with_isa(isa, 1).unwrap(), &x, &[1.0; 9], None, &mut y).unwrap();
            let seen = |at: usize| (2..=4).contains(&(at / 6)) && (2..=4).contains(&(at % 6));
            assert!(y.iter().enumerate().all(|(at, y)| y.is_nan() == seen(at)), "{isa}: {y:?}");
        }
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let refused = |sizes: Sizes| Convolution::new(sizes).unwrap_err();
    let plain = Sizes { inputs: 4, outputs: 6, image: [5, 5], kernel: [3, 3], ..Sizes::default() };
    for (sizes, what) in [
        (Sizes { inputs: 0, ..plain }, "input channels is 0"),
        (Sizes { outputs: 0, ..plain }, "output channels is 0"),
        (Sizes { groups: 0, ..plain }, "groups is 0"),
        (Sizes { kernel: [3, 0], ..plain }, "kernel is 0"),
        (Sizes { stride: [0, 1], ..plain }, "stride is 0"),
        (Sizes { dilation: [1, 0], ..plain }, "dilation is 0"),
        (Sizes { groups: 4, ..plain }, "4 groups do not divide 4 input and 6 output channels"),
        (Sizes { dilation: [1, 3], ..plain }, "reaches over 7 pixels does not fit 5"),
        (Sizes { dilation: [usize::MAX, 3], ..plain }, "does not fit 5"),
        (Sizes { padding: [usize::MAX, 1], ..plain }, "an image with its padding has more elements"),
        (Sizes { samples: usize::MAX / 8, ..plain }, "the input has more elements than memory holds"),
        (Sizes { image: [0, 5], ..plain }, "does not fit 0"),
    ] {
        let error = refused(sizes).to_string();
        assert!(error.contains(what), "{error} for {what}");
    }
    assert!(matches!(refused(Sizes { groups: 3, ..plain }), ConvolutionError::Groups { groups: 3, .. }));
}

#[test]
fn operands_of_other_lengths_are_refused() {
    let sizes = Sizes { inputs: 4, outputs: 6, image: [5, 5], kernel: [3, 3], groups: 2, ..Sizes::default() };
    let of = Convolution::new(sizes).unwrap();
    let cpu = Cpu::new(1).unwrap();
    let (x, w, mut y) = (vec![0.0; 100], vec![0.0; 108], vec![0.0; 54]);
    assert!(of.forward(&cpu, &x, &w, Some(&[0.0; 6]), &mut y).is_ok());
    let error = of.forward(&cpu, &x[1..], &w, None, &mut y).unwrap_err().to_string();
    assert!(error.contains("the input: 99 elements given, and [1, 4, 5, 5] takes 100"), "{error}");
    let error = of.forward(&cpu, &x, &w[1..], None, &mut y).unwrap_err().to_string();
    assert!(error.contains("the weights: 107 elements given, and [6, 2, 3, 3] takes 108"), "{error}");
    let error = of.forward(&cpu, &x, &w, Some(&[0.0; 5]), &mut y).unwrap_err().to_string();
    assert!(error.contains("the bias: 5 elements given, and [6] takes 6"), "{error}");
    let error = of.forward(&cpu, &x, &w, None, &mut y[1..]).unwrap_err().to_string();
    assert!(error.contains("the output: 53 elements given, and [1, 6, 3, 3] takes 54"), "{error}");
    let (mut dx, mut dw, mut db) = (x.clone(), w.clone(), [0.0; 6]);
    let dy = y.clone();
    for (error, what) in [
        (of.input_gradient(&cpu, &dy[1..], &w, &mut dx), "the gradient of the output: 53"),
        (of.input_gradient(&cpu, &dy, &w[1..], &mut dx), "the weights: 107"),
        (of.input_gradient(&cpu, &dy, &w, &mut dx[1..]), "the gradient of the input: 99"),
        (of.weight_gradient(&cpu, &x[1..], &dy, &mut dw), "the input: 99"),
        (of.weight_gradient(&cpu, &x, &dy[1..], &mut dw), "the gradient of the output: 53"),
        (of.weight_gradient(&cpu, &x, &dy, &mut dw[1..]), "the gradient of the weights: 107"),
        (of.bias_gradient(&cpu, &dy[1..], &mut db), "the gradient of the output: 53"),
        (of.bias_gradient(&cpu, &dy, &mut db[1..]), "the gradient of the bias: 5"),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains(what), "{error} for {what}");
    }
    // Empty inputs are not an error, and their gradients are 0.
    let none = Convolution::new(Sizes { samples: 0, ..sizes }).unwrap();
    assert!(none.forward(&cpu, &[], &w, None, &mut []).is_ok());
    (dw[0], db[0]) = (1.0, 1.0);
    assert!(none.input_gradient(&cpu, &[], &w, &mut []).is_ok());
    assert!(none.weight_gradient(&cpu, &[], &[], &mut dw).is_ok() && dw[0] == 0.0);
    assert!(none.bias_gradient(&cpu, &[], &mut db).is_ok() && db[0] == 0.0);
}
