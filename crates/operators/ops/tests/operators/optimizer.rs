//! Dense optimizers against double precision, PyTorch, and themselves with other threads and instruction sets.

use proptest::prelude::*;
use steptime_ops::optimizer::{Adagrad, Adam, AdamW, Optimizer, OptimizerError, Rule, Sgd};
use steptime_ops::{Cpu, Isa};

/// Pseudo-random numbers around zero.
fn random(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn steps<R: Rule>(rule: R, sizes: &[usize], cpu: Option<&Cpu>) -> Vec<Vec<f32>> {
    let mut optimizer = Optimizer::new(rule, sizes).unwrap();
    let mut tensors: Vec<Vec<f32>> = sizes.iter().zip(1..).map(|(&size, seed)| random(size, seed)).collect();
    for step in 0..3 {
        let gradients: Vec<Vec<f32>> =
            sizes.iter().zip(1..).map(|(&size, seed)| random(size, seed * 100 + step)).collect();
        let gradients: Vec<&[f32]> = gradients.iter().map(Vec::as_slice).collect();
        let mut slices: Vec<&mut [f32]> = tensors.iter_mut().map(Vec::as_mut_slice).collect();
        match cpu {
            Some(cpu) => optimizer.step(cpu, &mut slices, &gradients).unwrap(),
            None => optimizer.step_reference(&mut slices, &gradients).unwrap(),
        }
    }
    assert_eq!(optimizer.steps(), 3);
    tensors
}

fn check<R: Rule>(rule: R, sizes: &[usize]) {
    let expected = steps(rule, sizes, None);
    let mut first: Option<Vec<Vec<f32>>> = None;
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        for threads in [1, 2, 3, 7] {
            let found = steps(rule, sizes, Some(&Cpu::with_isa(isa, threads).unwrap()));
            for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
                assert!(
                    (found - expected).abs() <= 2e-6 * (1.0 + expected.abs()),
                    "{rule:?}: {found} {expected}"
                );
            }
            let bits = |all: &[Vec<f32>]| all.iter().flatten().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(
                bits(first.get_or_insert_with(|| found.clone())),
                bits(&found),
                "{rule:?} {isa} {threads}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn random_sizes(sizes in prop::collection::vec(prop_oneof![0..40usize, 40..3000usize], 0..4), decay in any::<bool>()) {
        let weight_decay = if decay { 0.05 } else { 0.0 };
        check(Sgd { weight_decay, ..Sgd::new(0.1) }, &sizes);
        check(Sgd { weight_decay, momentum: 0.9, dampening: 0.3, ..Sgd::new(0.1) }, &sizes);
        check(Sgd { weight_decay, momentum: 0.9, nesterov: true, ..Sgd::new(0.1) }, &sizes);
        check(Adagrad { weight_decay, lr_decay: 0.1, initial: 0.2, ..Adagrad::new(0.1) }, &sizes);
        check(Adam { weight_decay, eps: 1e-4, ..Adam::new(0.01) }, &sizes);
        check(AdamW(Adam { weight_decay, eps: 1e-4, ..Adam::new(0.01) }), &sizes);
    }
}

#[test]
fn tensors_of_several_blocks() {
    check(Adam::new(0.01), &[40_001, 3, 16_384, 0]);
}

/// Results of PyTorch stored by `python/golden/ops.py`.
#[derive(serde::Deserialize)]
struct Golden {
    start: Vec<f32>,
    gradients: Vec<Vec<f32>>,
    after: std::collections::BTreeMap<String, Vec<Vec<f32>>>,
}

fn follow<R: Rule>(golden: &Golden, name: &str, rule: R) {
    let cpu = Cpu::new(1).unwrap();
    let mut optimizer = Optimizer::new(rule, &[golden.start.len()]).unwrap();
    let mut tensor = golden.start.clone();
    for (gradient, expected) in golden.gradients.iter().zip(&golden.after[name]) {
        optimizer.step(&cpu, &mut [&mut tensor], &[gradient]).unwrap();
        for (found, expected) in tensor.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-6 * (1.0 + expected.abs()), "{name}: {found} {expected}");
        }
    }
}

#[test]
fn as_pytorch() {
    let golden: Golden = serde_json::from_str(include_str!("../golden/optimizers.json")).unwrap();
    assert_eq!(golden.after.len(), 10);
    follow(&golden, "sgd", Sgd::new(0.1));
    follow(&golden, "sgd_decay", Sgd { weight_decay: 0.05, ..Sgd::new(0.1) });
    let momentum = Sgd { momentum: 0.9, weight_decay: 0.05, ..Sgd::new(0.1) };
    follow(&golden, "sgd_momentum", momentum);
    follow(&golden, "sgd_dampening", Sgd { dampening: 0.3, ..momentum });
    follow(&golden, "sgd_nesterov", Sgd { nesterov: true, ..momentum });
    follow(&golden, "adagrad", Adagrad::new(0.1));
    let adagrad = Adagrad { lr: 0.1, lr_decay: 0.1, weight_decay: 0.05, initial: 0.2, eps: 1e-6 };
    follow(&golden, "adagrad_all", adagrad);
    follow(&golden, "adam", Adam::new(0.01));
    follow(&golden, "adam_decay", Adam { weight_decay: 0.05, beta2: 0.98, ..Adam::new(0.01) });
    follow(&golden, "adamw", AdamW(Adam { weight_decay: 0.05, ..Adam::new(0.01) }));
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let cpu = Cpu::new(1).unwrap();
    assert!(Optimizer::new(Sgd::new(-1.0), &[3]).is_err());
    assert!(Optimizer::new(Sgd { nesterov: true, ..Sgd::new(0.1) }, &[3]).is_err());
    assert!(Optimizer::new(Adam { beta1: 1.0, ..Adam::new(0.1) }, &[3]).is_err());
    let error = Optimizer::new(AdamW(Adam { eps: f64::NAN, ..Adam::new(0.1) }), &[3]).unwrap_err();
    assert!(error.to_string().starts_with("eps = NaN of AdamW"), "{error}");

    let mut optimizer = Optimizer::new(Sgd::new(0.5), &[3]).unwrap();
    let mut tensor = [1.0, 2.0, 3.0];
    let error = optimizer.step(&cpu, &mut [&mut tensor], &[]).unwrap_err();
    assert_eq!(error, OptimizerError::Count { tensors: 1, parameters: 1, gradients: 0 });
    let error = optimizer.step(&cpu, &mut [&mut tensor], &[&[1.0, 2.0]]).unwrap_err();
    assert_eq!(error, OptimizerError::Length { tensor: 0, state: 3, parameters: 3, gradients: 2 });
    assert_eq!((optimizer.steps(), tensor), (0, [1.0, 2.0, 3.0]));
    assert!(optimizer.set_rule(Sgd { momentum: 0.9, ..Sgd::new(0.5) }).is_err());
    optimizer.set_rule(Sgd::new(1.0)).unwrap();
    optimizer.step(&cpu, &mut [&mut tensor], &[&[1.0, 1.0, 1.0]]).unwrap();
    assert_eq!(tensor, [0.0, 1.0, 2.0]);
    assert!(optimizer.state(0).unwrap().is_empty() && optimizer.state(1).is_none());
}
