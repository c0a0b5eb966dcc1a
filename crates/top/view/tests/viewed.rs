//! The data of a page, over `examples/`.

use std::path::{Path, PathBuf};

use steptime_predict::{Change, Step};
use steptime_rewrite::{CudaGraph, ResizeBatch};
use steptime_sim::Idle;
use steptime_trace::{Nanos, Options};
use steptime_view::{Mode, StepViews, Subject, page, what_if};

const EXAMPLES: [&str; 3] = ["dlrm_default_2048", "resnet50_32", "operators/dlrm_8192"];

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name)
}

fn open(name: &str) -> Step {
    Step::open_with(&example(name), &Default::default(), &Options::default()).expect("an example")
}

#[test]
fn every_op_call_and_activity_is_a_slice_of_both_steps() {
    for name in EXAMPLES {
        let step = open(name);
        let graph = &step.graph;
        let viewed =
            StepViews::build(&Subject { step: &step, question: &step.predict() }, None).expect("views");
        assert!(graph.complete_step().is_some(), "{name}");
        let all = graph.ops.len() + graph.calls.len() + graph.activities.len();
        assert_eq!(viewed.slices(), 2 * all, "{name}");
    }
}

#[test]
fn a_step_read_without_arguments_has_the_same_page() {
    let (whole, timing) =
        (open(EXAMPLES[0]), steptime_predict::open(example(EXAMPLES[0])).expect("an example"));
    let page = |step: &Step| {
        let viewed = StepViews::build(&Subject { step, question: &step.predict() }, None).expect("views");
        page(&viewed, Mode::File).expect("a page")
    };
    assert!(page(&whole) == page(&timing), "the pages differ");
}

#[test]
fn waits_are_idle_time_told_apart() {
    for name in EXAMPLES {
        let step = open(name);
        let prediction = step.predict().run().expect("a prediction");
        let waits = Idle::waits(&step.graph, &prediction.timeline);
        assert!(waits.len() > 10, "{name}");
        for (cause, time) in prediction.idle_by_cause.iter() {
            assert_eq!(
                waits.iter().map(|wait| wait.why.get(cause)).sum::<Nanos>(),
                time,
                "{name}, {cause:?}"
            );
        }
        for wait in &waits {
            let parts: Nanos = wait.why.iter().map(|(_, time)| time).sum();
            assert_eq!(parts, wait.until - wait.since, "{name}");
        }
    }
}

#[test]
fn the_most_of_memory_over_the_step_is_its_peak() {
    for name in EXAMPLES {
        let step = open(name);
        let question = step.predict();
        let asked = question.what_ifs().expect("arguments");
        let peak = asked.before().peak.expect("a peak");
        let most = asked.memory().iter().map(|moment| moment.needs.total()).max();
        assert_eq!(most, Some(peak.total()), "{name}");
    }
}

#[test]
fn an_answer_to_a_change_says_its_length() {
    let step = open(EXAMPLES[0]);
    let question = step.predict();
    let asked = question.what_ifs().expect("arguments");
    let rules: [&dyn steptime_rewrite::Rule; 2] = [&ResizeBatch::to(4096), &CudaGraph];
    let change = Change { rules: &rules, host_times: None };
    let bytes = what_if(&asked, &change).expect("an answer");
    let (length, rest) = bytes.split_at(4);
    let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
    assert!(length.is_multiple_of(4) && length < rest.len());
    let answer: serde_json::Value = serde_json::from_slice(&rest[..length]).expect("JSON");
    let known = asked.changed(&change).expect("a change");
    assert_eq!(answer["changed"]["after"]["step_ms"], known.after.step.as_millis());
    assert_eq!(answer["changes"]["rule"], "batch + cuda-graph");
}
