//! Inputs copied a step ahead.

use crate::common;

use common::{counts, named, open, takes};
use steptime_aten::{Device, OpSet};
use steptime_graph::Blocking;
use steptime_rewrite::{Error, Facts, PrefetchInputs, Rule};
use steptime_step::{OpId, StepIr, schedule};

fn ahead(step: &StepIr) -> Vec<OpId> {
    step.running().into_iter().filter(|&op| step.ops[op].ahead).collect()
}

#[test]
fn copies_of_the_batch_are_pinned_and_do_not_wait() {
    for (name, copies) in [("resnet50_32", 2), ("dlrm_default_2048", 18)] {
        let example = open(name);
        let step = example.after(&PrefetchInputs).expect("it applies");
        assert_eq!(ahead(&step).len(), copies, "{name}");
        assert_eq!(counts(&step)["aten::record_stream"], copies, "{name}");
        for op in ahead(&step) {
            let call = step.call(op).expect("a call");
            assert_eq!(call.flag_at(2), Some(true));
            assert_eq!(call.inputs[1].tensors()[0].device, Device::Pinned);
        }
        // The allocator records the outputs of the copies.
        let marked: Vec<_> =
            named(&step, "aten::record_stream").into_iter().map(|op| takes(&step, op)).collect();
        let copied: Vec<_> = ahead(&step).into_iter().map(|op| takes(&step, op)[..1].to_vec()).collect();
        assert_eq!(marked, copied, "{name}");
    }
}

#[test]
fn they_run_on_a_stream_that_the_next_step_waits_for() {
    let example = open("resnet50_32");
    let step = example.after(&PrefetchInputs).expect("it applies");
    let now = schedule(&step, &example.step, &example.graph, &example.ops).graph;
    assert_eq!(now.streams.len(), example.graph.streams.len() + 1);
    let on_it = now.activities.iter().filter(|row| usize::from(row.stream) + 1 == now.streams.len());
    let names: Vec<&str> = on_it.map(|row| now.names.get(row.name)).collect();
    assert_eq!(names, ["Memcpy HtoD (Pinned -> Device)"; 2]);
    let wraps: Vec<_> = now.waits.iter().filter(|wait| wait.wraps).collect();
    assert_eq!(wraps.len(), 1 + example.graph.waits.iter().filter(|wait| wait.wraps).count());
    let waits = |graph: &steptime_graph::StepGraph| {
        graph.calls.iter().filter(|call| matches!(call.blocking, Blocking::Streams(_))).count()
    };
    assert_eq!(waits(&now), waits(&example.graph) - 2);
}

#[test]
fn what_does_not_block_is_left_and_said() {
    let example = open("resnet50_32");
    let step = example.after(&PrefetchInputs).expect("it applies");
    let facts = Facts::new(&example.ops, None);
    let Err(Error::NothingToDo { reason }) = PrefetchInputs.patches(&step, &facts) else {
        panic!("it has been done")
    };
    assert!(reason.contains("the host does not wait for inputs"), "{reason}");
    let empty = Facts { ops: &OpSet::standard(), batch: None, unchanged: None, modules: None };
    let error = PrefetchInputs.patches(&StepIr::default(), &empty).expect_err("no copies");
    assert!(error.to_string().contains("no op copies"), "{error}");
}
