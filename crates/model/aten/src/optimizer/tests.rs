//! Sequences of ops, as recorded.

use super::*;
use crate::{Lowering, OpSet};

fn dense(shape: &[i64]) -> Parameter {
    Parameter { tensor: Tensor::contiguous(shape, Dtype::F32), gradient: Gradient::Dense }
}

fn table() -> Parameter {
    let gradient = Gradient::Sparse { lookups: 2560, distinct: 2010 };
    Parameter { tensor: Tensor::contiguous(&[5000, 64], Dtype::F32), gradient }
}

fn names(calls: &[OpCall]) -> Vec<&str> {
    calls.iter().map(|call| call.name.trim_start_matches("aten::")).collect()
}

fn optimizer(rule: Rule, form: Form) -> Optimizer {
    Optimizer { rule, weight_decay: false, form }
}

const ADAM: Rule = Rule::Adam { amsgrad: false };

#[test]
fn adam_over_lists_is_seven_ops_and_a_count() {
    let calls = step(&optimizer(ADAM, Form::Foreach), &[dense(&[64, 64]), dense(&[64])]);
    let expected = ["add_", "lerp_", "mul_", "addcmul_", "sqrt", "div_", "add_", "addcdiv_"];
    assert_eq!(names(&calls), expected.map(|name| format!("_foreach_{name}")));
    let work = |call: &OpCall| matches!(OpSet::standard().lower(call), Lowering::Kernel(_));
    assert_eq!(calls.iter().filter(|call| work(call)).count(), 7);
}

#[test]
fn adam_by_itself_launches_as_many() {
    let calls = step(&optimizer(ADAM, Form::Loop), &[dense(&[64, 64])]);
    let expected = ["add_", "lerp_", "mul_", "addcmul_", "sqrt", "div", "add_", "addcdiv_"];
    assert_eq!(names(&calls), expected);
    let work = |call: &OpCall| matches!(OpSet::standard().lower(call), Lowering::Kernel(_));
    assert_eq!(calls.iter().filter(|call| work(call)).count(), 7);
}

#[test]
fn a_fused_step_is_one_op_and_a_count() {
    let calls = step(&optimizer(ADAM, Form::Fused), &[dense(&[64, 64])]);
    assert_eq!(names(&calls), ["_foreach_add_", "_fused_adam_"]);
}

#[test]
fn a_table_makes_all_go_one_by_one() {
    let rule = Rule::Sgd { momentum: false, nesterov: false };
    let calls = step(&optimizer(rule, Form::Foreach), &[dense(&[64]), table()]);
    assert_eq!(names(&calls), ["add_", "index_add_"]);
    assert_eq!(calls[1].tensor_at(2).map(Tensor::numel), Some(2560));
}

#[test]
fn adagrad_on_a_table_coalesces() {
    let calls = step(&optimizer(Rule::Adagrad, Form::Loop), &[table()]);
    let expected = [
        "add_",
        "_coalesce",
        "clone",
        "pow",
        "index_add_",
        "fill_",
        "index",
        "clone",
        "mul",
        "sqrt_",
        "add_",
        "div",
        "index_add_",
    ];
    assert_eq!(names(&calls), expected);
    for call in calls.iter().filter(|call| !call.name.ends_with("clone")).skip(1) {
        assert!(matches!(OpSet::standard().lower(call), Lowering::Kernel(_)), "{}", call.name);
    }
}
