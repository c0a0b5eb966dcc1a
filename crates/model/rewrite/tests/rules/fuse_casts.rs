//! Casts of autocast in the kernels beside them.

#[allow(dead_code)]
use crate::common;

use common::{Example, named, open};
use steptime_aten::{Arg, Dtype};
use steptime_rewrite::{Bf16, Error, Facts, FuseCasts, Operators, Rule, apply};
use steptime_step::{OpId, StepIr};

fn after(example: &Example, rules: &[&dyn Rule]) -> Result<StepIr, Error> {
    let mut step = example.step.clone();
    apply(&mut step, rules, &Facts::new(&example.ops, None)).map_err(|refused| refused.source)?;
    Ok(step)
}

/// Types of the inputs and of the results of an op.
fn types(step: &StepIr, op: OpId) -> [Vec<Dtype>; 2] {
    let call = step.call(op).expect("a call");
    [&call.inputs, &call.outputs]
        .map(|args| args.iter().flat_map(Arg::tensors).map(|tensor| tensor.dtype).collect())
}

/// Number of casts on the device, each by an op of its own.
fn casts(step: &StepIr) -> usize {
    let ops = named(step, "aten::_to_copy").into_iter();
    ops.map(|op| types(step, op)).filter(|[from, to]| from[..1] != to[..]).count()
}

#[test]
fn our_operators_read_and_write_16_bits() {
    let example = open("dlrm_default_2048");
    let before = after(&example, &[&Operators, &Bf16]).expect("they apply");
    let step = after(&example, &[&Operators, &Bf16, &FuseCasts]).expect("they apply");
    // The batch's dense values and the gradient of the loss are cast by an op of their own; the parameters by one for all.
    assert_eq!([casts(&before), casts(&step)], [29, 3]);
    let listed = named(&step, "aten::_foreach_copy_");
    assert_eq!(listed.len(), 1);
    assert_eq!(types(&step, listed[0])[0], [[Dtype::Bf16; 12], [Dtype::F32; 12]].concat());
    for name in ["steptime::embedding_bag", "steptime::interaction", "steptime::interaction_backward"] {
        let ops = named(&step, name);
        assert!(!ops.is_empty());
        assert!(ops.iter().all(|&op| types(&step, op)[1] == [Dtype::Bf16]), "{name}");
    }
    for op in named(&step, "steptime::embedding_bag") {
        assert_eq!(types(&step, op)[0][0], Dtype::F32, "tables keep 32 bits");
    }
    for op in named(&step, "steptime::embedding_bag_backward_sgd") {
        assert_eq!(types(&step, op)[0][..2], [Dtype::Bf16, Dtype::F32]);
    }
    for op in named(&step, "aten::cat") {
        assert!(types(&step, op).concat().iter().all(|dtype| *dtype == Dtype::Bf16));
    }
}

#[test]
fn gradients_of_parameters_are_stored_in_32_bits() {
    let example = open("dlrm_default_2048");
    let step = after(&example, &[&Operators, &Bf16, &FuseCasts]).expect("they apply");
    let parameters = 6;
    let wide = |name: &str| {
        let ops = named(&step, name);
        ops.into_iter().filter(|&op| types(&step, op)[1] == [Dtype::F32]).count()
    };
    assert_eq!(wide("aten::mm"), parameters, "gradients of weights");
    assert_eq!(wide("aten::sum"), parameters, "gradients of biases");
    for op in named(&step, "aten::mm") {
        assert_eq!(types(&step, op)[0], [Dtype::Bf16; 2]);
    }
}

#[test]
fn it_follows_other_rules() {
    let example = open("dlrm_default_2048");
    let reason = |rules: &[&dyn Rule]| after(&example, rules).expect_err("it does not apply").to_string();
    assert_eq!(reason(&[&FuseCasts]), "no op casts between f32 and bf16: it follows bf16");
    assert_eq!(reason(&[&Operators, &FuseCasts]), "no op casts between f32 and bf16: it follows bf16");
    assert_eq!(
        reason(&[&Bf16, &FuseCasts]),
        "PyTorch's ops do not read and write both types: it follows operators"
    );
}
