//! Equal bits: for any number of threads, in two runs, and for any memory plan.

use steptime_rewrite::{FuseLinear, Operators, Rule};
use steptime_runtime::{DescribedStep, Program, Region, Reuse, Target};

use crate::common::{described, losses, session};
use crate::losses::{Reference, references};

const STEPS: usize = 12;

/// Bits of the losses and of all parameters after some steps.
fn bits(reference: &Reference, step: &DescribedStep, threads: usize, reuse: Reuse) -> (Vec<u32>, Vec<u32>) {
    let program = Program::for_target(step, Target::Cpu, reuse).expect("it compiles");
    let numbers = reference.numbers(&program);
    let mut session = session(program, threads, numbers);
    let losses = losses(&mut session, &reference.model, STEPS);
    let mut parameters = Vec::new();
    for tensor in session.tensors() {
        parameters.extend(session.read(&tensor.name).expect("a tensor").iter().map(|x| x.to_bits()));
    }
    (losses.iter().map(|x| x.to_bits()).collect(), parameters)
}

/// Each model, plain and by the operators where they apply.
fn steps() -> Vec<(Reference, DescribedStep)> {
    let mut all = Vec::new();
    for reference in references() {
        let plain = described(&reference.model, &[]);
        let mut changed = plain.clone();
        let ops = changed.ops().clone();
        let rules: [&dyn Rule; 2] = [&Operators, &FuseLinear];
        let facts = steptime_rewrite::Facts::new(&ops, Some(reference.model.batch()));
        let applies = steptime_rewrite::apply(&mut changed.step, &rules, &facts).is_ok();
        if applies {
            all.push((
                references().into_iter().find(|other| other.name == reference.name).expect("it"),
                changed,
            ));
        }
        all.push((reference, plain));
    }
    all
}

#[test]
fn bits_do_not_depend_on_threads_runs_or_the_memory_plan() {
    let steps = steps();
    assert!(steps.len() > references().len());
    for (reference, step) in &steps {
        let first = bits(reference, step, 1, Reuse::ByLifetime);
        assert!(first.0.iter().all(|&loss| f32::from_bits(loss).is_finite()), "{}", reference.name);
        for threads in 1..=8 {
            assert!(
                first == bits(reference, step, threads, Reuse::ByLifetime),
                "{} {threads}",
                reference.name
            );
        }
        assert!(first == bits(reference, step, 1, Reuse::Never), "{}: memory plan", reference.name);
    }
}

#[test]
fn shared_memory_is_smaller_and_no_larger_than_needed() {
    for (reference, step) in &steps() {
        let of = |reuse| Program::for_target(step, Target::Cpu, reuse).expect("it compiles");
        let (shared, own) = (of(Reuse::ByLifetime), of(Reuse::Never));
        let [shared, own] = [shared.plan(), own.plan()];
        let arena = shared.bytes(Region::Arena);
        assert!(arena < own.bytes(Region::Arena) * 3 / 4, "{}", reference.name);
        assert!(arena >= shared.least_arena(), "{}", reference.name);
        assert!(
            arena * 100 <= shared.least_arena() * 115,
            "{}: {arena} {}",
            reference.name,
            shared.least_arena()
        );
    }
}

#[test]
fn pieces_in_use_at_the_same_time_do_not_overlap() {
    for (_, step) in &steps() {
        let program = Program::new(step).expect("it compiles");
        let pieces: Vec<_> = program.plan().pieces().iter().filter(|piece| piece.life.is_some()).collect();
        for (at, one) in pieces.iter().enumerate() {
            for other in &pieces[..at] {
                let ([first, last], [begin, end]) = (one.life.expect("a life"), other.life.expect("a life"));
                let together = one.region != Region::Arena || (first <= end && begin <= last);
                let apart = one.start + one.bytes <= other.start || other.start + other.bytes <= one.start;
                assert!(one.region != other.region || !together || apart || one.bytes * other.bytes == 0);
            }
        }
        assert_eq!(program.to_string(), Program::new(step).expect("it compiles").to_string());
    }
}
