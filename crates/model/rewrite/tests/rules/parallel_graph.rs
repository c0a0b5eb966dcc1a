//! Nodes of a CUDA graph ordered by their data.

use crate::common;

use common::{Example, open};
use steptime_graph::{ActivityId, ApiKind, StepGraph, TiVec};
use steptime_rewrite::{CudaGraph, Error, Facts, ParallelGraph, PrefetchInputs, Rule, apply};
use steptime_step::{OpId, ScheduledStep, StepIr, captured, schedule};

fn patched(example: &Example) -> (StepIr, ScheduledStep, ScheduledStep) {
    let mut step = example.step.clone();
    let rules: [&dyn Rule; 3] = [&PrefetchInputs, &CudaGraph, &ParallelGraph::default()];
    apply(&mut step, &rules, &Facts::new(&example.ops, None)).expect("they apply");
    let flat = schedule(&step, &example.step, &example.graph, &example.ops);
    let after = captured(&step, &flat);
    (step, flat, after)
}

/// For each activity, those that end before it begins, by waits and by the order in their streams.
fn before(graph: &StepGraph) -> TiVec<ActivityId, Vec<ActivityId>> {
    let mut all: TiVec<ActivityId, Vec<ActivityId>> = vec![Vec::new(); graph.activities.len()].into();
    let mut order: Vec<ActivityId> = Vec::new();
    for at in graph.calls_by_hand_off().into_iter().flat_map(|call| graph.calls[call].activities()) {
        let stream = graph.activities[at].stream;
        let last = order.iter().rev().find(|&&other| graph.activities[other].stream == stream).copied();
        let waits = graph.waits_of(at).filter(|wait| !wait.wraps).map(|wait| wait.from);
        let mut own: Vec<ActivityId> = waits.chain(last).collect();
        for from in own.clone() {
            own.extend(all[from].iter().copied());
        }
        own.sort_unstable();
        own.dedup();
        all[at] = own;
        order.push(at);
    }
    all
}

#[test]
fn nodes_wait_for_the_makers_of_their_data() {
    let example = open("dlrm_default_2048");
    let (step, flat, after) = patched(&example);
    let graph = &after.graph;
    assert!(graph.streams.len() > flat.graph.streams.len(), "some nodes are independent");
    let launch = graph.calls.iter().find(|call| call.kind == ApiKind::GraphLaunch).expect("a graph");
    let nodes: Vec<ActivityId> = launch.activities().collect();
    let op = |node: ActivityId| -> OpId {
        let call = flat.graph.activities[after.carried.activities[node].expect("carried over")].call;
        flat.ops[flat.graph.calls[call].op.expect("an op")]
    };
    let before = before(graph);
    let (mut ordered, mut free) = (0, 0);
    for (place, &to) in nodes.iter().enumerate() {
        let Some(own) = step.ops[op(to)].arguments() else { continue };
        for &from in &nodes[..place] {
            let Some(made) = step.ops[op(from)].arguments() else { continue };
            if made.gives().any(|given| own.takes().any(|taken| taken == given)) {
                assert!(before[to].contains(&from), "{:?} takes a result of {:?}", op(to), op(from));
                ordered += 1;
            }
            free += usize::from(!before[to].contains(&from));
        }
    }
    assert!(ordered > 20 && free > 20, "{ordered} {free}");
    // The first nodes of the next step wait for the last ones of this step.
    assert!(
        graph.waits.iter().any(|wait| wait.wraps && nodes.contains(&wait.from) && nodes.contains(&wait.to))
    );
}

#[test]
fn a_step_without_a_graph_has_no_nodes() {
    let example = open("dlrm_default_2048");
    assert!(matches!(example.after(&ParallelGraph::default()), Err(Error::NothingToDo { .. })));
}
