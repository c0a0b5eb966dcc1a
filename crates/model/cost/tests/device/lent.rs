//! Models of one GPU, transferred to others.

use steptime_aten::KernelCall;
use steptime_cost::device::profile::header::{Header, Spread};
use steptime_cost::device::{
    Context, DeviceProfile, DeviceSpec, FitOptions, MeasuredGpu, ModelChoice, Observation, Source, Transfer,
    families, fit_across, fit_onto, without_host,
};
use steptime_trace::Nanos;

use crate::fitted::profile;
use crate::synthetic::{elementwise, gemm, observations, spec};

fn worth() -> Transfer {
    let spread = |own, shared| Spread { own, shared, source: "made up".into() };
    Transfer { from: "example".into(), alike: spread(0.1, 0.05), other: spread(0.4, 0.3) }
}

/// A specification alone.
fn unfitted(spec: DeviceSpec) -> DeviceProfile {
    let unfitted = Spread { own: 0.8, shared: 0.4, source: "made up".into() };
    DeviceProfile::new(Header::from_spec("other", spec, unfitted), Vec::new()).unwrap()
}

/// A GPU of another architecture with `factor` times the memory rate.
fn other(factor: f64) -> DeviceSpec {
    let mut spec = spec();
    spec.name = format!("Other {factor}");
    spec.architecture = "Another".into();
    spec.memory.rate_gb_s *= factor;
    spec.l2.rate_gb_s *= factor;
    spec
}

fn lent(spec: DeviceSpec, corrections: Option<DeviceProfile>) -> DeviceProfile {
    profile().clone().transfer(unfitted(spec), worth(), corrections)
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

#[test]
fn what_passes_the_cache_takes_what_memory_takes_on_another_architecture() {
    let (large, small) = (elementwise("add", 1 << 24), elementwise("add", 1 << 16));
    let mut spec = other(0.4);
    spec.l2.effective_bytes = 4_000_000;
    let price = |profile: &DeviceProfile, call| profile.price(call, &Context::cold(call), ModelChoice::Best);
    let lent = lent(spec.clone(), None);
    let of_memory = spec.dram_us((8u64 << 24) as f64);
    let time = price(&lent, &large).time.as_micros();
    assert!((0.98..1.03).contains(&(time / of_memory)), "{time} {of_memory}");
    assert_eq!(price(&lent, &large).source, Source::Transferred);
    // Models predict a small one, and on their own architecture a large one: the synthetic times are 1.2 of the formula.
    let alike = DeviceSpec { architecture: self::spec().architecture, ..spec };
    let alike = profile().clone().transfer(unfitted(alike), worth(), None);
    let modelled = price(&alike, &large).time.as_micros();
    assert!((modelled / time - 1.0).abs() > 0.03, "{modelled} {time}");
    let ratio = price(&lent, &small).time.0 as f64 / price(&alike, &small).time.0 as f64;
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
}

#[test]
fn what_the_host_adds_to_times_of_calls_is_taken_off() {
    let spec = other(0.4);
    let of = |numel: u64| {
        let call = elementwise("add", numel);
        let ctx = Context::warm(&call);
        let formula = families::find(&call.kernel).specified(&call, &ctx, &spec).unwrap();
        let time = Nanos::from_micros_f64(formula.us + 25.0);
        (Observation { case: 0, op: "aten::add".into(), call, ctx, time }, formula.us)
    };
    let (mut rows, formulas): (Vec<Observation>, Vec<f64>) = (11..=50u64).map(|at| of(at << 22)).unzip();
    // An op without a formula loses as much.
    let product = gemm(4096, 4096, 4096);
    let ctx = Context::warm(&product);
    let time = Nanos::from_micros_f64(3000.0);
    rows.push(Observation { case: 1, op: "aten::mm".into(), call: product, ctx, time });
    without_host(&mut rows.iter_mut().collect::<Vec<_>>(), &spec);
    for (row, formula) in rows.iter().zip(&formulas) {
        assert!((row.time.as_micros() - formula).abs() < 0.1, "{} {formula}", row.time.as_micros());
    }
    assert!((rows[40].time.as_micros() - 2975.0).abs() < 0.1);
}

/// Prices of synthetic rows by transferred models, times a factor: the times of a GPU without a fit.
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
    let elsewhere: Vec<MeasuredGpu> =
        gpus.iter().zip(&measured).map(|(profile, rows)| MeasuredGpu { profile, rows }).collect();
    let corrections = fit_across(&elsewhere, profile(), &FitOptions::default()).unwrap();
    let ratio = |call: &KernelCall, spec: DeviceSpec| {
        let price = |profile: &DeviceProfile| profile.price(call, &Context::cold(call), ModelChoice::Best);
        let (before, after) =
            (price(&lent(spec.clone(), None)), price(&lent(spec, Some(corrections.clone()))));
        after.time.0 as f64 / before.time.0 as f64
    };
    let product = gemm(1000, 1200, 900);
    assert!((1.3..1.5).contains(&ratio(&product, other(0.5))), "{}", ratio(&product, other(0.5)));
    assert_eq!(ratio(&product, spec()), 1.0, "the lender's own architecture needs none");
    let large = elementwise("add", 1 << 28);
    assert!(
        (0.99..1.01).contains(&ratio(&large, other(0.5))),
        "a formula says it: {}",
        ratio(&large, other(0.5))
    );
    // Two GPUs are too few to predict a third.
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
    let after = profile().clone().transfer(read, worth(), None);
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
