//! Fitting and pricing.

use std::sync::OnceLock;

use steptime_aten::kernel::{FusedBags, FusedTable, Pooling, RowOptimizer};
use steptime_aten::{Dtype, Kernel, KernelCall, Operand, Role, Slot};
use steptime_cost::device::{
    Context, DeviceProfile, FitOptions, ModelChoice, ModelKind, Observation, Source, families, fit,
};
use steptime_trace::Nanos;

use crate::synthetic::{elementwise, gemm, observations, spec};

/// A profile on synthetic rows, fitted once for all tests.
pub fn profile() -> &'static DeviceProfile {
    static PROFILE: OnceLock<DeviceProfile> = OnceLock::new();
    PROFILE.get_or_init(|| fit(&observations(1500), &spec(), &FitOptions::default()).unwrap())
}

#[test]
fn what_the_formula_misses_is_learnt_and_the_best_model_is_in_use() {
    for family in profile().families() {
        assert_eq!(family.model, ModelKind::Learnt, "{}", family.name);
        let learnt = family.scores[&ModelKind::Learnt];
        assert!(learnt.mean < 0.06, "{}: {learnt:?}", family.name);
        assert!(learnt.mean < family.scores[&ModelKind::Analytic].mean * 0.7, "{}", family.name);
        let interval = family.intervals[&ModelKind::Learnt];
        assert!((0.85..0.95).contains(&interval.inside), "{}: {interval:?}", family.name);
    }
}

#[test]
fn new_calls_are_priced_well_and_inside_their_intervals() {
    let held_out: Vec<Observation> = observations(2100).into_iter().filter(|row| row.case >= 1500).collect();
    let mut inside = 0;
    for row in &held_out {
        let estimate = profile().price(&row.call, &row.ctx, ModelChoice::Best);
        let [low, high] = estimate.interval();
        inside += usize::from((low..=high).contains(&row.time));
    }
    let share = inside as f64 / held_out.len() as f64;
    assert!((0.85..0.96).contains(&share), "{share} inside");
}

#[test]
fn many_at_once_are_priced_as_one_by_one() {
    let rows = observations(60);
    let calls: Vec<_> = rows.iter().map(|row| (&row.call, &row.ctx)).cycle().take(300).collect();
    for choice in [ModelChoice::Best, ModelChoice::Paper, ModelChoice::Analytic, ModelChoice::Learnt] {
        let together = profile().price_all(&calls, choice);
        assert_eq!(together.len(), calls.len());
        for ((call, ctx), estimate) in calls.iter().zip(together) {
            assert_eq!(profile().price(call, ctx, choice), estimate);
        }
    }
}

#[test]
fn far_outside_of_what_was_measured_it_says_so_and_widens() {
    let (near, far) = (gemm(500, 300, 700), gemm(200_000, 512, 65_536));
    let [near, far] =
        [near, far].map(|call| profile().price(&call, &Context::cold(&call), ModelChoice::Best));
    assert!(!near.extrapolated, "{near:?}");
    assert!(far.extrapolated, "{far:?}");
    assert!(far.half_width() > 1.2 * near.half_width(), "{near:?} {far:?}");
}

#[test]
fn a_specification_alone_prices_by_formula_and_says_so() {
    use steptime_cost::device::profile::header::{Header, Spread};
    let unfitted = Spread { own: 0.3, shared: 0.2, source: "made up".into() };
    let bare = DeviceProfile::new(Header::from_spec("bare", spec(), unfitted), Vec::new()).unwrap();
    let call = elementwise("relu", 1 << 20);
    let estimate = bare.price(&call, &Context::cold(&call), ModelChoice::Best);
    assert_eq!(estimate.source, Source::Analytic);
    assert_eq!((estimate.own, estimate.shared), (0.3, 0.2));
    assert!(estimate.time > Nanos(1_200));
}

/// A backward pass over `tables` tables of a million rows and 64 columns, with `lookups` lookups in each.
fn fused_bags(tables: u64, lookups: u64) -> KernelCall {
    let bags = lookups / 10;
    let kernel = FusedBags {
        update: Some(RowOptimizer::RowWiseAdagrad),
        tables: (0..tables)
            .map(|_| FusedTable { rows: 1_000_000, dim: 64, row_bytes: 256, lookups })
            .collect(),
        bags,
        lookups: tables * lookups,
        pooling: Pooling::Sum,
        weighted: false,
        element_bits: 32,
        index_bytes: 8,
    };
    let operand = |slot, role, bytes| Operand { slot, role, bytes };
    let given = [
        operand(Slot::Input(0, 0), Role::Read, tables * bags * 256),
        operand(Slot::Input(2, 0), Role::Read, tables * lookups * 8),
    ];
    let table = (0..tables).map(|at| operand(Slot::Input(1, at as u16), Role::Update, lookups * 256));
    let operands = given.into_iter().chain(table).collect();
    let flops = tables * lookups * 64;
    KernelCall { kernel: Kernel::FusedBags(kernel), dtype: Dtype::F32, operands, flops, launches: 9 }
}

#[test]
fn a_family_that_a_profile_lacks_is_priced_by_formula_and_says_so() {
    let call = fused_bags(8, 20_480);
    assert!(profile().family(call.kernel.family()).is_none());
    let ctx = Context::cold(&call);
    let formula = families::find(&call.kernel).analytic(&call, &ctx, &profile().spec);
    for choice in [ModelChoice::Best, ModelChoice::Analytic, ModelChoice::Learnt] {
        let estimate = profile().price(&call, &ctx, choice);
        assert_eq!((estimate.time, estimate.source), (Nanos::from_micros_f64(formula), Source::Analytic));
        let unfitted = &profile().unfitted;
        assert_eq!((estimate.own, estimate.shared), (unfitted.own, unfitted.shared));
    }
    assert_eq!(profile().price(&call, &ctx, ModelChoice::Paper).source, Source::Paper);
    // The same next to a call of a fitted family.
    let known = gemm(500, 300, 700);
    let known_ctx = Context::cold(&known);
    let both = profile().price_all(&[(&known, &known_ctx), (&call, &ctx)], ModelChoice::Best);
    assert_eq!([both[0].source, both[1].source], [Source::Fitted, Source::Analytic]);
}

#[test]
fn the_same_rows_give_the_same_profile() {
    let rows = observations(240);
    let [one, other] =
        [0, 1].map(|_| fit(&rows, &spec(), &FitOptions::default()).unwrap().to_parts().unwrap());
    assert_eq!(one, other);
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let said = |rows: &[Observation], spec| fit(rows, &spec, &FitOptions::default()).unwrap_err().to_string();
    assert_eq!(said(&[], spec()), "cannot fit a device profile: there are no measured kernels");
    let mut rows = observations(30);
    rows[7].time = Nanos(-5);
    assert_eq!(
        said(&rows, spec()),
        "cannot fit a device profile: case 3, aten::mm: a time of -5 ns; times must be positive"
    );
    let mut broken = spec();
    broken.memory.rate_gb_s = f64::NAN;
    assert!(said(&observations(30), broken).contains("memory.rate_gb_s is NaN"));
}
