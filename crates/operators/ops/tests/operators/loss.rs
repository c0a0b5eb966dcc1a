//! Losses and gradients against their definitions in double precision.

use proptest::prelude::*;
use steptime_ops::loss::{Loss, LossError, Reduction, reference};
use steptime_ops::{Cpu, Isa};

const LOSSES: [Loss; 2] = [Loss::Mse, Loss::BceWithLogits];

fn available() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

fn near(ours: f32, exact: f64) {
    assert!((f64::from(ours) - exact).abs() <= 1e-6 * exact.abs() + 2e-7, "{ours} is not {exact}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn values_and_gradients_match_their_definitions(
        pairs in prop::collection::vec((-30.0..30.0f32, 0.0..1.0f32, -2.0..2.0f32), 1..200),
        mean in any::<bool>(),
    ) {
        let prediction: Vec<f32> = pairs.iter().map(|pair| pair.0).collect();
        let target: Vec<f32> = pairs.iter().map(|pair| pair.1).collect();
        let upstream: Vec<f32> = pairs.iter().map(|pair| pair.2).collect();
        let (reduction, scale) = match mean {
            true => (Reduction::Mean, 1.0 / pairs.len() as f64),
            false => (Reduction::Sum, 1.0),
        };
        for isa in available() {
            let cpu = Cpu::with_isa(isa, 1).unwrap();
            for loss in LOSSES {
                let exact = |at: usize| {
                    let (x, z) = (prediction[at].into(), target[at].into());
                    (reference::value(loss, x, z), reference::slope(loss, x, z))
                };
                let sum: f64 = (0..pairs.len()).map(|at| exact(at).0).sum();
                let mut gradient = vec![f32::NAN; pairs.len()];
                let both = loss.value_and_gradient(&cpu, &prediction, &target, reduction, &mut gradient).unwrap();
                near(both, sum * scale);
                prop_assert_eq!(both, loss.value(&cpu, &prediction, &target, reduction).unwrap());
                gradient.iter().enumerate().for_each(|(at, &slope)| near(slope, exact(at).1 * scale));
                loss.each(&cpu, &prediction, &target, &mut gradient).unwrap();
                gradient.iter().enumerate().for_each(|(at, &value)| near(value, exact(at).0));
                loss.each_backward(&cpu, &prediction, &target, &upstream, &mut gradient).unwrap();
                let above = |at: usize| f64::from(upstream[at]);
                gradient.iter().enumerate().for_each(|(at, &slope)| near(slope, exact(at).1 * above(at)));
            }
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let prediction: Vec<f32> = (0..100_003).map(|at| (at as f32 * 0.37).sin() * 5.0).collect();
    let target: Vec<f32> = (0..100_003).map(|at| (at % 2) as f32).collect();
    for isa in available() {
        for loss in LOSSES {
            let run = |threads: usize| {
                let cpu = Cpu::with_isa(isa, threads).unwrap();
                let mut gradient = vec![0.0; prediction.len()];
                let value =
                    loss.value_and_gradient(&cpu, &prediction, &target, Reduction::Mean, &mut gradient);
                (value.unwrap().to_bits(), gradient)
            };
            let one = run(1);
            assert!([2, 3, 7].iter().all(|&threads| run(threads) == one), "{isa} {loss:?}");
        }
    }
}

#[test]
fn extreme_logits_stay_finite_and_not_a_number_stays() {
    for isa in available() {
        let cpu = Cpu::with_isa(isa, 1).unwrap();
        let (prediction, target) = ([1e30, -1e30, 1e30, -1e30, 200.0], [1.0, 0.0, 0.0, 1.0, 1.0]);
        let mut out = [0.0; 5];
        Loss::BceWithLogits.each(&cpu, &prediction, &target, &mut out).unwrap();
        assert_eq!(out, [0.0, 0.0, 1e30, 1e30, 0.0]);
        Loss::BceWithLogits.each_backward(&cpu, &prediction, &target, &[1.0; 5], &mut out).unwrap();
        assert_eq!(out, [0.0, 0.0, 1.0, -1.0, 0.0]);
        assert!(Loss::BceWithLogits.value(&cpu, &[f32::NAN], &[1.0], Reduction::Sum).unwrap().is_nan());
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let cpu = Cpu::new(1).unwrap();
    let error = Loss::Mse.value(&cpu, &[1.0], &[], Reduction::Sum).unwrap_err();
    assert_eq!(error.to_string(), "loss: target has 0 elements, and there are 1 predictions");
    assert_eq!(Loss::Mse.value(&cpu, &[], &[], Reduction::Mean), Err(LossError::Empty));
    assert_eq!(Loss::Mse.value(&cpu, &[], &[], Reduction::Sum), Ok(0.0));
    let x = [1.0, 2.0];
    assert!(Loss::Mse.value_and_gradient(&cpu, &x, &x, Reduction::Sum, &mut [0.0]).is_err());
    assert!(Loss::Mse.each(&cpu, &x, &x, &mut [0.0]).is_err());
    assert!(Loss::Mse.each_backward(&cpu, &x, &x, &[1.0], &mut [0.0; 2]).is_err());
}
