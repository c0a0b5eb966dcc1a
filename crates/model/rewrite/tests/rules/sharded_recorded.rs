//! A step with its parameters sharded, and with chosen blocks recomputed, compared with recordings of scripts that do the same.
//!
//! `tests/data/sharded.py` recorded them on a CPU, as rank 0 of 8.

#[allow(dead_code)]
use crate::recorded;

use recorded::{RecordedStep, counts, launches, other};
use steptime_aten::Arg;
use steptime_rewrite::{Blocks, Checkpoint, Error, FullySharded};
use steptime_step::{MemoryKind, Peak, StepIr, schedule};

/// Elements of all parameters, and of the rows of the first rank.
const ALL: i64 = 50 * 32 + 2 * (3 * 32 + 2 * 96 * 32 + 96) + 11 * 32 + 11;
const PART: i64 = 7 * 32 + 2 * (3 * 4 + 12 * 32 + 12 + 4 * 96) + 2 * 32 + 2;

fn blocks() -> Blocks {
    "module:Blocks.down.*,module:Blocks.up.*".parse().expect("two paths")
}

fn peak(of: &RecordedStep, step: &StepIr) -> Peak {
    Peak::find(step, &schedule(step, &of.step, &of.graph, &of.ops), Some(9))
}

/// Elements of the first list of the last update of parameters.
fn updated(step: &StepIr) -> i64 {
    let name = "aten::_foreach_addcdiv_";
    let op = step.running().into_iter().rfind(|&op| step.ops[op].name == name).expect("an update");
    let call = step.call(op).expect("a call");
    call.inputs[0].tensors().iter().map(|tensor| tensor.numel() as i64).sum()
}

#[test]
fn named_blocks_are_sharded_as_the_script_shards_them() {
    let (before, after) = (RecordedStep::open("blocks"), RecordedStep::open("blocks_sharded"));
    let rule = FullySharded { blocks: blocks(), ..FullySharded::new(8) };
    let changed = before.after(&[&rule]).expect("it applies");
    let [now, recorded] = [&changed, &after.step].map(|step| launches(step, &before.ops));
    assert_eq!(other(&now, &recorded), [""; 0], "what the rule gives, and what was recorded");
    let [now, recorded] = [peak(&before, &changed), peak(&after, &after.step)];
    for kind in MemoryKind::ALL {
        assert_eq!(now.bytes_of(kind), recorded.bytes_of(kind), "{kind:?}");
    }
}

/// The memory of scalars in the forward pass is reused by scalars in the optimizer's step.
#[test]
fn numbers_of_the_forward_pass_are_no_parameters() {
    let before = RecordedStep::open("blocks");
    let changed = before.after(&[&FullySharded::new(8)]).expect("it applies");
    assert_eq!((updated(&before.step), updated(&changed)), (ALL, PART));
}

#[test]
fn a_recorded_rank_updates_its_parts_and_holds_the_whole_for_a_while() {
    let after = RecordedStep::open("blocks_sharded");
    assert_eq!(updated(&after.step), PART);
    let peak = peak(&after, &after.step);
    // Each of 15 tensors has blocks of 512 bytes.
    for (kind, times) in [(MemoryKind::Parameters, 1), (MemoryKind::Optimizer, 2)] {
        let bytes = (4 * times * PART) as u64;
        assert!((bytes..bytes + 15 * 512 * times as u64).contains(&peak.bytes_of(kind)), "{kind:?}");
    }
    let all = (4 * ALL) as u64;
    assert!(peak.bytes_of(MemoryKind::Activations) > all, "{}", peak.bytes_of(MemoryKind::Activations));
}

#[test]
fn the_model_alone_is_gathered_once() {
    let before = RecordedStep::open("blocks");
    let gathers = |blocks: Blocks| {
        let step = before.after(&[&FullySharded { blocks, ..FullySharded::new(8) }]).expect("it applies");
        counts(&step)["c10d::_allgather_base_"]
    };
    assert_eq!(gathers(Blocks::Whole), 1);
    assert_eq!(gathers(blocks()), 5);
}

#[test]
fn named_blocks_are_computed_again() {
    let before = RecordedStep::open("blocks");
    let rule = |blocks| Checkpoint { segments: None, blocks };
    let Err(Error::NothingToDo { reason }) = before.after(&[&rule(Blocks::Repeated)]) else {
        panic!("none follows another")
    };
    assert!(reason.contains("--blocks"), "{reason}");
    let gelus = |step: &StepIr| counts(step)["aten::gelu"];
    let changed = before.after(&[&rule(blocks())]).expect("it applies");
    assert_eq!((gelus(&before.step), gelus(&changed)), (2, 4));
    let one = before.after(&[&rule("module:Blocks.up.0".parse().expect("a path"))]).expect("it applies");
    assert_eq!(gelus(&one), 3);
    let whole = before.after(&[&rule(Blocks::Whole)]).expect("it applies");
    assert_eq!((gelus(&whole), counts(&whole)["aten::embedding"]), (4, 2));
    let missing = before.after(&[&rule("module:Blocks.up.*,module:Blocks.side".parse().expect("two paths"))]);
    assert!(matches!(missing, Err(Error::NoSuchModule { text }) if text == "Blocks.side"));
}

#[test]
fn copies_over_lists_bring_as_many_numbers_as_recorded() {
    let before = RecordedStep::open("blocks");
    let rule = FullySharded { blocks: blocks(), ..FullySharded::new(8) };
    let changed = before.after(&[&rule]).expect("it applies");
    let listed = |step: &StepIr| -> i64 {
        let copies = step.running().into_iter().filter(|&op| step.ops[op].name == "aten::_to_copy");
        let counts = copies.filter_map(|op| match step.call(op)?.inputs.first() {
            Some(Arg::Tensor(host)) if host.device == steptime_aten::Device::Pinned => {
                Some(host.numel() as i64)
            }
            _ => None,
        });
        counts.sum()
    };
    assert!(listed(&changed) > 0);
    assert_eq!(listed(&changed), listed(&RecordedStep::open("blocks_sharded").step));
}
