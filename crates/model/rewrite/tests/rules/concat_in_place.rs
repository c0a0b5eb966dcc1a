//! Concatenations whose inputs are stored within the results, and gradients of biases in the pass of the slope.

#[allow(dead_code)]
use crate::common;

use common::{counts, named, open};
use steptime_aten::Arg;
use steptime_rewrite::{ConcatInPlace, Facts, FuseBiasGradients, FuseLinear, Operators, Rule, apply};
use steptime_step::{Peak, schedule};

#[test]
fn inputs_become_columns_of_the_result() {
    let example = open("dlrm_default_2048");
    let facts = Facts::new(&example.ops, None);
    let mut before = example.step.clone();
    apply(&mut before, &[&Operators, &FuseLinear], &facts).expect("they apply");
    let mut step = before.clone();
    let audits = apply(&mut step, &[&ConcatInPlace], &facts).expect("it applies");
    assert_eq!(
        audits[0].why,
        ["2 inputs of 1 concatenation stored within the results; 1 copy of a gradient left out"]
    );
    let joined = named(&step, "steptime::cat_in_place")[0];
    let call = step.call(joined).expect("a call");
    let within = call.inputs[0].tensors();
    let places: Vec<_> =
        within.iter().map(|part| (part.strides.to_vec(), part.offset, part.size(1))).collect();
    assert_eq!(places, [(vec![576, 1], 0, 64), (vec![576, 1], 64, 512)]);
    assert!(step.lower(joined, &example.ops).is_some_and(|lowered| lowered.kernel().is_none()));
    let ids = step.ops[joined].call.as_ref().expect("a call").inputs[0].tensors().to_vec();
    let whole = step.ops[joined].call.as_ref().and_then(|call| call.gives().next()).expect("a result");
    assert!(ids.iter().all(|&part| step.tensors[part].storage == step.tensors[whole].storage));
    // The update reads the columns of the gradient.
    let update = named(&step, "steptime::embedding_bag_backward_sgd")[0];
    let gradient = step.call(update).expect("a call").inputs[0].tensors()[0].clone();
    assert_eq!(gradient.strides[..], [576, 1]);
    let [was, is] = [&before, &step].map(|step| schedule(step, &example.step, &example.graph, &example.ops));
    assert_eq!(was.graph.activities.len() - is.graph.activities.len(), 2);
    let peak = |step, scheduled| Peak::find(step, scheduled, None).total();
    assert!(peak(&step, &is) < peak(&before, &was));
}

#[test]
fn an_input_with_another_reader_is_copied() {
    let example = open("dlrm_default_2048");
    let facts = Facts::new(&example.ops, None);
    let mut step = example.step.clone();
    apply(&mut step, &[&Operators, &FuseLinear], &facts).expect("they apply");
    let cat = named(&step, "aten::cat")[0];
    let part = step.ops[cat].call.as_ref().expect("a call").inputs[0].tensors()[0];
    let loss = named(&step, "aten::sigmoid").into_iter().next().expect("the last activation");
    step.ops[loss].call.as_mut().expect("a call").inputs[0] = Arg::Tensor(part);
    apply(&mut step, &[&ConcatInPlace], &facts).expect("it applies");
    let call = step.call(named(&step, "steptime::cat_in_place")[0]).expect("a call");
    assert_eq!([call.inputs[0].tensors().len(), call.inputs[1].tensors().len()], [1, 1]);
}

#[test]
fn a_bias_gradient_needs_no_kernel_of_its_own() {
    let example = open("dlrm_default_2048");
    let mut step = example.step.clone();
    let rules: [&dyn Rule; 2] = [&FuseLinear, &FuseBiasGradients];
    apply(&mut step, &rules, &Facts::new(&example.ops, None)).expect("they apply");
    let (was, now) = (counts(&example.step), counts(&step));
    let slopes = was["aten::threshold_backward"];
    assert_eq!((now.get("aten::threshold_backward"), now["steptime::slope"]), (None, slopes));
    assert_eq!(was["aten::sum"] - now["aten::sum"], slopes);
}

#[test]
fn they_refuse_steps_without_such_ops() {
    let example = open("resnet50_32");
    let reason = |rule: &dyn Rule| example.after(rule).expect_err("it does not apply").to_string();
    assert!(reason(&ConcatInPlace).starts_with("no concatenation has an input"));
    assert!(reason(&FuseBiasGradients).starts_with("no gradient of a bias is summed"));
}
