//! Steps with measured times: the bits of ordinary ones, and times that add up.

use std::time::Duration;

use steptime_rewrite::{FuseLinear, Operators, Rule};
use steptime_runtime::{DescribedStep, Program};

use crate::common::{BATCHES, described, feed, losses, session};
use crate::losses::references;

const STEPS: usize = 9;

/// The steps of the models, by the operators where they apply.
fn programs(model: &steptime_eager::Model) -> DescribedStep {
    let rules: [&dyn Rule; 2] = [&Operators, &FuseLinear];
    let mut changed = described(model, &[]);
    let ops = changed.ops().clone();
    let facts = steptime_rewrite::Facts::new(&ops, Some(model.batch()));
    let before = changed.clone();
    match steptime_rewrite::apply(&mut changed.step, &rules, &facts) {
        Ok(_) => changed,
        Err(_) => before,
    }
}

#[test]
fn measured_steps_have_the_bits_of_ordinary_ones() {
    for reference in references() {
        let step = programs(&reference.model);
        let program = || Program::new(&step).expect("it compiles");
        let numbers = reference.numbers(&program());
        let (mut plain, mut measured) = (session(program(), 2, numbers), session(program(), 2, numbers));
        let expected: Vec<u32> =
            losses(&mut plain, &reference.model, STEPS).iter().map(|loss| loss.to_bits()).collect();
        let one = |at: usize| {
            feed(&mut measured, &reference.model, at % BATCHES);
            // Every other step is an ordinary one.
            let loss = if at.is_multiple_of(2) {
                measured.measured_step().expect("a step").loss
            } else {
                measured.step().expect("a step")
            };
            loss.to_bits()
        };
        let own: Vec<u32> = (0..STEPS).map(one).collect();
        assert_eq!(own, expected, "{}", reference.name);
        assert_eq!(plain.steps(), measured.steps());
        for tensor in plain.tensors() {
            let bits = |values: Vec<f32>| -> Vec<u32> { values.iter().map(|x| x.to_bits()).collect() };
            let [one, other] = [&mut plain, &mut measured].map(|from| from.read(&tensor.name));
            assert!(
                bits(one.expect("a tensor")) == bits(other.expect("a tensor")),
                "{} {}",
                reference.name,
                tensor.name
            );
        }
    }
}

#[test]
fn instructions_run_one_after_the_other_within_their_step() {
    let reference = references().into_iter().next().expect("a model");
    let program = Program::new(&programs(&reference.model)).expect("it compiles");
    let (count, numbers) = (program.instructions().len(), reference.numbers(&program));
    let mut session = session(program, 1, numbers);
    feed(&mut session, &reference.model, 0);
    let times = session.measured_step().expect("a step");
    assert_eq!(times.instructions.len(), count);
    assert!(times.inputs.is_none() && times.wait.is_none());
    let mut last = Duration::ZERO;
    for one in &times.instructions {
        assert!(one.device.is_none() && one.host.begin >= last && one.host.end >= one.host.begin);
        last = one.host.end;
    }
    assert!(last <= times.end && times.time() == times.end && session.step_time() == times.end);
    let work: Duration = times.instructions.iter().map(|one| one.work()).sum();
    assert!(work > Duration::ZERO && work <= times.end, "{work:?} of {:?}", times.end);
}

#[test]
fn an_index_that_no_table_has_is_refused_with_its_op() {
    let all = references();
    let reference = all.iter().find(|reference| reference.name.contains("dlrm")).expect("a model");
    let program = Program::new(&programs(&reference.model)).expect("it compiles");
    let numbers = reference.numbers(&program);
    let mut session = session(program, 1, numbers);
    feed(&mut session, &reference.model, 0);
    let mut indices = vec![0; session.program().input_len("tables.0.indices")];
    indices[1] = 1 << 40;
    session.feed_ints("tables.0.indices", &indices).expect("an input");
    let error = session.measured_step().expect_err("an index that no table has").to_string();
    assert!(error.contains("embedding") && session.steps() == 0, "{error}");
}
