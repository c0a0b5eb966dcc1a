//! The memory plan against the predicted peak of the step.

use steptime_rewrite::{FuseLinear, Operators, Rule};
use steptime_runtime::{Program, Region};
use steptime_step::{MemoryKind, Peak};

use crate::common::{described, names, shipped};

/// Bytes of a prediction by kind.
fn predicted(step: &steptime_runtime::DescribedStep, kinds: &[MemoryKind]) -> f64 {
    let peak = Peak::find(&step.step, &step.scheduled(), None);
    kinds.iter().map(|&kind| peak.bytes_of(kind)).sum::<u64>() as f64
}

#[test]
fn the_plan_needs_no_more_than_was_predicted() {
    for name in names() {
        for rules in [vec![], vec![&Operators as &dyn Rule, &FuseLinear]] {
            let model = shipped(&name);
            if !rules.is_empty() && ["wide_and_deep", "two_towers"].contains(&&*name) {
                continue;
            }
            let step = described(&model, &rules);
            let program = Program::new(&step).expect("it compiles");
            let plan = program.plan();
            let kept = predicted(&step, &[MemoryKind::Parameters, MemoryKind::Optimizer]);
            let own = plan.bytes(Region::Kept) as f64;
            // The kept region has the parameters and states of the prediction: blocks of 512 bytes there, of 64 here.
            let ratio = own / kept;
            assert!((0.999..=1.000_01).contains(&ratio), "{name}: {own} of {kept} are kept");
            // Gradients are freed after their last use here, and at the next zero_grad there; whole ops have no tensors inside.
            let others = predicted(&step, &[MemoryKind::Gradients, MemoryKind::Activations]);
            let own = (plan.bytes(Region::Inputs) + plan.bytes(Region::Arena)) as f64;
            println!(
                "{name} ({} rules): {:.1} of {:.1} MB, least {:.1}",
                rules.len(),
                own / 1e6,
                others / 1e6,
                plan.least_arena() as f64 / 1e6
            );
            assert!(own <= 1.08 * others, "{name}: {own} of {others} are temporary");
            assert!(own >= 0.3 * others, "{name}: {own} of {others} are temporary");
        }
    }
}
