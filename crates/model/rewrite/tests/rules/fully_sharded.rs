//! A step of one of eight ranks that have a part of each parameter, compared with a recording of such a rank.
//!
//! `tests/data/perceptron` and `perceptron_fsdp` are execution traces of the same model: eight blocks of a linear layer and a ReLU, and a linear
//! layer. `benches/worlds.py` recorded them with PyTorch 2.11, the second as rank 0 of 8.

#[allow(dead_code)]
use crate::common;

use std::path::{Path, PathBuf};

use common::{counts, named, open, takes};
use steptime_aten::derive::{self, OpTree, TreeKind};
use steptime_aten::{Arg, OpSet};
use steptime_graph::execution::ExecutionGraph;
use steptime_graph::{CollectiveKind, Modules, StepGraph};
use steptime_rewrite::{Accumulate, Blocks, Error, Facts, FullySharded, Rule, apply};
use steptime_step::{MemoryKind, Origin, Peak, StepIr, schedule};
use steptime_trace::Meta;

/// An execution trace of `tests/data/` as a step, with its modules.
struct Lone {
    graph: StepGraph,
    step: StepIr,
    modules: Modules,
    ops: OpSet,
}

impl Lone {
    fn open(name: &str) -> Lone {
        let folder = folder(name);
        let opened = steptime_trace::open(&folder.join("et.json.gz")).expect("a trace");
        let execution =
            ExecutionGraph::new(opened.recordings[0].execution.as_ref().expect("an execution trace"));
        let tree = OpTree::from_execution(&execution);
        let ops = OpSet::standard();
        let derived = derive::from_tree(&tree, &ops).expect("ops");
        let of_op = |op: steptime_graph::OpId| &tree.nodes[derived.nodes[op] as usize];
        let call =
            |op| Some(of_op(op)).filter(|node| node.kind == TreeKind::Op).map(|node| node.call.clone());
        let step = StepIr::from_graph(&derived.graph, Some(&execution), call, |op| of_op(op).origin);
        let calls = Meta::read_of(&folder).map(|meta| meta.modules).unwrap_or_default();
        let sequence = |op: steptime_graph::OpId| step.ops[steptime_step::OpId(op.0)].sequence;
        let modules = Modules::build(&derived.graph, sequence, &calls);
        Lone { graph: derived.graph, step, modules, ops }
    }

    fn after(&self, rules: &[&dyn Rule]) -> Result<StepIr, Error> {
        let mut step = self.step.clone();
        let facts = Facts { modules: Some(&self.modules), ..Facts::new(&self.ops, Some(2048)) };
        apply(&mut step, rules, &facts).map_err(|refused| refused.source)?;
        Ok(step)
    }

    fn peak(&self, step: &StepIr) -> Peak {
        Peak::find(step, &schedule(step, &self.step, &self.graph, &self.ops), Some(9))
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn each_block() -> FullySharded {
    FullySharded { blocks: Blocks::Modules(vec!["Sequential.*".to_owned()]), ..FullySharded::new(8) }
}

fn sharded() -> (Lone, StepIr) {
    let lone = Lone::open("perceptron");
    let step = lone.after(&[&each_block()]).expect("it applies");
    (lone, step)
}

/// Events of FSDP in order, thread by thread, each with its depth among them.
fn called(step: &StepIr) -> Vec<(usize, String)> {
    let is = |name: &str| {
        ["FSDP::", "fsdp::", "c10d::", "RegisterPost"].iter().any(|prefix| name.starts_with(prefix))
    };
    let running = step.running().into_iter().filter(|&op| is(&step.ops[op].name));
    running
        .map(|op| {
            (step.around(op).skip(1).filter(|&op| is(&step.ops[op].name)).count(), step.ops[op].name.clone())
        })
        .collect()
}

#[test]
fn fsdp_calls_what_it_was_recorded_to_call() {
    let (_, step) = sharded();
    let recorded = Lone::open("perceptron_fsdp").step;
    assert_eq!(called(&step), called(&recorded));
    assert_eq!(called(&step).iter().filter(|(_, name)| name == "c10d::_allgather_base_").count(), 18);
}

#[test]
fn what_is_put_in_has_the_shapes_that_were_recorded() {
    let (_, step) = sharded();
    let recorded = Lone::open("perceptron_fsdp").step;
    for name in
        ["fsdp::all_gather_copy_in", "fsdp::split_with_sizes_copy", "fsdp::chunk_cat", "aten::_foreach_copy_"]
    {
        let called = |step: &StepIr| -> Vec<_> {
            named(step, name).into_iter().filter(|&op| step.ops[op].arguments().is_some()).collect()
        };
        let shapes = |step: &StepIr| called(step).into_iter().map(|op| takes(step, op)).collect::<Vec<_>>();
        assert!(!shapes(&step).is_empty(), "{name}");
        assert_eq!(shapes(&step), shapes(&recorded), "{name}");
    }
}

#[test]
fn the_optimizer_updates_parts() {
    let (_, step) = sharded();
    let recorded = Lone::open("perceptron_fsdp").step;
    for name in
        ["aten::_foreach_lerp_", "aten::_foreach_addcmul_", "aten::_foreach_sqrt", "aten::_foreach_addcdiv_"]
    {
        // The recording has DTensors of the whole, and inside the same op of the parts.
        let inner = named(&recorded, name).into_iter().find(|&op| {
            recorded.ops[op].parent.is_some_and(|around| recorded.ops[around].name == "PythonSubclass")
        });
        let ours = named(&step, name);
        assert_eq!(ours.len(), 1, "{name}");
        assert_eq!(takes(&step, ours[0]), takes(&recorded, inner.expect("one of parts")), "{name}");
    }
}

#[test]
fn collectives_move_all_parts_of_a_block() {
    let (lone, step) = sharded();
    let scheduled = schedule(&step, &lone.step, &lone.graph, &lone.ops);
    let mut found: Vec<(CollectiveKind, u64, u64)> =
        scheduled.graph.collectives.iter().map(|one| (one.kind, one.sent.0, one.received.0)).collect();
    found.sort_by_key(|&(kind, sent, _)| (kind != CollectiveKind::AllGather, sent));
    // 1024 by 1024 and 1024 elements, cut over eight ranks; one by 1024 and one, of which the first rank has all.
    let (part, last) = (4 * (1024 * 1024 + 1024) / 8, 4 * (1024 + 1));
    let gathers = |part, count| vec![(CollectiveKind::AllGather, part, 8 * part); count];
    let scatters = |part, count| vec![(CollectiveKind::ReduceScatter, 8 * part, part); count];
    assert_eq!(found, [gathers(last, 2), gathers(part, 16), scatters(last, 1), scatters(part, 8)].concat());
    // Collected, gathered and reduced on separate streams.
    let streams: std::collections::BTreeSet<_> =
        scheduled.graph.activities.iter().map(|row| row.stream).collect();
    assert_eq!(streams.len(), lone.graph.streams.len() + 3);
}

#[test]
fn what_is_kept_needs_no_second_gather() {
    let lone = Lone::open("perceptron");
    let step = lone.after(&[&FullySharded { reshard: false, ..each_block() }]).expect("it applies");
    assert_eq!(counts(&step)["c10d::_allgather_base_"], 9);
    assert_eq!(counts(&step)["c10d::_reduce_scatter_base_"], 9);
    let (_, again) = sharded();
    assert!(lone.peak(&step).total() > lone.peak(&again).total());
}

#[test]
fn all_else_stays_as_it_was() {
    let (lone, step) = sharded();
    let mut kept = 0;
    for op in lone.step.running() {
        let (was, is) = (&lone.step.ops[op], &step.ops[op]);
        assert_eq!((&was.name, was.parent, was.thread), (&is.name, is.parent, is.thread));
        if step.is_in(op, steptime_graph::names::EventName::is_optimizer_step) {
            continue;
        }
        if is.origin != was.origin {
            // Functions take parameters gathered again, of the same shapes.
            assert!(matches!(is.origin, Origin::Changed(..)), "{}", is.name);
            assert_eq!(takes(&lone.step, op), takes(&step, op), "{}", is.name);
        }
        kept += 1;
    }
    assert!(kept > 300, "{kept}");
}

#[test]
fn memory_goes_down_by_what_is_sharded() {
    let (lone, step) = sharded();
    let [before, after] = [lone.peak(&lone.step), lone.peak(&step)];
    // Eight layers cut in eight parts, and one of a single row.
    let all = 4 * (8 * (1024 * 1024 + 1024) + 1024 + 1);
    let part = 4 * ((1024 * 1024 + 1024) + 1024 + 1);
    let near = |bytes: u64, wanted: u64| bytes.abs_diff(wanted) < 512 * 64;
    for (kind, times) in [(MemoryKind::Parameters, 1), (MemoryKind::Optimizer, 2)] {
        assert!(near(before.bytes_of(kind), times * all), "{kind:?}: {}", before.bytes_of(kind));
        assert!(near(after.bytes_of(kind), times * part), "{kind:?}: {}", after.bytes_of(kind));
    }
    assert!(after.total() < before.total() - 2 * (all - part), "{} {}", before.total(), after.total());
}

#[test]
fn blocks_by_depth_and_by_what_is_called_most_often() {
    let lone = Lone::open("perceptron");
    let gathers = |blocks: Blocks| {
        let step = lone.after(&[&FullySharded { blocks, ..FullySharded::new(8) }]).expect("it applies");
        counts(&step)["c10d::_allgather_base_"]
    };
    assert_eq!(gathers(Blocks::Depth(1)), 18);
    // The last layer is in no block: it is gathered once.
    assert_eq!(gathers(Blocks::Repeated), 17);
    assert_eq!(gathers(Blocks::Modules(vec!["Sequential.3".to_owned()])), 3);
}

#[test]
fn where_it_does_not_apply_it_says_why() {
    let lone = Lone::open("perceptron");
    let reason = |step: Result<StepIr, Error>| step.expect_err("it does not apply").to_string();
    assert!(
        reason(Lone::open("perceptron_fsdp").after(&[&FullySharded::new(8)])).contains("sharded already")
    );
    let no_module =
        FullySharded { blocks: Blocks::Modules(vec!["Net.*".to_owned()]), ..FullySharded::new(8) };
    assert!(reason(lone.after(&[&no_module])).contains("no module matches"));
    assert!(matches!(lone.after(&[&FullySharded::new(0)]), Err(Error::Ranks)));
    // Each batch gathers its parameters, independent of the order of rules.
    let gathers = |step: &StepIr| counts(step)["c10d::_allgather_base_"];
    let once = lone.after(&[&each_block()]).expect("it applies");
    let twice = lone.after(&[&Accumulate { batches: 2 }, &each_block()]).expect("it applies");
    assert_eq!(gathers(&twice), 2 * gathers(&once));
    // Tables with sparse gradients; modules that were not recorded.
    let tables = open("dlrm_default_2048");
    assert!(matches!(tables.after(&FullySharded::new(8)), Err(Error::SparseAveraged { .. })));
    assert!(matches!(open("resnet50_32").after(&no_module), Err(Error::NoModules)));
}

#[test]
fn without_modules_blocks_are_what_comes_again() {
    let step = open("resnet50_32").after(&FullySharded::new(8)).expect("it applies");
    // Per stage of ResNet-50 the blocks after the first: each gathered twice, the rest once.
    let blocks = named(&step, "RegisterPostBackwardFunction").len();
    assert!((10..=14).contains(&blocks), "{blocks}");
    assert_eq!(counts(&step)["c10d::_allgather_base_"], 2 * blocks + 1);
    let shapes = named(&step, "c10d::_allgather_base_").into_iter().map(|op| {
        let call = step.call(op).expect("a call");
        call.inputs.iter().flat_map(Arg::tensors).map(|tensor| tensor.numel()).collect::<Vec<_>>()
    });
    assert!(shapes.into_iter().all(|sizes| sizes[0] == 8 * sizes[1]));
}
