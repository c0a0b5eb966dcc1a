//! Typical training loops, recorded on a CPU, and their launches on the GPU.

use std::path::Path;

use steptime_aten::derive::{self, DerivedStep};
use steptime_aten::kernel::Kernel;
use steptime_aten::retarget::{self, RetargetedStep};
use steptime_aten::{OpSet, Tensor};
use steptime_graph::Phase;
use steptime_graph::execution::ExecutionGraph;
use steptime_trace::Meta;

fn read(name: &str) -> ExecutionGraph {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/{name}.json.gz"));
    let input = steptime_trace::open(&path).unwrap();
    ExecutionGraph::new(input.recordings[0].execution.as_ref().unwrap())
}

fn moved(name: &str) -> (RetargetedStep, DerivedStep) {
    let moved = retarget::to_cuda(&read(name), &OpSet::standard(), &Meta::default());
    assert!(moved.unknown.is_empty(), "{name}: {:?}", moved.unknown);
    let derived = derive::from_tree(&moved.tree, &OpSet::standard()).unwrap();
    assert_eq!(derived.counts.unknown, 0, "{name}");
    (moved, derived)
}

/// Returns the launching ops, without their namespace.
fn launched(name: &str) -> Vec<String> {
    let (_, derived) = moved(name);
    let names = derived.kernels.iter().map(|kernel| derived.graph.op_name(kernel.op));
    names.map(|name| name.trim_start_matches("aten::").to_owned()).collect()
}

fn count(launched: &[String], part: &str) -> usize {
    launched.iter().filter(|name| name.contains(part)).count()
}

#[test]
fn a_closure_launches_what_the_plain_loop_does() {
    let (mut plain, mut closure) = (launched("loop_plain"), launched("loop_closure"));
    assert_eq!(count(&plain, "_foreach_"), 8);
    plain.sort_unstable();
    closure.sort_unstable();
    assert_eq!(plain, closure);
}

#[test]
fn groups_of_parameters_are_updated_apart() {
    // One has weight decay, which needs one product more.
    assert_eq!(count(&launched("loop_groups"), "_foreach_"), 8 + 7);
}

#[test]
fn an_optimizer_that_loops_on_a_gpu_too_stays_a_loop() {
    let ops = OpSet::standard();
    let lists = |said: &[&str]| {
        let said: Vec<String> = said.iter().map(|form| (*form).to_owned()).collect();
        let moved =
            retarget::to_cuda(&read("loop_plain"), &ops, &Meta { optimizers: said, ..Meta::default() });
        let named = |part: &str| moved.tree.nodes.iter().filter(|node| node.call.name.contains(part)).count();
        (named("_foreach_"), named("aten::addcdiv_"))
    };
    let usual = lists(&[]);
    assert!(usual.0 >= 8 && usual.1 == 0, "{usual:?}");
    assert_eq!(lists(&["foreach"]), usual);
    let (over_lists, one_by_one) = lists(&["loop"]);
    assert!(over_lists == 0 && one_by_one > 1, "{over_lists} {one_by_one}");
    // Forms of another step.
    assert_eq!(lists(&["loop", "loop"]), usual);
}

#[test]
fn only_the_batch_is_copied_and_not_what_it_was_taken_from() {
    let bytes = |name: &str| {
        let (moved, derived) = moved(name);
        assert_eq!(moved.input_copies, 2, "{name}");
        let copied = derived.kernels.iter().filter_map(|kernel| match &kernel.call.kernel {
            Kernel::Transfer(copy) => Some(copy.bytes),
            _ => None,
        });
        copied.collect::<Vec<_>>()
    };
    // Eight rows of sixteen numbers, and their classes.
    assert_eq!(bytes("loop_plain"), [512, 64]);
    assert_eq!(bytes("loop_loader"), [512, 64]);
    assert_eq!(launched("loop_loader"), launched("loop_plain"));
}

#[test]
fn passes_after_the_first_backward_are_forward_too() {
    for (name, passes) in [("loop_accumulate", 4), ("loop_closure", 1), ("loop_plain", 1)] {
        let (_, derived) = moved(name);
        let of = |phase: Phase, part: &str| {
            let ops = derived.graph.ops.iter();
            let named = ops.filter(|op| op.phase == phase && derived.graph.names.get(op.name).contains(part));
            named.count()
        };
        assert_eq!(of(Phase::Forward, "aten::cross_entropy_loss"), passes, "{name}");
        assert_eq!(of(Phase::Optimizer, "aten::addmm") + of(Phase::Other, "aten::addmm"), 0, "{name}");
        assert_eq!(of(Phase::Optimizer, "_foreach_addcdiv_"), 1, "{name}");
    }
}

#[test]
fn norms_of_gradients_are_taken_at_once() {
    let launched = launched("loop_clip");
    assert_eq!(count(&launched, "_foreach_norm"), 1);
    assert_eq!(count(&launched, "_foreach_mul_"), 1 + 2);
    // The norm of all norms.
    assert_eq!(count(&launched, "linalg_vector_norm"), 1);
}

#[test]
fn a_recurrent_network_is_one_op_each_way() {
    let launched = launched("gru");
    assert_eq!(count(&launched, "_cudnn_rnn_backward"), 1);
    assert_eq!(count(&launched, "_cudnn_rnn"), 2);
    assert_eq!(count(&launched, "tanh") + count(&launched, "sigmoid"), 0);
    let (moved, _) = moved("gru");
    let function = "autograd::engine::evaluate_function: CudnnRnnBackward0";
    assert_eq!(moved.tree.nodes.iter().filter(|node| node.call.name == function).count(), 1);
}

#[test]
fn attention_with_dropout_is_one_kernel_forward() {
    let launched = launched("attention");
    assert_eq!(count(&launched, "_efficient_attention_forward"), 1);
    assert_eq!(count(&launched, "_efficient_attention_backward"), 1);
    assert_eq!(count(&launched, "softmax"), 2, "of the loss: {launched:?}");
}

#[test]
fn tensors_without_memory_launch_what_those_with_do() {
    assert!(read("bags_fake").fake && !read("bags").fake);
    let work = |name: &str| {
        // Only the form without memory calls the ops that check indices.
        let checks = ["max", "min", "_assert_async", "ge", "lt", "logical_and"];
        let mut all = launched(name);
        all.retain(|op| !checks.contains(&op.as_str()));
        all.sort_unstable();
        all
    };
    assert_eq!(work("bags_fake"), work("bags"));
}

/// Returns the number of kernels that copy inside functions of the backward engine of this name.
fn copies(name: &str, function: &str) -> usize {
    let (_, derived) = moved(name);
    let ops = &derived.graph.ops;
    let is_within = |mut at| loop {
        if derived.graph.op_name(at) == function {
            break true;
        }
        match ops[at].parent {
            Some(parent) => at = parent,
            None => break false,
        }
    };
    let copying = derived.kernels.iter().filter(|kernel| derived.graph.op_name(kernel.op) == "aten::copy_");
    copying.filter(|kernel| is_within(kernel.op)).count()
}

#[test]
fn gradients_of_attention_by_position_are_joined_without_copies() {
    assert_eq!(copies("attention_split", "ViewBackward0"), 0);
    let (moved, _) = moved("attention_split");
    let joined = moved.tree.nodes.iter().find(|node| node.call.name == "aten::cat").unwrap();
    assert!(joined.call.tensors_at(0).iter().all(Tensor::is_contiguous));
    // The result is not rearranged by position either.
    let copied = moved.tree.nodes.iter().any(|node| node.call.name.ends_with("CloneBackward0"));
    assert!(!copied);
}

#[test]
fn gradients_of_attention_that_are_viewed_head_by_head_are_copied() {
    // Each is rearranged by head and back, and all three are joined, as on an H200.
    assert_eq!(copies("attention", "ViewBackward0"), 3 + 3 + 1);
}
