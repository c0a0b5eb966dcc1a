//! Steps changed by rules: they run, with the same losses within rounding.

use steptime_aten::optimizer::Form;
use steptime_rewrite::{
    CudaGraph, FuseLinear, FusePointwise, Operators, Optimizer, PrefetchInputs, Rule, Tf32,
};
use steptime_runtime::Program;

use crate::common::{described, losses, session};
use crate::losses::references;

/// Largest relative difference of a loss in 60 steps.
const NEAR: f64 = 1e-4;

#[test]
fn losses_are_the_same_after_rules() {
    let fused = Optimizer { form: Form::Fused };
    let foreach = Optimizer { form: Form::Foreach };
    let rules: [(&str, Vec<&dyn Rule>); 10] = [
        ("operators", vec![&Operators]),
        ("fuse-linear", vec![&FuseLinear]),
        ("optimizer fused", vec![&fused]),
        ("optimizer foreach", vec![&foreach]),
        ("prefetch-inputs", vec![&PrefetchInputs]),
        ("tf32", vec![&Tf32]),
        ("cuda-graph", vec![&CudaGraph]),
        ("fuse-elementwise", vec![&FusePointwise]),
        ("operators, fuse-linear, fuse-elementwise", vec![&Operators, &FuseLinear, &FusePointwise]),
        ("operators, fuse-linear, prefetch-inputs", vec![&Operators, &FuseLinear, &PrefetchInputs]),
    ];
    let mut applied = [0; 10];
    for reference in references() {
        let program = Program::new(&described(&reference.model, &[])).expect("it compiles");
        let numbers = reference.numbers(&program);
        let plain = losses(&mut session(program, 1, numbers), &reference.model, 60);
        for (at, (name, rules)) in rules.iter().enumerate() {
            let adam = reference.name.contains("towers") || reference.name.contains("wide");
            if adam && name.contains("operators") {
                // Adam of the operators moves only rows that were looked up.
                continue;
            }
            let mut step = steptime_runtime::DescribedStep::new(&reference.model).expect("a step");
            let ops = step.ops().clone();
            let facts = steptime_rewrite::Facts::new(&ops, Some(reference.model.batch()));
            if steptime_rewrite::apply(&mut step.step, rules, &facts).is_err() {
                continue;
            }
            applied[at] += 1;
            let program =
                Program::new(&step).unwrap_or_else(|error| panic!("{} {name}: {error}", reference.name));
            let own = losses(&mut session(program, 1, numbers), &reference.model, 60);
            let relative = |(own, plain): (&f32, &f32)| f64::from((own - plain) / plain).abs();
            let difference = own.iter().zip(&plain).map(relative).fold(0.0, f64::max);
            assert!(difference <= NEAR, "{} {name}: {difference:e}", reference.name);
        }
    }
    println!("{applied:?}");
    assert!(applied.iter().all(|&count| count > 0), "{applied:?}");
}
