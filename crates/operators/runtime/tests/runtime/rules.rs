//! Steps changed by rules: they run, with the same losses within rounding.

use steptime_aten::Arg;
use steptime_aten::optimizer::Form;
use steptime_rewrite::{
    Bf16, CudaGraph, DenseOperators, Facts, FuseCasts, FuseCrossEntropy, FuseLinear, FusePointwise,
    Operators, Optimizer, PrefetchInputs, Rule, Tf32, apply,
};
use steptime_runtime::{DescribedStep, Program, Reuse, Target};
use steptime_step::{Call, NewOp, OpId, Patch, Place, TensorId};

use crate::common::{described, largest, losses, names, session, shipped};
use crate::losses::references;

/// Largest relative difference of a loss in 60 steps.
const NEAR: f64 = 1e-4;

#[test]
fn losses_are_the_same_after_rules() {
    let fused = Optimizer { form: Form::Fused };
    let foreach = Optimizer { form: Form::Foreach };
    let rules: [(&str, Vec<&dyn Rule>); 11] = [
        ("operators", vec![&Operators]),
        ("dense gradients", vec![&DenseOperators]),
        ("fuse-linear", vec![&FuseLinear]),
        ("optimizer fused", vec![&fused]),
        ("optimizer foreach", vec![&foreach]),
        ("prefetch-inputs", vec![&PrefetchInputs]),
        ("tf32", vec![&Tf32]),
        ("cuda-graph", vec![&CudaGraph]),
        ("fuse-elementwise", vec![&FusePointwise]),
        ("operators, fuse-linear, fuse-elementwise", vec![&Operators, &FuseLinear, &FusePointwise]),
        ("operators, fuse-linear, prefetch-inputs", vec![&Operators, &FuseLinear, &PrefetchInputs]),
    ];
    let mut applied = [0; 11];
    for reference in references() {
        let program = Program::new(&described(&reference.model, &[])).expect("it compiles");
        let numbers = reference.numbers(&program);
        let plain = losses(&mut session(program, 1, numbers), &reference.model, 60);
        for (at, (name, rules)) in rules.iter().enumerate() {
            let adam = reference.name.contains("towers") || reference.name.contains("wide");
            if adam && name.contains("operators") {
                // Adam of the operators moves only rows that were looked up.
                continue;
            }
            let mut step = DescribedStep::new(&reference.model).expect("a step");
            let ops = step.ops().clone();
            let facts = Facts::new(&ops, Some(reference.model.batch()));
            if apply(&mut step.step, rules, &facts).is_err() {
                continue;
            }
            applied[at] += 1;
            let program =
                Program::new(&step).unwrap_or_else(|error| panic!("{} {name}: {error}", reference.name));
            let own = losses(&mut session(program, 1, numbers), &reference.model, 60);
            let relative = |(own, plain): (&f32, &f32)| f64::from((own - plain) / plain).abs();
            let difference = largest(own.iter().zip(&plain).map(relative));
            assert!(difference <= NEAR, "{} {name}: {difference:e}", reference.name);
        }
    }
    println!("{applied:?}");
    assert!(applied.iter().all(|&count| count > 0), "{applied:?}");
}

/// Names of the instructions of a step on a GPU, with the shapes of their operands.
fn instructions(step: &DescribedStep, name: &str) -> Vec<Vec<Vec<i64>>> {
    let program = Program::for_target(step, Target::Cuda, Reuse::ByLifetime).expect("it compiles");
    let shape = |tensor: TensorId| step.step.tensors[tensor].value.shape.to_vec();
    let of_name = program.instructions().iter().filter(|own| own.name == name);
    of_name.map(|own| own.tensors().map(shape).collect()).collect()
}

#[test]
fn tables_whose_results_two_concatenations_take_have_one_call() {
    let model = shipped("deepfm");
    let batch = model.batch() as i64;
    let step = described(&model, &[&Operators]);
    let bags = instructions(&step, "steptime::embedding_bag");
    let results: Vec<_> = bags.iter().map(|shapes| shapes.last().expect("a result").clone()).collect();
    assert_eq!(results, [[batch, 26], [batch, 416]]);
    assert_eq!(instructions(&step, "steptime::embedding_bag_backward_sgd").len(), 2);
    // The gradients of both concatenations are added once, and no indices are copied.
    let sums = instructions(&step, "aten::add");
    assert!(sums.contains(&vec![vec![batch, 416]; 3]), "{sums:?}");
    assert!(!sums.iter().flatten().any(|shape| shape[..] == [batch, 16]), "{sums:?}");
    let cats = instructions(&step, "aten::cat");
    assert_eq!(cats, [vec![vec![batch, 13], vec![batch, 416], vec![batch, 429]]]);
}

#[test]
fn dense_gradients_of_several_tables_have_one_call() {
    let model = shipped("wide_and_deep");
    let batch = model.batch() as i64;
    let step = described(&model, &[&DenseOperators]);
    let bags = instructions(&step, "steptime::embedding_bag");
    let results: Vec<_> = bags.iter().map(|shapes| shapes.last().expect("a result").clone()).collect();
    assert_eq!(results, [[batch, 16], [batch, 512]]);
    let gradients = instructions(&step, "steptime::embedding_bag_dense_backward");
    let mut results: Vec<_> = gradients.iter().map(|shapes| shapes[3..].to_vec()).collect();
    results.sort_unstable();
    assert_eq!(results, [vec![vec![100_000, 1]; 16], vec![vec![100_000, 32]; 16]]);
    for gone in ["aten::embedding_bag", "aten::_embedding_bag_dense_backward"] {
        assert_eq!(instructions(&step, gone).len(), 0, "{gone}");
    }
    // The gradient of a sum is one column for all, and that of the features begins behind 13 dense ones.
    assert_eq!(instructions(&step, "aten::clone"), [512, 16].map(|width| [[batch, width]; 2]));
}

#[test]
fn dense_gradients_of_several_tables_have_the_bits_of_single_ones() {
    let mut compared = 0;
    for reference in references() {
        let plain = described(&reference.model, &[]);
        let mut joined = plain.clone();
        let ops = joined.ops().clone();
        let facts = Facts::new(&ops, Some(reference.model.batch()));
        if apply(&mut joined.step, &[&DenseOperators], &facts).is_err() {
            continue;
        }
        let names = |name: &str| joined.step.running().into_iter().any(|op| joined.step.ops[op].name == name);
        // Its sums are rounded in another order.
        if names("steptime::interaction") {
            continue;
        }
        assert!(names("steptime::embedding_bag_dense_backward"), "{}", reference.name);
        let run = |step: &DescribedStep| {
            let program = Program::new(step).expect("it compiles");
            let numbers = reference.numbers(&program);
            let mut session = session(program, 2, numbers);
            let mut bits: Vec<u32> =
                losses(&mut session, &reference.model, 20).iter().map(|loss| loss.to_bits()).collect();
            for tensor in session.tensors() {
                bits.extend(session.read(&tensor.name).expect("a tensor").iter().map(|x| x.to_bits()));
            }
            bits
        };
        assert!(run(&plain) == run(&joined), "{}", reference.name);
        compared += 1;
    }
    assert!(compared >= 2, "{compared}");
}

#[test]
fn cross_entropy_of_a_matrix_of_scores_is_two_passes() {
    let model = shipped("two_towers");
    let batch = model.batch() as i64;
    for rules in [&[&Operators as &dyn Rule][..], &[&Operators, &Bf16, &FuseCasts]] {
        let step = described(&model, rules);
        let [forward, backward] = ["steptime::cross_entropy", "steptime::cross_entropy_backward"]
            .map(|name| instructions(&step, name));
        assert_eq!([forward.len(), backward.len()], [1, 1]);
        assert_eq!([&forward[0][0], backward[0].last().expect("a result")], [&[batch, batch]; 2]);
        let program = Program::for_target(&step, Target::Cuda, Reuse::ByLifetime).expect("it compiles");
        let names: Vec<&str> = program.instructions().iter().map(|own| &*own.name).collect();
        let gone = ["aten::_log_softmax", "aten::nll_loss_forward", "aten::nll_loss_backward"];
        assert!(names.iter().all(|name| !gone.contains(name)), "{names:?}");
        // The product writes the scores, both passes read them, and the product of the gradients reads the last matrix.
        let square = |tensor: TensorId| step.step.tensors[tensor].value.shape[..] == [batch, batch];
        let uses = program.instructions().iter().flat_map(|own| own.tensors().filter(|&one| square(one)));
        assert_eq!(uses.count(), 5, "{program}");
    }
}

#[test]
fn the_rule_of_the_prediction_finds_the_same_cross_entropies() {
    let mut all = 0;
    for name in names() {
        let model = shipped(&name);
        for rules in [&[][..], &[&Bf16 as &dyn Rule], &[&Operators, &Bf16, &FuseCasts]] {
            let mut step = DescribedStep::new(&model).expect("a step");
            let ops = step.ops().clone();
            let facts = Facts::new(&ops, Some(model.batch()));
            if apply(&mut step.step, rules, &facts).is_err() {
                continue;
            }
            let Ok(program) = Program::for_target(&step, Target::Cuda, Reuse::ByLifetime) else { continue };
            let count = |name: &str| program.instructions().iter().filter(|own| own.name == name).count();
            let run = [count("steptime::cross_entropy"), count("steptime::cross_entropy_backward")];
            let mut changed = step.step.clone();
            let applied = apply(&mut changed, &[&FuseCrossEntropy], &facts).is_ok();
            let predicted =
                |name: &str| changed.running().into_iter().filter(|&op| changed.ops[op].name == name).count();
            let predicted =
                [predicted("steptime::cross_entropy"), predicted("steptime::cross_entropy_backward")];
            assert_eq!((predicted, applied), (run, run[0] > 0), "{name}");
            // The product of the scores, both passes and both products of their gradients use a square matrix.
            let batch = model.batch() as i64;
            let square = |op: OpId| {
                let row = &changed.ops[op];
                let call =
                    row.call.as_deref().filter(|_| row.children.is_empty() && !row.name.ends_with("::t"));
                let is_view = ["aten::as_strided", "aten::view"].contains(&&*row.name);
                call.filter(|_| !is_view).map_or(0, |call| {
                    let tensors = call.takes().chain(call.gives());
                    tensors.filter(|&one| changed.tensors[one].value.shape[..] == [batch, batch]).count()
                })
            };
            if applied {
                let uses: usize = changed.running().into_iter().map(square).sum();
                assert_eq!(uses, 6, "{name}");
                all += 1;
            }
        }
    }
    assert!(all >= 3, "{all}");
}

/// The first op of a name.
fn named(step: &DescribedStep, name: &str) -> OpId {
    let found = step.step.running().into_iter().find(|&op| step.step.ops[op].name == name);
    found.expect("an op")
}

#[test]
fn logarithms_that_others_read_stay() {
    let mut step = described(&shipped("two_towers"), &[&Operators]);
    let softmax = named(&step, "aten::_log_softmax");
    let result =
        step.step.ops[softmax].call.as_deref().and_then(|call| call.gives().next()).expect("a result");
    let mut patch = Patch::new("test");
    let negated = patch.tensor(&step.step, step.step.tensors[result].value.clone());
    let (inputs, outputs) = (vec![Arg::Tensor(result)], vec![Arg::Tensor(negated)]);
    let call = Call { inputs, outputs, ..Call::default() };
    patch.insert.push((Place::After(step.step.outermost(softmax)), NewOp::new("aten::neg", call)));
    step.step = step.step.applied_in_turn(&[patch], &step.ops().clone()).expect("a step");
    assert_eq!(instructions(&step, "aten::_log_softmax").len(), 1);
    assert!(instructions(&step, "steptime::cross_entropy").is_empty());
}

#[test]
fn other_divisors_of_scores_and_gradients_stay_divisions() {
    let mut step = described(&shipped("two_towers"), &[&Operators]);
    let divisions = instructions(&step, "aten::div").len();
    let softmax = named(&step, "aten::_log_softmax_backward_data");
    let result =
        step.step.ops[softmax].call.as_deref().and_then(|call| call.gives().next()).expect("a result");
    let takes = |op: &OpId| {
        let call = step.step.ops[*op].call.as_deref();
        &*step.step.ops[*op].name == "aten::div"
            && call.is_some_and(|call| call.takes().next() == Some(result))
    };
    let division = step.step.running().into_iter().find(takes).expect("a division");
    step.step.ops[division].call.as_mut().expect("a call").inputs[1] = Arg::Float(0.125);
    assert_eq!(instructions(&step, "steptime::cross_entropy_backward").len(), 1);
    assert_eq!(instructions(&step, "aten::div").len(), divisions + 2);
}

#[test]
fn a_result_with_another_reader_has_its_own_call() {
    let mut step = DescribedStep::new(&shipped("deepfm")).expect("a step");
    let named = |step: &DescribedStep, name: &str| -> Vec<OpId> {
        step.step.running().into_iter().filter(|&op| step.step.ops[op].name == name).collect()
    };
    // The vector of one table is multiplied with itself, in place of the sum of all.
    let table = named(&step, "aten::embedding_bag")[30];
    let result = step.step.ops[table].call.as_deref().and_then(|call| call.gives().next()).expect("a result");
    let square = named(&step, "aten::mul")[0];
    let call = step.step.ops[square].call.as_mut().expect("a call");
    call.inputs.iter_mut().for_each(|input| *input = Arg::Tensor(result));
    let ops = step.ops().clone();
    let facts = Facts::new(&ops, None);
    let audits = apply(&mut step.step, &[&Operators], &facts).expect("it applies");
    assert!(audits[0].why.iter().all(|why| !why.contains("concatenations")), "{audits:?}");
}
