//! Embedding tables and dot interaction by the operators of `steptime.operators`.

use crate::common;

use common::{counts, named, open, takes};
use steptime_aten::Arg;
use steptime_rewrite::{DenseOperators, Error, Facts, Fbgemm, FuseEmbeddingBags, Operators, Rule};
use steptime_step::{Draft, OpId, StepIr, Uses, schedule};

const BATCH: i64 = 2048;

/// Names of an op and of the ops inside it, each with the sizes of its results, without an optimizer's name.
fn inside(step: &StepIr, op: OpId) -> Vec<String> {
    let name = |op: OpId| step.ops[op].name.split("backward_").next().unwrap_or_default().to_owned();
    step.subtree(op).into_iter().map(name).collect()
}

#[test]
fn the_calls_are_those_of_a_recording_with_the_operators() {
    let recorded = open("operators/dlrm_8192").step;
    let derived = open("dlrm_mlperf_2048").after(&Operators).expect("it applies");
    for name in ["_Pool", "_PoolBackward", "_Interaction", "_InteractionBackward"] {
        let [here, there] = [&derived, &recorded].map(|step| named(step, name));
        assert_eq!((here.len(), there.len()), (1, 1), "{name}");
        assert_eq!(inside(&derived, here[0]), inside(&recorded, there[0]));
    }
}

#[test]
fn all_tables_are_one_call() {
    for (name, tables, width) in
        [("dlrm_default_2048", 8, 64), ("dlrm_ddp_2048", 8, 128), ("dlrm_mlperf_2048", 26, 128)]
    {
        let example = open(name);
        let before = counts(&example.step);
        let step = example.after(&Operators).expect("it applies");
        let after = counts(&step);
        for gone in [
            "aten::embedding_bag",
            "EmbeddingBagBackward0",
            "aten::index_add_",
            "IndexBackward0",
            "BmmBackward0",
        ] {
            assert!(before.contains_key(gone) && !after.contains_key(gone), "{gone} in {name}");
        }
        // Indices and offsets have one copy each.
        assert_eq!(before["aten::_to_copy"] - after["aten::_to_copy"], 2 * (tables - 1));
        // One gradient stays: that of the anchor tensor of the call.
        let accumulate = "torch::autograd::AccumulateGrad";
        assert_eq!(before[accumulate] - after[accumulate], tables - 1);
        let bags = named(&example.step, "aten::embedding_bag");
        let lookups: i64 = bags.iter().map(|&op| takes(&example.step, op)[1][0]).sum();
        let shapes = takes(&step, named(&step, "steptime::embedding_bag")[0]);
        let offsets = BATCH * tables as i64 + 1;
        assert_eq!(shapes[tables..], [vec![lookups], vec![offsets]]);
        let backward = takes(&step, named(&step, "steptime::embedding_bag_backward_sgd")[0]);
        assert_eq!(backward[0], [BATCH, tables as i64 * width]);
        let vectors = [BATCH, tables as i64 + 1, width];
        assert_eq!(takes(&step, named(&step, "steptime::interaction")[0]), [vectors]);
        let bottom = named(&step, "aten::cat")[0];
        assert_eq!(takes(&step, bottom), [vec![BATCH, width], vec![BATCH, tables as i64 * width]]);
    }
}

#[test]
fn what_runs_is_fewer_kernels() {
    let example = open("dlrm_default_2048");
    let step = example.after(&Operators).expect("it applies");
    let after = schedule(&step, &example.step, &example.graph, &example.ops);
    let tables = 8;
    // Per table two copies, the lookup, its gradient and its update: one copy of indices and one of offsets stay.
    assert!(after.graph.activities.len() + 5 * tables - 10 < example.graph.activities.len());
    assert!(named(&step, "aten::add_").len() < named(&example.step, "aten::add_").len());
}

#[test]
fn sparse_gradients_are_not_made_dense() {
    let example = open("dlrm_default_2048");
    let step = example.after(&DenseOperators).expect("the interaction becomes one call");
    assert_eq!(counts(&step)["aten::embedding_bag"], 8);
    assert_eq!(counts(&step)["steptime::interaction"], 1);
}

#[test]
fn a_table_that_others_use_stays() {
    let mut example = open("dlrm_default_2048");
    let bag = named(&example.step, "aten::embedding_bag")[3];
    let table = example.step.ops[bag].call.as_ref().and_then(|call| call.inputs.first().cloned());
    let relu = named(&example.step, "aten::relu")[0];
    let call = example.step.ops[relu].call.as_mut().expect("a call");
    call.inputs = table.into_iter().collect();
    let step = example.after(&Operators).expect("it applies");
    assert_eq!(named(&step, "aten::embedding_bag"), [bag]);
    // The other tables are on either side of its result.
    let calls = named(&step, "steptime::embedding_bag");
    let tables =
        calls.iter().map(|&op| step.ops[op].call.as_ref().map_or(0, |call| call.inputs[0].tensors().len()));
    assert_eq!(tables.collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn a_padding_row_is_named() {
    let mut example = open("dlrm_default_2048");
    for bag in named(&example.step, "aten::embedding_bag") {
        let call = example.step.ops[bag].call.as_mut().expect("a call");
        call.inputs[8] = Arg::Int(0);
    }
    for op in named(&example.step, "aten::bmm") {
        example.step.ops[op].name = "aten::baddbmm".to_owned();
    }
    let error = example.after(&Operators).unwrap_err().to_string();
    assert_eq!(error, "the table of 1000000 x 64 has a padding row");
}

#[test]
fn twice_or_without_tables_is_an_error() {
    let mut example = open("dlrm_default_2048");
    example.step = example.after(&Operators).expect("it applies");
    for example in [example, open("resnet50_32")] {
        let error = example.after(&Operators).unwrap_err();
        assert!(
            matches!(&error, Error::NothingToDo { reason } if reason.starts_with("no embedding table")),
            "{error}"
        );
    }
}

#[test]
fn who_uses_tensors_is_kept_up_patch_by_patch() {
    let rules: [&dyn Rule; 3] = [&Operators, &Fbgemm, &FuseEmbeddingBags];
    for (name, rule) in ["dlrm_default_2048", "dlrm_mlperf_2048", "probed/din_4096"]
        .into_iter()
        .flat_map(|name| rules.map(|rule| (name, rule)))
    {
        let example = open(name);
        let facts = Facts::new(&example.ops, None);
        let Ok(patches) = rule.patches(&example.step, &facts) else { continue };
        let mut draft = Draft::from_step(&example.step);
        for patch in &patches {
            draft.patch(patch).expect("its ops are there");
            let uses = Uses::find(draft.step());
            for tensor in draft.step().tensors.keys() {
                assert_eq!(draft.uses().producer(tensor), uses.producer(tensor), "{tensor:?} in {name}");
                assert_eq!(draft.uses().consumers(tensor), uses.consumers(tensor), "{tensor:?} in {name}");
            }
        }
        let checked = example.step.applied_in_turn(&patches, &example.ops).expect("it is a step");
        assert_eq!(draft.step().running(), checked.running(), "{name}");
        for op in checked.running() {
            assert_eq!(draft.step().ops[op], checked.ops[op], "{name}");
        }
    }
}
