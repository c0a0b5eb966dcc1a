//! Predictions of changed steps.

use std::path::{Path, PathBuf};

use steptime_predict::{Change, Choice, Error, Step, open};
use steptime_rewrite::{self, CudaGraph, Facts, ResizeBatch, Rule, Tf32};
use steptime_step::schedule;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name)
}

fn whole(name: &str) -> Step {
    Step::open_with(&example(name), &Choice::default(), &steptime_trace::Options::default())
        .expect("an example")
}

const RECORDINGS: [&str; 5] =
    ["dlrm_ddp_2048", "dlrm_default_2048", "dlrm_default_fused_2048", "dlrm_mlperf_2048", "resnet50_32"];

#[test]
fn a_step_that_no_rule_changes_is_the_recording() {
    for name in RECORDINGS {
        let recorded = whole(name);
        let base = &recorded.graph;
        let step = recorded.arguments.editable(base);
        let now = schedule(&step, &step, base, &recorded.ops);
        let rows = |graph: &steptime_graph::StepGraph| {
            format!(
                "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
                graph.ops,
                graph.calls,
                graph.activities,
                graph.marks,
                graph.waits,
                graph.queue_delays,
                graph.tops
            )
        };
        assert!(rows(base) == rows(&now.graph), "{name}");
        assert!(now.carried.gaps.iter().all(|&same| same), "{name}");
        let answer = recorded.predict().what_if(&[]).unwrap();
        let (before, after) = (answer.before, answer.after);
        assert_eq!(
            (before.step, before.active, before.idle),
            (after.step, after.active, after.idle),
            "{name}"
        );
        assert_eq!(before.interval, after.interval, "{name}");
    }
}

/// A CPU's allocator gave Adam's step counter memory that the loss's gradient had used before. No op
/// creates the counter, so memory addresses alone would suggest that the gradient belongs to the optimizer and does not grow.
#[test]
fn a_number_in_freed_memory_says_nothing_of_what_was_there_before() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/adam_number_in_freed_memory.json.gz");
    let step = open(&trace).expect("an execution trace");
    let batch = ResizeBatch { from: Some(512), ..ResizeBatch::to(8192) };
    let answer = step.predict().on("h200").unwrap().what_if(&[&batch]).expect("it applies");
    assert!(answer.after.active > answer.before.active * 2);
}

/// Kernels of unknown ops have no price but their measured time, on any GPU.
#[test]
fn on_another_gpu_kernels_without_a_price_keep_what_stands_in_for_it() {
    let Some(traces) = steptime_skips::shared(env!("CARGO_MANIFEST_DIR"), "traces") else { return };
    for name in ["public/param_dlrm_8xV100/dlrm_kineto.tar.gz", "h200_b/dlrm_compile_2048"] {
        let recorded =
            Step::open_with(&traces.join(name), &Choice::default(), &steptime_trace::Options::default());
        let recorded = recorded.expect("a recording");
        let answer = recorded.predict().on("a100").unwrap().what_if(&[]).unwrap();
        let [before, after] = [&answer.before, &answer.after].map(|side| side.active.as_millis());
        assert!((after / before - 1.0).abs() < 1e-3, "{name}: {before} to {after} ms");
    }
}

#[test]
fn a_step_that_no_rule_changes_is_the_same_on_another_gpu() {
    for name in ["dlrm_default_2048", "dlrm_default_2048/et.json.gz"] {
        let answer = open(example(name)).unwrap().predict().on("a100").unwrap().what_if(&[]).unwrap();
        assert_eq!(answer.before.step, answer.after.step, "{name}");
    }
}

#[test]
fn a_batch_grows_every_dimension_that_it_has() {
    let recorded = whole("dlrm_default_2048");
    let mut step = recorded.arguments.editable(&recorded.graph);
    let facts = Facts::new(&recorded.ops, recorded.batch());
    steptime_rewrite::apply(&mut step, &[&ResizeBatch::to(512)], &facts).unwrap();
    let shapes = |name: &str| -> Vec<Vec<i64>> {
        let ops = step.running().into_iter().filter(|&op| step.ops[op].name == name);
        let calls = ops.filter_map(|op| step.call(op));
        calls.map(|call| call.output(0).map(|t| t.shape.to_vec()).unwrap_or_default()).collect()
    };
    assert!(shapes("aten::_embedding_bag").iter().all(|shape| shape[..] == [512, 64]));
    assert_eq!(shapes("aten::bmm")[0], [512, 9, 9]);
    // Gradients of weights and the optimizer's work do not grow.
    assert!(shapes("aten::addmm").iter().all(|shape| shape[0] == 512));
    assert!(shapes("aten::mm").contains(&vec![1024, 1024]), "{:?}", shapes("aten::mm"));
    let gathered = step.running().into_iter().filter(|&op| step.ops[op].name == "aten::index_add_");
    assert!(
        gathered.filter_map(|op| step.call(op)).all(|call| call.inputs[2].tensors()[0].shape[..] == [5120])
    );
}

#[test]
fn there_and_back_is_the_recording() {
    let recorded = whole("resnet50_32");
    let answer = recorded
        .predict()
        .what_if(&[&ResizeBatch::to(64), &ResizeBatch { from: Some(64), ..ResizeBatch::to(32) }]);
    let answer = answer.unwrap();
    assert_eq!(answer.before.step, answer.after.step);
}

#[test]
fn less_precise_products_and_fewer_launches_make_it_shorter() {
    let recorded = open(example("dlrm_default_2048")).unwrap();
    let tf32 = recorded.predict().what_if(&[&Tf32]).unwrap();
    assert!(tf32.after.active < tf32.before.active);
    let graph = recorded.predict().what_if(&[&CudaGraph]).unwrap();
    assert_eq!(graph.after.active, graph.before.active, "kernels take as long as they did");
    assert!(graph.after.step.0 * 3 < graph.before.step.0 * 2, "{}", graph.after.step);
    let launches = graph.scheduled.graph.calls.iter().filter(|call| call.activities().len() > 1).count();
    assert_eq!(launches, 1);
}

#[test]
fn a_faster_host_helps_as_far_as_the_host_is_the_limit() {
    let recorded = open(example("dlrm_default_2048")).unwrap();
    let change = Change { rules: &[], host_times: Some(0.5) };
    let answer = recorded.predict().changed(&change).unwrap();
    assert!(answer.after.step < answer.before.step && answer.after.step > answer.before.active);
    let nonsense = Change { rules: &[], host_times: Some(0.0) };
    assert!(matches!(recorded.predict().changed(&nonsense), Err(Error::HostFactor { .. })));
}

#[test]
fn what_does_not_apply_says_why() {
    let recorded = open(example("dlrm_default_2048")).unwrap();
    let said = |batch: u64| recorded.predict().what_if(&[&ResizeBatch::to(batch)]).unwrap_err().to_string();
    assert!(said(0).contains("at least 1"), "{}", said(0));
}

/// A rule that is given twice finds nothing left to do the second time, and the change is still accepted.
#[test]
fn a_rule_that_is_given_twice_does_as_much_as_once() {
    let recorded = open(example("dlrm_default_2048")).unwrap();
    let [once, twice] = [&[&Tf32 as &dyn Rule][..], &[&Tf32, &Tf32]]
        .map(|rules| recorded.predict().what_if(rules).expect("it applies"));
    assert_eq!(once.after.step, twice.after.step);
    let [first, second] = &twice.audits[..] else { panic!("{:?}", twice.audits) };
    assert!(first.counts[2] > 0 && second.counts == [0; 3], "{:?}", twice.audits);
    let why = "nothing is left to do after tf32: no matrix product";
    assert!(second.why[0].starts_with(why), "{:?}", second.why);
}

#[test]
fn the_best_change_comes_first() {
    let explained = open(example("dlrm_default_2048")).unwrap().predict().explain().unwrap();
    let steps: Vec<_> = explained.alone.iter().map(|found| found.after.step).collect();
    assert!(steps.is_sorted(), "{steps:?}");
    let (names, together) = explained.together.expect("several help");
    assert!(names.len() > 1 && together.step < steps[0]);
}
