//! Parameters and states by name: a session that continues from them has the same bits as one that never stopped.

use steptime_rewrite::{FuseLinear, Operators, Rule};
use steptime_runtime::{Program, Session};

use crate::common::{BATCHES, described, feed, losses, session};
use crate::losses::references;

/// Copies parameters, states and the number of steps.
fn copied(from: &mut Session, to: &mut Session) {
    for tensor in from.tensors() {
        let values = from.read(&tensor.name).expect("a tensor");
        assert_eq!(values.len(), tensor.shape.iter().product::<usize>(), "{}", tensor.name);
        to.write(&tensor.name, &values).expect("the same tensor");
    }
    to.set_steps(from.steps());
}

#[test]
fn a_resumed_session_has_the_same_bits() {
    let mut states = 0;
    for reference in references() {
        let rules: [&dyn Rule; 2] = [&Operators, &FuseLinear];
        for rules in [&rules[..0], &rules[..]] {
            let mut step = described(&reference.model, &[]);
            let ops = step.ops().clone();
            let facts = steptime_rewrite::Facts::new(&ops, Some(reference.model.batch()));
            if steptime_rewrite::apply(&mut step.step, rules, &facts).is_err() {
                continue;
            }
            let make = || {
                let program = Program::new(&step).expect("it compiles");
                let numbers = reference.numbers(&program);
                session(program, 1, numbers)
            };
            let (mut whole, mut second) = (make(), make());
            losses(&mut whole, &reference.model, BATCHES);
            copied(&mut whole, &mut second);
            states += second.tensors().iter().filter(|tensor| tensor.state).count();
            for number in 0..4 {
                for session in [&mut whole, &mut second] {
                    feed(session, &reference.model, number);
                }
                let [one, other] = [&mut whole, &mut second].map(|session| session.step().expect("a step"));
                assert_eq!(one.to_bits(), other.to_bits(), "{}", reference.name);
            }
        }
    }
    assert!(states > 20, "{states}");
}

#[test]
fn initial_parameters_depend_on_the_seed_alone() {
    let reference = references().remove(0);
    let of = |seed, threads| {
        let program = Program::new(&described(&reference.model, &[])).expect("it compiles");
        let cpu = steptime_ops::Cpu::new(threads).expect("threads");
        let mut session = Session::new(program, cpu, seed).expect("memory");
        let names: Vec<String> = session.tensors().into_iter().map(|tensor| tensor.name).collect();
        names.iter().map(|name| session.read(name).expect("a tensor")).collect::<Vec<_>>()
    };
    assert_eq!(of(1, 1), of(1, 3));
    assert_ne!(of(1, 1), of(2, 1));
}

#[test]
fn unknown_names_and_sizes_are_refused() {
    let reference = references().remove(1);
    let program = Program::new(&described(&reference.model, &[])).expect("it compiles");
    let numbers = reference.numbers(&program);
    let mut session = session(program, 1, numbers);
    let refused = session.read("top.7.weight").expect_err("no such layer").to_string();
    assert!(refused.contains("`top.7.weight`") && refused.contains("top.0.weight.sum"), "{refused}");
    assert!(session.write("nothing", &[1.0]).is_err());
    let refused = session.write("top.0.bias", &[1.0]).expect_err("too few").to_string();
    assert_eq!(refused, "`top.0.bias` takes 16 floats, not 1 floats");
}
