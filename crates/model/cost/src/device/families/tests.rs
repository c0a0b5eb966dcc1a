//! Every family: features of the right number, floors, growth with size, other devices; and anchors measured on
//! an H200.

mod calls;

use steptime_aten::kernel::Pass;
use steptime_aten::{Kernel, KernelCall};
use steptime_launch::Indices;

use super::fixture::{call, h200, near, shipped};
use super::{ALL, find, named};
use crate::device::context::Context;
use crate::device::learn::sizes::sizes;
use crate::device::paper::{self, PaperModel};
use calls::{bag, batched, calls, conv, elementwise, gemm};

/// Profiles that consist of a specification only.
const SHIPPED: [&str; 6] = ["v100", "p100", "titan-xp", "a100", "h100", "l4"];

#[test]
fn every_family_is_listed_and_found() {
    for one in calls(1 << 20) {
        let family = find(&one.kernel);
        assert_eq!(family.name(), one.kernel.family());
        assert!(named(family.name()).is_some());
    }
    assert!(named("no such family").is_none());
    let mut names: Vec<_> = ALL.iter().map(|family| family.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
}

#[test]
fn features_are_as_many_as_their_names_and_finite() {
    let spec = h200();
    for size in [0, 1, 13, 4096, 1 << 24, 1 << 40] {
        for one in calls(size) {
            let family = find(&one.kernel);
            for ctx in [Context::cold(&one), Context::warm(&one)] {
                let mut row = Vec::new();
                family.features(&one, &ctx, &spec, &mut row);
                let names = family.feature_names();
                assert_eq!(row.len(), names.len(), "{}", family.name());
                for (name, value) in names.iter().zip(&row) {
                    assert!(value.is_finite(), "{} of {} at {size}: {value}", name, family.name());
                }
                let mut more = Vec::new();
                family.more(&one, &ctx, &spec, &mut more);
                assert_eq!(more.len(), family.more_names().len(), "{}", family.name());
                assert!(
                    !more.iter().any(|value| value.is_infinite()),
                    "{} at {size}: {more:?}",
                    family.name()
                );
                let analytic = family.analytic(&one, &ctx, &spec);
                assert!((f64::from(row[0]) - (analytic * 1e3).ln()).abs() < 1e-4);
            }
        }
    }
}

#[test]
fn a_call_of_another_family_does_no_harm() {
    let (spec, other) = (h200(), elementwise("add", 2, 100));
    for family in ALL {
        let mut row = Vec::new();
        family.features(&other, &Context::default(), &spec, &mut row);
        assert_eq!(row.len(), family.feature_names().len());
        let mut more = Vec::new();
        family.more(&other, &Context::default(), &spec, &mut more);
        assert_eq!((more.len(), family.kind(&other)), (family.more_names().len(), ""));
        assert!(family.analytic(&other, &Context::default(), &spec) > 0.0);
    }
}

#[test]
fn times_respect_the_floor_and_grow_with_size() {
    for spec in SHIPPED.map(shipped).into_iter().chain([h200()]) {
        let mut last: Vec<f64> = Vec::new();
        for power in (10..30).step_by(2) {
            let times: Vec<f64> = calls(1 << power)
                .iter()
                .map(|one| find(&one.kernel).analytic(one, &Context::cold(one), &spec))
                .collect();
            for (at, time) in times.iter().enumerate() {
                let name = calls(1)[at].kernel.family();
                assert!(
                    time.is_finite() && *time >= spec.launch.floor_us.min(spec.transfer.floor_us),
                    "{name}"
                );
                if let Some(before) = last.get(at) {
                    // PyTorch cuts a long sum among blocks at once, and is then faster than just before.
                    let least = if name == "reduce" { 0.6 } else { 0.97 };
                    assert!(*time >= before * least, "{name} at 2^{power}: {time} after {before}");
                }
            }
            last = times;
        }
    }
}

#[test]
fn warm_operands_never_cost_more() {
    let spec = h200();
    for one in calls(1 << 20) {
        let family = find(&one.kernel);
        let cold = family.analytic(&one, &Context::cold(&one), &spec);
        let warm = family.analytic(&one, &Context::warm(&one), &spec);
        assert!(warm <= cold * 1.001, "{}: {warm} warm, {cold} cold", family.name());
    }
}

/// Times measured on an H200 with PyTorch 2.11, µs.
#[test]
fn anchors_on_an_h200() {
    let spec = h200();
    let price = |one: &KernelCall, ctx: &Context| find(&one.kernel).analytic(one, ctx, &spec);
    let clamp = elementwise("clamp_min", 1, 2 << 20);
    near(price(&clamp, &Context::warm(&clamp)), 3.7, 0.15);
    let add = elementwise("add", 2, 17_700_000 / 12);
    near(price(&add, &Context::cold(&add)), 6.3, 0.5);
    let copy = call(Kernel::DeviceCopy, &[1 << 30], &[1 << 30], 0);
    near(price(&copy, &Context::cold(&copy)), 2.0 * f64::from(1 << 30) / 4.23e6, 0.1);
    let large = gemm(8192, 8192, 8192);
    near(price(&large, &Context::cold(&large)), 2.0 * 8192f64.powi(3) / 50e6, 0.1);
}

/// Embedding bags measured on an H200: whole calls, PyTorch's kernels one table after the other, µs.
#[test]
fn embedding_bags_on_an_h200() {
    let spec = h200();
    let price = |tables: f64, one: &KernelCall, indices: Indices| {
        let ctx = Context::cold(one).with_indices(indices);
        tables * find(&one.kernel).analytic(one, &ctx, &spec)
    };
    let large = bag(1_000_000, 128, 8192, 32);
    near(price(16.0, &large, Indices::Uniform), 1309.0, 0.5);
    near(price(16.0, &large, Indices::Zipf(1.2)), 1003.0, 0.8);
    near(price(4.0, &bag(1_000_000, 512, 8192, 10), Indices::Uniform), 550.0, 0.5);
    let all = batched(Pass::Forward, 16 * 8192 * 32);
    near(price(1.0, &all, Indices::Uniform), 556.0, 0.5);
}

#[test]
fn published_formulas_know_what_they_cover() {
    let spec = h200();
    for one in calls(1 << 22) {
        let paper = find(&one.kernel).paper(&one, &Context::cold(&one), &spec);
        let covered = !matches!(
            one.kernel,
            Kernel::Gemm(_)
                | Kernel::Conv(_)
                | Kernel::Attention(_)
                | Kernel::Rnn(_)
                | Kernel::Norm(_)
                | Kernel::Interaction(_)
        );
        if !covered {
            assert!(paper.is_none());
        }
        if let Some(time) = paper {
            assert!(time > 0.0 && time.is_finite());
        }
    }
}

/// Newer devices are faster at large work, each by its rank.
#[test]
fn the_paper_model_is_what_it_is_said_to_be() {
    let spec = h200();
    let context = Context::default();
    for call in calls(1 << 22) {
        let family = find(&call.kernel);
        let (found, roofline) = (family.paper(&call, &context, &spec), paper::roofline(&call, &spec));
        let name = family.name();
        match family.published() {
            PaperModel::Roofline => assert_eq!(found, Some(roofline), "{name}"),
            PaperModel::Network => assert!(found.is_none() && sizes(&call).is_some(), "{name}"),
            PaperModel::None => assert!(found.is_none() && sizes(&call).is_none(), "{name}"),
            // Only the forward pass of a single bag has one.
            PaperModel::Formula if found.is_none() => assert_eq!(name, "embedding_bag"),
            // For almost no work all formulas give the shortest possible time.
            PaperModel::Formula => assert!(found != Some(roofline) || found == Some(1e-3), "{name}"),
        }
    }
}

#[test]
fn devices_rank_as_they_should() {
    let time =
        |name: &str, one: &KernelCall| find(&one.kernel).analytic(one, &Context::cold(one), &shipped(name));
    for one in [elementwise("add", 2, 1 << 26), gemm(8192, 4096, 4096), conv(64)] {
        let times = ["p100", "v100", "a100", "h100"].map(|name| time(name, &one));
        assert!(times.windows(2).all(|pair| pair[1] < pair[0]), "{}: {times:?}", one.kernel.family());
        assert!(time("titan-xp", &one) > times[1] && time("l4", &one) > times[2]);
    }
}
