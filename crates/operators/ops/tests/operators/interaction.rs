//! The interaction against its definition in double precision.

use crate::common;

use common::exact::{close, doubles};
use common::floats::floats;
use proptest::prelude::*;
use steptime_ops::interaction::{Features, FeaturesMut, Interaction, InteractionError, reference};
use steptime_ops::{Cpu, Isa};
use steptime_tensor::{Tensor, View, ViewMut};

/// Forward and backward with stacked operands.
fn stacked(
    cpu: &Cpu,
    of: &Interaction,
    samples: usize,
    features: &[f32],
    gradient: &[f32],
) -> (Vec<f32>, Vec<f32>) {
    let shape = [samples, of.features(), of.dim()];
    let inputs = Features::Stacked(View::from_slice(features, &shape).unwrap());
    let mut out = vec![f32::NAN; samples * of.columns()];
    let mut grads = vec![f32::NAN; features.len()];
    let out_shape = [samples, of.columns()];
    of.forward(cpu, &inputs, ViewMut::from_mut_slice(&mut out, &out_shape).unwrap()).unwrap();
    let gradient = View::from_slice(gradient, &out_shape).unwrap();
    let grads_view = FeaturesMut::Stacked(ViewMut::from_mut_slice(&mut grads, &shape).unwrap());
    of.backward(cpu, &inputs, &gradient, grads_view).unwrap();
    (out, grads)
}

fn check(isa: Isa, samples: usize, features: usize, dim: usize, self_interaction: bool, seed: u64) {
    let of = Interaction::new(features, dim, self_interaction).unwrap();
    let cpu = Cpu::with_isa(isa, 1).unwrap();
    let inputs = floats(seed, samples * features * dim);
    let gradient = floats(seed + 1, samples * of.columns());
    let (out, grads) = stacked(&cpu, &of, samples, &inputs, &gradient);
    let (inputs, gradient) = (doubles(&inputs), doubles(&gradient));
    close("forward", &out, &reference::forward(&of, samples, &inputs), dim);
    close("gradients", &grads, &reference::backward(&of, samples, &inputs, &gradient), features);
}

fn available() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_size_matches_the_definition(
        samples in 0..5usize, features in 1..32usize, dim in 1..70usize, own in any::<bool>(), seed in any::<u32>(),
    ) {
        available().for_each(|isa| check(isa, samples, features, dim, own, seed.into()));
    }
}

#[test]
fn awkward_sizes_match_the_definition() {
    for isa in available() {
        for (features, dim) in [(1, 1), (2, 1), (27, 128), (27, 16), (9, 64), (5, 4097), (33, 17), (60, 3)] {
            check(isa, 3, features, dim, false, 7);
            check(isa, 3, features, dim, true, 7);
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let of = Interaction::new(27, 37, false).unwrap();
    let samples = 101;
    let inputs = floats(3, samples * 27 * 37);
    let gradient = floats(4, samples * of.columns());
    for isa in available() {
        let one = stacked(&Cpu::with_isa(isa, 1).unwrap(), &of, samples, &inputs, &gradient);
        for threads in [2, 3, 7] {
            let many = stacked(&Cpu::with_isa(isa, threads).unwrap(), &of, samples, &inputs, &gradient);
            assert!(one == many, "{isa}, {threads} threads");
        }
    }
}

/// Gradients large enough to bypass the caches equal those of each half.
#[test]
fn large_batches_match_small_ones() {
    let of = Interaction::new(27, 128, false).unwrap();
    let samples = 700;
    let shape = [samples, 27, 128];
    let inputs = Tensor::from_vec(floats(5, samples * 27 * 128), &shape).unwrap();
    let gradient = Tensor::from_vec(floats(6, samples * of.columns()), &[samples, of.columns()]).unwrap();
    for isa in available().filter(|&isa| isa != Isa::Scalar) {
        let cpu = Cpu::with_isa(isa, 2).unwrap();
        let run = |from: usize, to: usize| {
            let mut grads = Tensor::<f32>::zeros(&[to - from, 27, 128]).unwrap();
            let inputs = Features::Stacked(inputs.view().slice(0, from..to).unwrap());
            let gradient = gradient.view().slice(0, from..to).unwrap();
            of.backward(&cpu, &inputs, &gradient, FeaturesMut::Stacked(grads.make_mut())).unwrap();
            grads.to_vec()
        };
        let halves = [run(0, 350), run(350, 700)].concat();
        assert!(run(0, 700) == halves, "{isa}");
    }
}

/// Separate dense vectors, tables as `T x B x D`, outputs inside of wider rows.
#[test]
fn split_and_strided_operands_give_the_same_bits() {
    let (samples, features, dim) = (19, 6, 21);
    let of = Interaction::new(features, dim, true).unwrap();
    let inputs = Tensor::from_vec(floats(8, samples * features * dim), &[samples, features, dim]).unwrap();
    let gradient = floats(9, samples * of.columns());
    for isa in available() {
        let cpu = Cpu::with_isa(isa, 3).unwrap();
        let (out, grads) = stacked(&cpu, &of, samples, &inputs.to_vec(), &gradient);
        let dense = inputs.view().select(1, 0).unwrap().to_tensor();
        let tables = inputs.view().slice(1, 1..features).unwrap().transpose(0, 1).unwrap().to_tensor();
        let split = Features::Split { dense: dense.view(), pooled: tables.view().transpose(0, 1).unwrap() };
        let mut wide = Tensor::<f32>::zeros(&[samples, of.columns() + 5]).unwrap();
        let part = wide.make_mut().slice(1, 2..2 + of.columns()).unwrap();
        of.forward(&cpu, &split, part).unwrap();
        assert_eq!(wide.view().slice(1, 2..2 + of.columns()).unwrap().to_vec(), out);
        assert!(wide.view().slice(1, 0..2).unwrap().to_vec().iter().all(|&value| value == 0.0));

        let mut dense_grad = Tensor::<f32>::zeros(&[samples, dim]).unwrap();
        let mut tables_grad = Tensor::<f32>::zeros(&[features - 1, samples, dim]).unwrap();
        let to = FeaturesMut::Split {
            dense: dense_grad.make_mut(),
            pooled: tables_grad.make_mut().transpose(0, 1).unwrap(),
        };
        let gradient = View::from_slice(&gradient, &[samples, of.columns()]).unwrap();
        of.backward(&cpu, &split, &gradient, to).unwrap();
        let grads = Tensor::from_vec(grads, &[samples, features, dim]).unwrap();
        assert_eq!(dense_grad.view(), grads.view().select(1, 0).unwrap());
        assert_eq!(tables_grad.transpose(0, 1).unwrap(), grads.slice(1, 1..features).unwrap());
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    assert!(matches!(Interaction::new(0, 4, false), Err(InteractionError::Size { .. })));
    assert!(matches!(Interaction::new(4, 0, false), Err(InteractionError::Size { .. })));
    assert!(Interaction::new(usize::MAX, 1, false).is_err());
    let of = Interaction::new(3, 4, false).unwrap();
    let cpu = Cpu::new(1).unwrap();
    let mut out = Tensor::<f32>::zeros(&[2, of.columns()]).unwrap();
    let wrong = Tensor::<f32>::zeros(&[2, 3, 5]).unwrap();
    let error = of.forward(&cpu, &Features::Stacked(wrong.view()), out.make_mut()).unwrap_err();
    assert!(error.to_string().contains("[2, 3, 5], and [2, 3, 4]"), "{error}");
    let turned = Tensor::<f32>::zeros(&[2, 4, 3]).unwrap().transpose(1, 2).unwrap();
    let error = of.forward(&cpu, &Features::Stacked(turned.view()), out.make_mut()).unwrap_err();
    assert!(matches!(error, InteractionError::Stride { stride: 3, .. }));
    let right = Tensor::<f32>::zeros(&[2, 3, 4]).unwrap();
    let error = of.forward(&cpu, &Features::Stacked(right.view()), wrong.clone().make_mut()).unwrap_err();
    assert!(matches!(error, InteractionError::Shape { operand: "output", .. }));
    let error = of
        .backward(
            &cpu,
            &Features::Stacked(right.view()),
            &out.view(),
            FeaturesMut::Stacked(wrong.clone().make_mut()),
        )
        .unwrap_err();
    assert!(matches!(error, InteractionError::Shape { operand: "gradients of features", .. }));
    let dense = Tensor::<f32>::zeros(&[3, 4]).unwrap();
    let split = Features::Split { dense: dense.view(), pooled: right.view() };
    assert!(of.forward(&cpu, &split, out.make_mut()).is_err());
    assert!(Features::Stacked(Tensor::<f32>::zeros(&[]).unwrap().view()).samples() == 0);
}
