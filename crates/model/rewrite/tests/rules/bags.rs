//! Fused embedding bags.

use crate::common;

use common::{Example, counts, named, open, takes};
use steptime_rewrite::{Error, FuseEmbeddingBags};
use steptime_step::{Diff, schedule};

const BATCH: i64 = 2048;

/// One chain is left, with the sizes of all bags, and the result is split and joined again.
fn one_is_left(example: &Example, bags: usize, width: i64) {
    let before = counts(&example.step);
    let fused = example.after(&FuseEmbeddingBags).expect("it applies");
    let after = counts(&fused);
    assert_eq!(before["aten::embedding_bag"], bags);
    for name in [
        "aten::embedding_bag",
        "EmbeddingBagBackward0",
        "UnbindBackward0",
        "aten::unbind",
        "aten::_embedding_bag_sparse_backward",
        "aten::index_add_",
    ] {
        assert_eq!(after[name], 1, "{name}");
    }
    for name in ["torch::autograd::AccumulateGrad", "aten::_nnz"] {
        assert_eq!(before[name] - after[name], bags - 1, "{name}");
    }
    // Indices and offsets.
    assert_eq!(before["aten::_to_copy"] - after["aten::_to_copy"], 2 * (bags - 1));
    let tables = named(&example.step, "aten::embedding_bag");
    let shapes: Vec<Vec<Vec<i64>>> = tables.iter().map(|&op| takes(&example.step, op)).collect();
    let sum = |arg: usize| shapes.iter().map(|shapes| shapes[arg][0]).sum::<i64>();
    let all = BATCH * bags as i64;
    let bag = named(&fused, "aten::embedding_bag")[0];
    assert_eq!(takes(&fused, bag), [vec![sum(0), width], vec![sum(1)], vec![all]]);
    let update = named(&fused, "aten::index_add_")[0];
    assert_eq!(takes(&fused, update), [vec![sum(0), width], vec![sum(1)], vec![sum(1), width]]);
    let stack = named(&fused, "aten::stack")[0];
    assert_eq!(takes(&fused, stack), vec![vec![BATCH, width]; bags]);
}

#[test]
fn of_tables_of_the_same_size() {
    one_is_left(&open("dlrm_default_2048"), 8, 64);
    one_is_left(&open("dlrm_ddp_2048"), 8, 128);
}

#[test]
fn of_tables_of_many_sizes() {
    one_is_left(&open("dlrm_mlperf_2048"), 26, 128);
}

#[test]
fn what_runs_is_one_bag_less_for_each() {
    let example = open("dlrm_default_2048");
    let fused = example.after(&FuseEmbeddingBags).expect("it applies");
    let after = schedule(&fused, &example.step, &example.graph, &example.ops);
    // Per bag two copies, the lookup, its gradient and the update, and a `cat` of the gradients.
    assert_eq!(after.graph.activities.len() + 7 * 5 - 1, example.graph.activities.len());
    let [removed, inserted, _] = Diff::between(&example.step, &fused).counts();
    assert_eq!((removed, inserted), (7 * 6, 4));
}

#[test]
fn twice_is_an_error() {
    let mut example = open("dlrm_default_2048");
    example.step = example.after(&FuseEmbeddingBags).expect("it applies");
    assert_eq!(example.after(&FuseEmbeddingBags).unwrap_err(), Error::NoBags { found: 1 });
    let none = open("resnet50_32").after(&FuseEmbeddingBags).unwrap_err();
    assert_eq!(none, Error::NoBags { found: 0 });
}

#[test]
fn a_table_that_others_use_stays() {
    let mut example = open("dlrm_default_2048");
    let bag = named(&example.step, "aten::embedding_bag")[0];
    let table = example.step.ops[bag].call.as_ref().and_then(|call| call.inputs.first().cloned());
    let relu = named(&example.step, "aten::relu")[0];
    let call = example.step.ops[relu].call.as_mut().expect("a call");
    call.inputs = table.into_iter().collect();
    let error = example.after(&FuseEmbeddingBags).unwrap_err();
    assert_eq!(error, Error::BagShared { op: "aten::relu".to_owned(), shape: vec![1_000_000, 64] });
}

#[test]
fn bags_may_share_where_they_begin() {
    let mut example = open("dlrm_default_2048");
    let bags = named(&example.step, "aten::embedding_bag");
    let offsets = |op: steptime_step::OpId| {
        let call = example.step.ops[op].call.as_ref().expect("a call");
        call.inputs[2].tensors()[0]
    };
    let own: Vec<_> = bags.iter().map(|&op| offsets(op)).collect();
    let names = ["aten::embedding_bag", "aten::_embedding_bag", "aten::_embedding_bag_backward"];
    let ops: Vec<_> = names.iter().flat_map(|name| named(&example.step, name)).collect();
    for op in ops {
        let call = example.step.ops[op].call.as_mut().expect("a call");
        for arg in &mut call.inputs {
            *arg = arg.map(|tensor| if own.contains(tensor) { own[0] } else { *tensor });
        }
    }
    let fused = example.after(&FuseEmbeddingBags).expect("it applies");
    let bag = named(&fused, "aten::embedding_bag")[0];
    assert_eq!(takes(&fused, bag)[2], [8 * BATCH]);
    assert_eq!(counts(&example.step)["aten::_to_copy"] - counts(&fused)["aten::_to_copy"], 7);
}
