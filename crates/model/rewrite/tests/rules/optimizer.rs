//! Optimizers in another form.

use crate::common;

use common::{counts, named, open, takes};
use steptime_aten::optimizer::Form;
use steptime_graph::Blocking;
use steptime_rewrite::{Error, Optimizer, Rule};
use steptime_step::{OpId, StepIr, schedule};

const PARAMETERS: usize = 161;

fn inside(step: &StepIr) -> Vec<&str> {
    let label = step.running().into_iter().find(|&op| step.ops[op].name.starts_with("Optimizer.step#"));
    let children = &step.ops[label.expect("an optimizer")].children;
    children.iter().map(|&op| &*step.ops[op].name).collect()
}

fn tensors(step: &StepIr, op: OpId, arg: usize) -> Vec<steptime_step::TensorId> {
    step.ops[op].call.as_ref().expect("a call").inputs[arg].tensors().to_vec()
}

#[test]
fn lists_become_one_op() {
    let example = open("resnet50_32");
    let lists = inside(&example.step);
    assert_eq!(lists, ["aten::_foreach_mul_", "aten::_foreach_add_", "aten::_foreach_add_"]);
    let fused = example.after(&Optimizer { form: Form::Fused }).expect("it applies");
    assert_eq!(inside(&fused), ["aten::_fused_sgd_"]);
    let (op, update) = (named(&fused, "aten::_fused_sgd_")[0], named(&example.step, "aten::_foreach_add_"));
    assert_eq!(takes(&fused, op).len(), 3 * PARAMETERS);
    // Parameters, gradients, momenta.
    assert_eq!(tensors(&fused, op, 0), tensors(&example.step, update[1], 0));
    assert_eq!(tensors(&fused, op, 1), tensors(&example.step, update[0], 1));
    assert_eq!(tensors(&fused, op, 2), tensors(&example.step, update[0], 0));
}

#[test]
fn one_by_one_and_back() {
    let mut example = open("resnet50_32");
    let before: Vec<String> = inside(&example.step).into_iter().map(str::to_owned).collect();
    let momenta = tensors(&example.step, named(&example.step, "aten::_foreach_mul_")[0], 0);
    let each = example.after(&Optimizer { form: Form::Loop }).expect("it applies");
    assert_eq!(inside(&each).len(), 3 * PARAMETERS);
    assert_eq!(inside(&each)[..4], ["aten::mul_", "aten::add_", "aten::add_", "aten::mul_"]);
    let after = schedule(&each, &example.step, &example.graph, &example.ops);
    let launches =
        |graph: &steptime_graph::StepGraph| graph.calls.iter().filter(|call| call.has_activities()).count();
    assert!(launches(&after.graph) > launches(&example.graph) + 2 * PARAMETERS);
    assert!(after.graph.calls.iter().filter(|call| call.blocking != Blocking::Never).count() < 40);
    example.step = each;
    let back = example.after(&Optimizer { form: Form::Foreach }).expect("it applies");
    assert_eq!(inside(&back), before);
    assert_eq!(tensors(&back, named(&back, "aten::_foreach_mul_")[0], 0), momenta);
    assert_eq!(counts(&back)["aten::_foreach_add_"], 2);
}

#[test]
fn the_same_form_is_an_error() {
    let rule = Optimizer { form: Form::Foreach };
    let error = open("resnet50_32").after(&rule).unwrap_err();
    assert!(matches!(error, Error::NothingToDo { .. }), "{error}");
    assert_eq!(Optimizer { form: Form::Fused }.name(), "fuse-optimizer");
}

#[test]
fn rows_as_gradients_cannot_be_fused() {
    for form in [Form::Fused, Form::Foreach] {
        let error = open("dlrm_default_2048").after(&Optimizer { form }).unwrap_err();
        assert_eq!(error, Error::SparseGradients { name: "SGD".to_owned() });
        assert!(error.to_string().contains("rejects fused=True"), "{error}");
    }
    let already = open("dlrm_default_2048").after(&Optimizer { form: Form::Loop }).unwrap_err();
    assert!(matches!(already, Error::NothingToDo { .. }), "{already}");
}

#[test]
fn an_optimizer_that_is_not_known_is_an_error() {
    let mut example = open("resnet50_32");
    for op in &mut example.step.ops {
        op.name = op.name.replace("#SGD.", "#Lion.");
    }
    let error = example.after(&Optimizer { form: Form::Fused }).unwrap_err();
    assert_eq!(error, Error::UnknownOptimizer { name: "Lion".to_owned() });
}
