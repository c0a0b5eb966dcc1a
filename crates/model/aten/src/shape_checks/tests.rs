//! Calls that fit, and calls that do not.

use serde_json::{Value, json};

use super::check;
use crate::from_query::Query;
use crate::op_set::OpSet;

fn checked(query: &Value) -> Result<(), String> {
    let empty = Vec::new();
    let shapes = query["shapes"].as_array().unwrap_or(&empty);
    let op = query["op"].as_str().unwrap_or_default();
    let query = Query { op, shapes, args: query.get("args"), ..Query::default() };
    check(&query.op_call(&OpSet::standard()).unwrap_or_else(|error| panic!("{op}: {error}")))
        .map_err(|misfit| misfit.to_string())
}

#[test]
fn shapes_that_fit_are_let_through() {
    for query in [
        json!({"op": "aten::mm", "shapes": [[512, 511], [511, 512]]}),
        json!({"op": "aten::addmm", "shapes": [[512], [64, 32], [32, 512]]}),
        json!({"op": "aten::bmm", "shapes": [[8, 3, 4], [8, 4, 5]]}),
        json!({"op": "aten::matmul", "shapes": [[8, 1, 3, 4], [7, 4, 5]]}),
        json!({"op": "aten::matmul", "shapes": [[3, 4], [4]]}),
        json!({"op": "aten::linear", "shapes": [[9, 7, 32], [64, 32], [64]]}),
        json!({"op": "aten::conv2d", "shapes": [[8, 6, 9, 9], [4, 3, 3, 3]], "args": {"groups": 2}}),
        json!({"op": "aten::conv2d", "shapes": [[8, 3, 1, 1], [4, 3, 3, 3]], "args": {"padding": [1, 1]}}),
        json!({"op": "aten::embedding_bag", "shapes": [[100, 16], [400], [40]]}),
        json!({"op": "aten::cat", "shapes": [[[4, 8], [4, 3], [0]]], "args": {"dim": 1}}),
        json!({"op": "aten::add", "shapes": [[8, 1, 3], [5, 1]]}),
        json!({"op": "aten::add_", "shapes": [[8, 5, 3], [5, 1]]}),
        json!({"op": "aten::layer_norm", "shapes": [[8, 5, 3], [5, 3], [5, 3]], "args": {"normalized_shape": [5, 3]}}),
        json!({"op": "aten::scaled_dot_product_attention", "shapes": [[2, 8, 128, 64], [2, 2, 99, 64], [2, 2, 99, 32]]}),
        json!({"op": "aten::gather", "shapes": [[8, 5], [8, 2]], "args": {"dim": 1}}),
    ] {
        assert_eq!(checked(&query), Ok(()), "{query}");
    }
}

#[test]
fn shapes_that_do_not_fit_are_named_with_both_and_a_remedy() {
    for (query, words) in [
        (
            json!({"op": "aten::mm", "shapes": [[512, 512], [511, 512]]}),
            "aten::mm: [512, 512] times [511, 512]: the first has 512 columns, the second 511 rows; both must be the same",
        ),
        (json!({"op": "aten::mm", "shapes": [[2, 3, 4], [4, 5]]}), "must have 2"),
        (
            json!({"op": "aten::addmm", "shapes": [[511], [64, 32], [32, 512]]}),
            "[511] cannot be added to a product of [64, 512]",
        ),
        (json!({"op": "aten::bmm", "shapes": [[8, 3, 4], [7, 4, 5]]}), "8 and 7 matrices"),
        (json!({"op": "aten::matmul", "shapes": [[8, 3, 4], [7, 4, 5]]}), "batches do not broadcast"),
        (json!({"op": "aten::linear", "shapes": [[9, 32], [32, 64]]}), "[features out, features in]"),
        (json!({"op": "aten::linear", "shapes": [[9, 32], [64, 32], [32]]}), "it must be [64]"),
        (
            json!({"op": "aten::conv2d", "shapes": [[8, 3, 9, 9], [4, 5, 3, 3]]}),
            "has 3 channels, and a weight of [4, 5, 3, 3] takes 5",
        ),
        (json!({"op": "aten::conv2d", "shapes": [[8, 3, 2, 2], [4, 3, 5, 5]]}), "a window of 5 is larger"),
        (json!({"op": "aten::embedding", "shapes": [[100], [400]]}), "the table [100] has 1 dimensions"),
        (json!({"op": "aten::embedding_bag", "shapes": [[100, 16], [400, 2], [40]]}), "one list of all bags"),
        (
            json!({"op": "aten::cat", "shapes": [[[4, 8], [5, 8]]], "args": {"dim": 1}}),
            "cannot be joined along dimension 1",
        ),
        (json!({"op": "aten::stack", "shapes": [[[4, 8], [4, 9]]]}), "cannot be stacked"),
        (json!({"op": "aten::add", "shapes": [[8, 4], [8, 5]]}), "[8, 4] and [8, 5] do not broadcast"),
        (json!({"op": "aten::mul_", "shapes": [[1, 4], [8, 4]]}), "does not fit the output of [1, 4]"),
        (
            json!({"op": "aten::layer_norm", "shapes": [[8, 5]], "args": {"normalized_shape": [4]}}),
            "a norm over [4]",
        ),
        (json!({"op": "aten::batch_norm", "shapes": [[8, 5, 3], [4], [4]]}), "it must be [5]"),
        (
            json!({"op": "aten::scaled_dot_product_attention", "shapes": [[2, 8, 128, 64], [2, 8, 128, 32], [2, 8, 128, 64]]}),
            "have a last size of 64 and 32",
        ),
        (json!({"op": "aten::softmax", "shapes": [[8, 5]], "args": {"dim": 2}}), "[8, 5] has no dimension 2"),
        (
            json!({"op": "aten::gather", "shapes": [[8, 5], [9, 2]], "args": {"dim": 1}}),
            "are larger than the input",
        ),
        (json!({"op": "aten::nll_loss", "shapes": [[8, 5], [7]]}), "classes must be [8]"),
        (json!({"op": "aten::group_norm", "shapes": [[8, 5, 3]], "args": {"num_groups": 2}}), "divides them"),
    ] {
        let error = checked(&query).expect_err(&query.to_string());
        assert!(error.contains(words), "{query}: {error}");
    }
}

#[test]
fn every_name_has_one_rule_and_is_an_op() {
    let known = |name: &str| !crate::schema::overloads(&format!("aten::{name}")).is_empty();
    let all = super::RULES.iter().flat_map(|(names, _)| names.iter());
    let unknown: Vec<_> = all.filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let mut names: Vec<&str> = super::RULES.iter().flat_map(|(names, _)| names.iter().copied()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
