//! Models of one GPU, lent to others.

use steptime_cost::device::profile::header::{Header, Spread};
use steptime_cost::device::{
    Context, DeviceProfile, DeviceSpec, Elsewhere, FitOptions, ModelChoice, Observation, Source, Transfer,
    fit_across, fit_onto,
};

use crate::fitted::profile;
use crate::synthetic::{elementwise, gemm, observations, spec};

fn worth() -> Transfer {
    let spread = |own, shared| Spread { own, shared, source: "made up".into() };
    Transfer { from: "example".into(), alike: spread(0.1, 0.05), other: spread(0.4, 0.3) }
}

/// A specification alone.
fn of(spec: DeviceSpec) -> DeviceProfile {
    let unfitted = Spread { own: 0.8, shared: 0.4, source: "made up".into() };
    DeviceProfile::new(Header::of_spec("other", spec, unfitted), Vec::new()).unwrap()
}

/// A GPU of another architecture with so many times the memory rate.
fn other(factor: f64) -> DeviceSpec {
    let mut spec = spec();
    spec.name = format!("Other {factor}");
    spec.architecture = "Another".into();
    spec.memory.rate_gb_s *= factor;
    spec.l2.rate_gb_s *= factor;
    spec
}

fn lent(spec: DeviceSpec, corrections: Option<DeviceProfile>) -> DeviceProfile {
    profile().clone().lend(of(spec), worth(), corrections)
}

#[test]
fn on_the_same_specification_times_are_the_same_and_less_sure() {
    let lent = lent(spec(), None);
    for call in [gemm(512, 512, 512), elementwise("add", 1 << 22)] {
        let price = |profile: &DeviceProfile| profile.price(&call, &Context::cold(&call), ModelChoice::Best);
        let (own, other) = (price(profile()), price(&lent));
        assert_eq!(own.time, other.time);
        assert_eq!((own.source, other.source), (Source::Fitted, Source::Transferred));
        assert!(other.half_width() > own.half_width());
    }
    assert!(profile().is_swept() && !lent.is_swept());
}

#[test]
fn a_slower_memory_takes_longer() {
    let call = elementwise("add", 1 << 26);
    let time = |factor| lent(other(factor), None).price(&call, &Context::cold(&call), ModelChoice::Best).time;
    let ratio = time(0.5).0 as f64 / time(1.0).0 as f64;
    assert!((1.6..2.2).contains(&ratio), "{ratio}");
}

/// What lent models say of made-up rows, times a factor: what a GPU takes of which nothing was fitted.
fn rows(profile: &DeviceProfile, factor: i64, seed: usize) -> Vec<Observation> {
    let mut rows = observations(2100);
    rows.retain(|row| row.case as usize / 3 % 3 == seed);
    for row in &mut rows {
        let before = profile.price(&row.call, &row.ctx, ModelChoice::Best).time;
        row.time = before * factor / 100;
    }
    rows
}

#[test]
fn what_three_gpus_show_holds_on_a_fourth_of_another_architecture_alone() {
    let gpus: Vec<DeviceProfile> = [0.4, 0.6, 0.8].map(|factor| lent(other(factor), None)).into();
    let measured: Vec<Vec<Observation>> =
        gpus.iter().enumerate().map(|(at, gpu)| rows(gpu, 140 + at as i64, at)).collect();
    let elsewhere: Vec<Elsewhere> =
        gpus.iter().zip(&measured).map(|(profile, rows)| Elsewhere { profile, rows }).collect();
    let corrections = fit_across(&elsewhere, profile(), &FitOptions::default()).unwrap();
    let call = elementwise("add", 1 << 24);
    let price = |profile: &DeviceProfile| profile.price(&call, &Context::cold(&call), ModelChoice::Best);
    let ratio = |spec: DeviceSpec| {
        let (before, after) =
            (price(&lent(spec.clone(), None)), price(&lent(spec, Some(corrections.clone()))));
        after.time.0 as f64 / before.time.0 as f64
    };
    assert!((1.3..1.5).contains(&ratio(other(0.5))), "{}", ratio(other(0.5)));
    assert_eq!(ratio(spec()), 1.0, "the lender's own architecture needs none");
    // Two GPUs are too few to say what a third does.
    assert!(fit_across(&elsewhere[..2], profile(), &FitOptions::default()).unwrap().families().is_empty());
}

#[test]
fn a_sweep_of_the_gpu_itself_is_a_layer_that_is_kept_and_read_again() {
    let before = lent(other(0.5), None);
    let measured = rows(&before, 130, 0);
    let layer = fit_onto(&measured, before.clone(), &FitOptions::default()).unwrap();
    assert_eq!(layer.onto.as_deref(), Some("example"));
    assert!(layer.families().iter().all(|family| family.stages.len() == 1));
    let (header, models) = layer.to_parts().unwrap();
    let read = DeviceProfile::from_parts(&header, models.as_deref()).unwrap();
    let after = profile().clone().lend(read, worth(), None);
    assert!(after.is_swept());
    let call = gemm(640, 384, 512);
    let price = |profile: &DeviceProfile| profile.price(&call, &Context::cold(&call), ModelChoice::Best);
    let ratio = price(&after).time.0 as f64 / price(&before).time.0 as f64;
    assert!((1.2..1.4).contains(&ratio), "{ratio}");
    assert_eq!(price(&after).source, Source::Fitted);
    assert!(price(&after).half_width() < price(&before).half_width());
    // A second sweep adds to the first.
    let twice = fit_onto(&measured, after, &FitOptions::default()).unwrap();
    assert!(twice.families().iter().all(|family| family.stages.len() == 2));
}

#[test]
fn a_specification_beyond_silicon_is_refused() {
    let mut wrong = spec();
    wrong.clock_mhz = 1.98e9;
    let text = wrong.check().unwrap_err().to_string();
    assert!(text.contains("clock_mhz") && text.contains("another unit"), "{text}");
    let mut wrong = spec();
    wrong.peak.f32_tflop_s = 51_000.0;
    assert!(wrong.check().unwrap_err().to_string().contains("peak.f32_tflop_s"));
}

#[test]
fn what_models_are_worth_is_read_and_checked() {
    let text = toml::to_string(&worth()).unwrap();
    assert_eq!(Transfer::parse(&text).unwrap(), worth());
    assert!(Transfer::parse(&text.replace("own = 0.1", "own = -0.1")).is_err());
    assert!(Transfer::parse(&text.replace("own = 0.1", "owns = 0.1")).is_err());
}
