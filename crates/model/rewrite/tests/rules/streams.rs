//! Independent branches on separate streams.

use crate::common;

use common::{counts, named, open, takes};
use steptime_aten::OpSet;
use steptime_graph::{ActivityId, ApiKind, StepGraph, StreamId};
use steptime_rewrite::{Error, Facts, Rule, Streams};
use steptime_step::{StepIr, schedule};

fn patched(name: &str, count: usize) -> (common::Example, StepIr, StepGraph) {
    let example = open(name);
    let step = example.after(&Streams { count }).expect("it applies");
    let graph = schedule(&step, &example.step, &example.graph, &example.ops).graph;
    (example, step, graph)
}

/// Whether one activity waits for another, by events, or by the order in its stream.
fn follows(graph: &StepGraph, from: ActivityId, to: ActivityId) -> bool {
    let order: Vec<ActivityId> =
        graph.calls_by_hand_off().into_iter().flat_map(|call| graph.calls[call].activities()).collect();
    let place = |activity| order.iter().position(|&at| at == activity).unwrap();
    let mut reached = vec![to];
    let mut open = vec![to];
    while let Some(at) = open.pop() {
        let stream = graph.activities[at].stream;
        let before = order[..place(at)].iter().rev().find(|&&other| graph.activities[other].stream == stream);
        let awaited = graph.waits_of(at).filter(|wait| !wait.wraps).map(|wait| wait.from);
        for next in awaited.chain(before.copied()) {
            if !reached.contains(&next) {
                reached.push(next);
                open.push(next);
            }
        }
    }
    reached.contains(&from)
}

#[test]
fn projections_of_residual_blocks_go_beside_their_chains() {
    let (example, step, graph) = patched("resnet50_32", 2);
    assert_eq!(graph.streams.len(), example.graph.streams.len() + 1);
    let beside = StreamId::from(graph.streams.len() - 1);
    // Four blocks of a ResNet have a convolution with its norm parallel to three of each.
    let moved: Vec<&str> = step
        .running()
        .into_iter()
        .filter(|&op| step.ops[op].stream == 1 && step.outermost(op) == op)
        .map(|op| &*step.ops[op].name)
        .collect();
    let of = |name: &str| moved.iter().filter(|other| **other == name).count();
    assert_eq!((of("aten::conv2d"), of("aten::batch_norm")), (4, 4), "{moved:?}");
    assert_eq!(of("autograd::engine::evaluate_function: ConvolutionBackward0"), 4, "{moved:?}");
    let there = graph.activities.iter().filter(|row| row.stream == beside).count();
    assert!(there >= 16, "{there} kernels");
    // Nothing else changes: the same number of activities, each launched once.
    assert_eq!(graph.activities.len(), example.graph.activities.len());
    // The allocator records inputs and outputs of a block's second branch: images, one by one.
    let marked = named(&step, "aten::record_stream");
    assert_eq!(marked.len(), 8);
    assert!(marked.iter().all(|&op| takes(&step, op)[0].len() == 4));
    let waits = counts(&step)["wait_stream"];
    let of = |kind| graph.calls.iter().filter(|call| call.kind == kind).count();
    let was = |kind| example.graph.calls.iter().filter(|call| call.kind == kind).count();
    for kind in [ApiKind::EventRecord, ApiKind::StreamWait] {
        assert_eq!(of(kind), was(kind) + waits);
    }
    // Inserted ops are inserted once.
    let facts = Facts::new(&example.ops, None);
    let again = Streams { count: 2 }.patches(&step, &facts).expect_err("it has been done");
    assert!(again.to_string().contains("already"), "{again}");
}

#[test]
fn what_an_op_takes_is_there_when_its_kernels_begin() {
    for name in ["resnet50_32", "dlrm_default_2048", "dlrm_mlperf_2048"] {
        let (example, step, graph) = patched(name, 3);
        let scheduled = schedule(&step, &example.step, &example.graph, &example.ops);
        let mut last: std::collections::HashMap<_, ActivityId> = std::collections::HashMap::new();
        let mut checked = 0;
        for call in graph.calls_by_hand_off() {
            let Some(op) = graph.calls[call].op else { continue };
            let row = step.ops[scheduled.ops[op]].call.as_ref();
            let Some((row, at)) = row.zip(graph.calls[call].activities().next()) else { continue };
            for tensor in row.takes() {
                let Some(&maker) = last.get(&tensor) else { continue };
                if graph.activities[maker].stream != graph.activities[at].stream {
                    assert!(follows(&graph, maker, at), "{name}: {}", graph.op_name(op));
                    checked += 1;
                }
            }
            let end = graph.calls[call].activities().next_back();
            last.extend(row.gives().filter_map(|tensor| Some((tensor, end?))));
        }
        assert!(checked > 3, "{name}: {checked}");
    }
}

#[test]
fn it_says_why_it_does_not_apply() {
    let example = open("resnet50_32");
    for count in [0, 1, 1000] {
        let error = example.after(&Streams { count }).expect_err("no such number");
        assert!(matches!(error, Error::Streams { .. }), "{error}");
    }
    let empty = Facts { ops: &OpSet::standard(), batch: None, unchanged: None, modules: None };
    let error = Streams { count: 2 }.patches(&StepIr::default(), &empty).expect_err("no tensors");
    assert!(error.to_string().contains("execution trace"), "{error}");
    let beside = StepIr { streams: 2, ..example.step.clone() };
    let facts = Facts::new(&example.ops, None);
    let error = Streams { count: 2 }.patches(&beside, &facts).expect_err("streams");
    assert!(error.to_string().contains("kernels on 2 streams"), "{error}");
    // The backward pass alone.
    let mut chain = example.step.clone();
    chain.threads.raw[0].clear();
    let error = Streams { count: 2 }.patches(&chain, &facts).expect_err("a chain");
    assert!(error.to_string().contains("joins independent branches"), "{error}");
}
