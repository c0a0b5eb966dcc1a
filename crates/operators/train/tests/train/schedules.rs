//! Schedules against PyTorch's formulas, step by step.

use std::f64::consts::PI;

use proptest::prelude::*;
use steptime_train::schedule::{Decay, Schedule, ScheduleError, Warmup};

use crate::python;

fn without_warmup(decay: Decay) -> Schedule {
    Schedule { warmup: None, decay }
}

fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 1e-12 * expected.abs().max(1e-3), "{value} {expected}");
}

/// PyTorch computes a learning rate from the one before: the recurrences of `torch.optim.lr_scheduler`.
#[test]
fn factors_follow_pytorchs_recurrences() {
    let (start, total) = (0.25, 40u64);
    let warmup = Schedule { warmup: Some(Warmup { steps: total, start }), decay: Decay::Constant };
    let mut linear = start;
    let polynomial = without_warmup(Decay::Polynomial { begin: None, steps: total, power: 1.7, end: 0.0 });
    let mut power = 1.0;
    let every_ten = without_warmup(Decay::Step { begin: None, every: 10, gamma: 0.3 });
    let mut steps = 1.0;
    let cosine = without_warmup(Decay::Cosine { begin: None, steps: total, end: 0.05 });
    let mut wave = 1.0;
    for step in 0..=total {
        let t = step as f64;
        if step > 0 {
            let n = total as f64;
            linear *= 1.0 + (1.0 - start) / (n * start + (t - 1.0) * (1.0 - start));
            power *= ((1.0 - t / n) / (1.0 - (t - 1.0) / n)).powf(1.7);
            steps *= if step % 10 == 0 { 0.3 } else { 1.0 };
            wave = (1.0 + (PI * t / n).cos()) / (1.0 + (PI * (t - 1.0) / n).cos()) * (wave - 0.05) + 0.05;
        }
        close(warmup.factor(step), linear);
        close(polynomial.factor(step), power);
        close(every_ten.factor(step), steps);
        close(cosine.factor(step), wave);
    }
    close(warmup.factor(total + 5), 1.0);
    close(polynomial.factor(total + 5), 0.0);
    close(cosine.factor(total + 5), 0.05);
}

/// The schedules of `schedules.py`, in its order.
#[test]
fn rates_are_those_of_pytorch() {
    let Some(printed) = python::run("schedules.py", &[], "torch") else { return };
    let power = |steps, power| Decay::Polynomial { begin: None, steps, power, end: 0.0 };
    let schedules = [
        Schedule::default(),
        Schedule { warmup: Some(Warmup { steps: 40, start: 0.25 }), decay: Decay::Constant },
        without_warmup(power(50, 2.5)),
        without_warmup(Decay::Step { begin: None, every: 7, gamma: 0.3 }),
        without_warmup(Decay::Cosine { begin: None, steps: 60, end: 0.05 }),
        Schedule { warmup: Some(Warmup { steps: 20, start: 0.1 }), decay: power(30, 2.0) },
    ];
    assert_eq!(printed.lines().count(), schedules.len());
    for (schedule, line) in schedules.iter().zip(printed.lines()) {
        for (step, rate) in line.split(' ').enumerate() {
            let (rate, own) = (rate.parse::<f64>().unwrap(), schedule.rate(2.0, step as u64));
            assert!((own - rate).abs() < 1e-12, "{schedule:?}, step {step}: {own} {rate}");
        }
    }
}

/// The schedule of NVIDIA's DLRM: warm-up over 8,000 steps, then a square decay from 48,000 over 24,000.
#[test]
fn a_warm_up_is_followed_by_a_plateau_and_a_decay() {
    let text = "
        warmup = { steps = 8000, start = 0.0 }
        decay = { kind = \"polynomial\", begin = 48000, steps = 24000, power = 2.0 }
    ";
    let schedule: Schedule = toml::from_str(text).unwrap();
    schedule.check().unwrap();
    let expected =
        [(0, 0.0), (4000, 12.0), (8000, 24.0), (48_000, 24.0), (60_000, 6.0), (72_000, 0.0), (1 << 50, 0.0)];
    for (step, rate) in expected {
        close(schedule.rate(24.0, step), rate);
    }
    let text = toml::to_string(&schedule).unwrap();
    assert_eq!(toml::from_str::<Schedule>(&text).unwrap(), schedule);
}

#[test]
fn a_schedule_without_fields_is_constant() {
    let schedule: Schedule = toml::from_str("").unwrap();
    assert_eq!((schedule, schedule.factor(123)), (Schedule::default(), 1.0));
}

#[test]
fn invalid_schedules_are_refused() {
    for text in
        ["decay = { kind = \"linear\" }", "warm = 3", "decay = { kind = \"cosine\", steps = 4, power = 2.0 }"]
    {
        assert!(toml::from_str::<Schedule>(text).is_err(), "{text}");
    }
    let refused = |text: &str| toml::from_str::<Schedule>(text).unwrap().check().unwrap_err();
    let no_steps = refused("warmup = { steps = 0, start = 0.5 }");
    assert_eq!(no_steps, ScheduleError::NoSteps { field: "warmup.steps" });
    for text in [
        "warmup = { steps = 3, start = nan }",
        "decay = { kind = \"polynomial\", steps = 3, power = 0.0 }",
        "decay = { kind = \"step\", every = 3, gamma = 1.5 }",
        "decay = { kind = \"cosine\", steps = 3, end = -0.1 }",
    ] {
        assert!(matches!(refused(text), ScheduleError::Range { .. }), "{text}");
    }
    let overlap =
        refused("warmup = { steps = 9, start = 0.5 }\ndecay = { kind = \"cosine\", begin = 8, steps = 3 }");
    assert_eq!(overlap, ScheduleError::Overlap { begin: 8, warmup: 9 });
}

fn decay() -> impl Strategy<Value = Decay> {
    let (begin, steps) = (prop::option::of(100u64..200), 1u64..500);
    prop_oneof![
        Just(Decay::Constant),
        (begin.clone(), steps.clone(), 0.1f64..5.0, 0.0f64..=1.0)
            .prop_map(|(begin, steps, power, end)| Decay::Polynomial { begin, steps, power, end }),
        (begin.clone(), steps.clone(), 0.0f64..=1.0).prop_map(|(begin, every, gamma)| Decay::Step {
            begin,
            every,
            gamma
        }),
        (begin, steps, 0.0f64..=1.0).prop_map(|(begin, steps, end)| Decay::Cosine { begin, steps, end }),
    ]
}

proptest! {
    #[test]
    fn a_factor_rises_in_the_warm_up_and_falls_after_it(
        decay in decay(), steps in 1u64..100, start in 0.0f64..=1.0, step in 0u64..1000,
    ) {
        let schedule = Schedule { warmup: Some(Warmup { steps, start }), decay };
        prop_assert_eq!(schedule.check(), Ok(()));
        let (now, next) = (schedule.factor(step), schedule.factor(step + 1));
        prop_assert!((0.0..=1.0).contains(&now), "{}", now);
        prop_assert!(if step < steps { next >= now } else { next <= now }, "{} {}", now, next);
    }
}
