//! Steps of several batches, and with recomputed blocks, compared with recordings of scripts that do the same.
//!
//! `tests/data/passes.py` recorded them on a CPU, before and after.

use crate::recorded;

use recorded::{RecordedStep, launches, other};
use steptime_rewrite::{Accumulate, Checkpoint, DataParallel, Error, Operators, Rule, ShardedOptimizer};
use steptime_step::export::{self, Export};
use steptime_step::{StepIr, TensorId, schedule};

const TWO: Accumulate = Accumulate { batches: 2 };

fn same(before: &str, rules: &[&dyn Rule], after: &str) {
    let (before, after) = (RecordedStep::open(before), RecordedStep::open(after));
    let changed = before.after(rules).expect("it applies");
    let [now, recorded] = [&changed, &after.step].map(|step| launches(step, &before.ops));
    assert_eq!(other(&now, &recorded), [""; 0], "what the rule gives, and what was recorded");
}

#[test]
fn an_accumulated_step_launches_what_was_recorded() {
    same("words", &[&TWO], "words_2");
}

/// Recorded without an early stop: the last product of each block and the sum after it, which save no tensor of the block, run again there.
#[test]
fn a_checkpointed_step_launches_what_was_recorded_but_for_the_early_stop() {
    let (before, after) = (RecordedStep::open("words"), RecordedStep::open("words_checkpointed"));
    let changed = before.after(&[&Checkpoint::default()]).expect("it applies");
    let [now, recorded] = [&changed, &after.step].map(|step| launches(step, &before.ops));
    let [plain] = [&before.step].map(|step| launches(step, &before.ops));
    assert!(now.values().sum::<usize>() > plain.values().sum::<usize>());
    let more: usize = recorded.values().sum::<usize>() - now.values().sum::<usize>();
    assert_eq!(more, 6, "{:?}", other(&now, &recorded));
    let named = |line: &String| line.starts_with("aten::addmm ") || line.starts_with("aten::add ");
    assert!(other(&now, &recorded).iter().all(named), "{:?}", other(&now, &recorded));
}

#[test]
fn what_is_the_same_for_every_batch_is_copied_once() {
    let before = RecordedStep::open("words");
    let step = before.after(&[&TWO]).expect("it applies");
    let copies = |step: &StepIr| {
        let counts = launches(step, &before.ops);
        let to_device = counts.iter().filter(|(name, _)| name.starts_with("aten::copy_ of 68,"));
        to_device.map(|(_, count)| count).sum::<usize>()
    };
    assert_eq!(copies(&before.step), 1, "17 edges");
    assert_eq!(copies(&step), 1);
}

#[test]
fn the_last_of_several_batches_averages_gradients() {
    let before = RecordedStep::open("words");
    let averaged = |rules: &[&dyn Rule]| {
        let step = before.after(rules).expect("it applies");
        let is = |op: &&steptime_step::Op| op.name == "torch::distributed::reducer::mul_out";
        let running = step.running();
        running.iter().map(|&op| &step.ops[op]).filter(is).count()
    };
    let ddp = DataParallel::new(4);
    assert!(averaged(&[&ddp]) > 10);
    assert_eq!(averaged(&[&TWO, &ddp]), averaged(&[&ddp]));
}

#[test]
fn tables_of_one_shape_are_told_apart() {
    for name in ["clicks_adam", "clicks_adagrad"] {
        let before = RecordedStep::open(name);
        let step = before.after(&[&Operators]).expect("it applies");
        let counts = recorded::counts(&step);
        assert_eq!(counts.get("steptime::embedding_bag"), Some(&1), "{name}: both tables in one call");
        assert_eq!(counts.get("steptime::interaction"), Some(&1), "{name}: seen behind the stack");
        let own = format!("steptime::embedding_bag_backward_{}", name.trim_start_matches("clicks_"));
        assert_eq!(counts.get(&*own), Some(&1), "{name}");
        // No op of the tables' optimizer is left.
        assert!(!counts.keys().any(|name| name.contains("coalesce")), "{counts:?}");
    }
}

#[test]
fn one_batch_is_no_change() {
    let before = RecordedStep::open("words");
    let step = before.after(&[&Accumulate { batches: 1 }]).expect("it applies");
    assert_eq!(step.running(), before.step.running());
    let takes = |step: &StepIr| -> Vec<TensorId> {
        step.running()
            .iter()
            .filter_map(|&op| step.ops[op].call.as_deref())
            .flat_map(|call| call.takes())
            .collect()
    };
    assert_eq!(takes(&step), takes(&before.step));
}

#[test]
fn as_many_batches_as_make_no_sense_are_refused() {
    let before = RecordedStep::open("words");
    let refused = before.after(&[&Accumulate { batches: 0 }]);
    assert!(matches!(refused, Err(Error::Accumulated { batches: 0, .. })), "{refused:?}");
}

#[test]
fn every_changed_step_is_written_in_every_format() {
    let ddp = DataParallel::new(4);
    let checkpoint = Checkpoint::default();
    for (name, rules) in [
        ("words", [&TWO as &dyn Rule].as_slice()),
        ("words", &[&checkpoint]),
        ("words", &[&checkpoint, &TWO, &ddp]),
        ("clicks_adam", &[&TWO]),
        ("clicks_adagrad", &[&Operators]),
    ] {
        let before = RecordedStep::open(name);
        let step = before.after(rules).unwrap_or_else(|error| panic!("{name}, {rules:?}: {error}"));
        let scheduled = schedule(&step, &before.step, &before.graph, &before.ops);
        assert_eq!(scheduled.circle(), None, "{name}, {rules:?}");
        let export = Export { name, step: &step, scheduled: &scheduled, trace: Some(&before.execution) };
        let mut out = Vec::new();
        export::execution::write(&mut out, &export).expect("an execution trace");
        export::json::write(&mut out, &export).expect("JSON");
        export::dot::write(&mut out, &export).expect("a picture");
        assert!(out.len() > 10_000, "{name}, {rules:?}");
    }
}

#[test]
fn parameters_of_one_shape_are_shared_out() {
    let before = RecordedStep::open("words");
    let listed = |step: &StepIr| {
        let lists = step.running().into_iter().filter(|&op| step.ops[op].name == "aten::_foreach_addcdiv_");
        let lengths =
            lists.filter_map(|op| step.ops[op].call.as_deref()).map(|call| call.inputs[0].tensors().len());
        lengths.collect::<Vec<usize>>()
    };
    let dense = DataParallel::new(2);
    let step = before.after(&[&ShardedOptimizer { dense }]).expect("it applies");
    let (was, now) = (listed(&before.step), listed(&step));
    assert_eq!((was.len(), now.len()), (1, 1));
    assert!(now[0] > 0 && now[0] < was[0], "{now:?} of {was:?}");
}
