//! A later sweep on top of a profile.

use steptime_aten::Kernel;
use steptime_aten::kernel::{Layout, Loss, Pass};
use steptime_cost::device::{Context, DeviceProfile, FitOptions, ModelChoice, Observation, Source, fit_onto};

use crate::fitted::profile;
use crate::synthetic::{elementwise, gemm, observations};

/// Synthetic rows of later cases, in which misaligned ones take half as long again as the others: a new kind.
fn later() -> Vec<Observation> {
    let mut rows: Vec<Observation> = observations(2300).into_iter().filter(|row| row.case >= 1500).collect();
    for row in rows.iter_mut().filter(|row| row.case % 2 == 1) {
        if let Kernel::Elementwise(elementwise) = &mut row.call.kernel {
            elementwise.layout = Layout::Dense;
            row.time = row.time * 3 / 2;
        }
    }
    rows
}

fn improved() -> &'static DeviceProfile {
    static PROFILE: std::sync::OnceLock<DeviceProfile> = std::sync::OnceLock::new();
    PROFILE.get_or_init(|| fit_onto(&later(), profile().clone(), &FitOptions::default()).unwrap())
}

/// Mean error, and share inside the interval.
fn judged(profile: &DeviceProfile, rows: &[&Observation]) -> (f64, f64) {
    let (mut error, mut inside) = (0.0, 0);
    for row in rows {
        let estimate = profile.price(&row.call, &row.ctx, ModelChoice::Best);
        error += (estimate.time.0 as f64 / row.time.0 as f64 - 1.0).abs();
        let [low, high] = estimate.interval();
        inside += usize::from((low..=high).contains(&row.time));
    }
    (error / rows.len() as f64, inside as f64 / rows.len() as f64)
}

#[test]
fn what_was_wrong_is_mended_and_what_was_right_stays() {
    let mut unseen = observations(2800);
    unseen.retain(|row| row.case >= 2300);
    let old: Vec<&Observation> = unseen.iter().collect();
    let before = judged(profile(), &old).0;
    let after = judged(improved(), &old).0;
    assert!(after < before * 1.1, "kinds that were known: {before} before, {after} after");

    let mut misaligned: Vec<Observation> =
        unseen.iter().filter(|row| matches!(row.call.kernel, Kernel::Elementwise(_))).cloned().collect();
    for row in &mut misaligned {
        if let Kernel::Elementwise(elementwise) = &mut row.call.kernel {
            elementwise.layout = Layout::Dense;
        }
        row.time = row.time * 3 / 2;
    }
    let new: Vec<&Observation> = misaligned.iter().collect();
    let (before, after) = (judged(profile(), &new), judged(improved(), &new));
    assert!(before.0 > 0.2 && after.0 < 0.08, "a kind that was new: {before:?} before, {after:?} after");
    assert!((0.8..=1.0).contains(&after.1), "{} inside", after.1);
}

#[test]
fn calls_unlike_all_rows_cost_what_they_cost() {
    // One op alone in the later sweep: all others keep their price and their interval to the bit.
    let rows: Vec<Observation> = later().into_iter().filter(|row| row.op != "aten::mm").collect();
    let improved = fit_onto(&rows, profile().clone(), &FitOptions::default()).unwrap();
    for call in [gemm(500, 300, 700), gemm(4096, 4096, 4096)] {
        let price = |profile: &DeviceProfile| profile.price(&call, &Context::warm(&call), ModelChoice::Best);
        assert_eq!(price(&improved), price(profile()));
    }
    // Far from its sizes, little of the correction is left.
    let far = elementwise("relu", 1 << 44);
    let price = |profile: &DeviceProfile| profile.price(&far, &Context::cold(&far), ModelChoice::Best);
    let (before, after) = (price(profile()), price(&improved));
    assert!((after.time.0 as f64 / before.time.0 as f64 - 1.0).abs() < 0.05, "{before:?} {after:?}");
    assert!(after.extrapolated);
}

#[test]
fn a_family_that_was_not_there_is_fitted_as_usual() {
    let mut rows = later();
    for row in rows.iter_mut().filter(|row| row.op == "aten::mm") {
        let rows_of = row.call.operands[0].bytes / 28 + 1;
        row.call.kernel = Kernel::Loss(Loss { pass: Pass::Forward, rows: rows_of, classes: 7, spatial: 1 });
        row.op = "aten::nll_loss_forward".into();
    }
    assert!(profile().family("loss").is_none());
    let improved = fit_onto(&rows, profile().clone(), &FitOptions::default()).unwrap();
    let (header, models) = improved.family("loss").unwrap();
    assert!(header.stages.is_empty() && models.stages.is_empty() && header.rows > 100);
    let call = &rows.iter().find(|row| row.op == "aten::nll_loss_forward").unwrap().call;
    assert_eq!(improved.price(call, &Context::cold(call), ModelChoice::Best).source, Source::Fitted);
}

#[test]
fn stages_come_back_from_a_file_bit_by_bit() {
    let (text, models) = improved().to_parts().unwrap();
    let loaded = DeviceProfile::from_parts(&text, models.as_deref()).unwrap();
    assert!(loaded.families().iter().all(|family| family.stages.len() == 1));
    for row in later().iter().step_by(7) {
        let price = |profile: &DeviceProfile| profile.price(&row.call, &row.ctx, ModelChoice::Best);
        assert_eq!(price(&loaded), price(improved()));
    }
    let missing = text.replacen("[[family.stage]]", "[[family.state]]", 1);
    assert!(DeviceProfile::from_parts(&missing, models.as_deref()).is_err());
}

#[test]
fn a_second_sweep_goes_on_top_of_the_first() {
    let mut rows = later();
    rows.iter_mut().for_each(|row| row.time = row.time * 6 / 5);
    let twice = fit_onto(&rows, improved().clone(), &FitOptions::default()).unwrap();
    assert!(twice.families().iter().all(|family| family.stages.len() == 2));
    let rows: Vec<&Observation> = rows.iter().step_by(5).collect();
    assert!(judged(&twice, &rows).0 < judged(improved(), &rows).0 / 2.0);
}
