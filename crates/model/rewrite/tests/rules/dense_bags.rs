//! Embedding bags whose tables have dense gradients, which an optimizer updates in lists.

use steptime_aten::{Arg, Dtype, OpSet, Tensor};
use steptime_graph::{HostThreadId, OpId as Recorded};
use steptime_rewrite::{Facts, FuseEmbeddingBags, apply};
use steptime_step::{Call, Op, OpId, Origin, StepIr, TensorId};

/// Two tables of 10 and 20 rows of 4 columns, each with 6 lookups in 2 bags, and a weight of 5 elements.
#[derive(Default)]
struct Two {
    step: StepIr,
}

impl Two {
    fn tensor(&mut self, shape: &[i64], dtype: Dtype) -> TensorId {
        let value = Tensor::contiguous(shape, dtype);
        let tensor = steptime_step::Tensor {
            value,
            storage: None,
            recorded: None,
            made: false,
            until: steptime_step::LifetimeEnd::LastUse,
        };
        self.step.tensors.push_and_get_key(tensor)
    }

    fn op(&mut self, name: &str, parent: Option<OpId>, call: Option<[Vec<Arg<TensorId>>; 2]>) -> OpId {
        let thread = HostThreadId::MAIN;
        let at = self.step.ops.push_and_get_key(Op {
            name: name.to_owned(),
            annotation: call.is_none() && name.starts_with("Optimizer"),
            call: call.map(|[inputs, outputs]| Call { inputs, outputs, ..Call::default() }.into()),
            thread,
            parent,
            children: Vec::new(),
            origin: Origin::Recorded(Recorded(0)),
            node: None,
            again: None,
            sequence: None,
            round: 0,
            script: 0.0,
            captured: false,
            ahead: false,
            stream: 0,
            waits: None,
            exchange: None,
        });
        match parent {
            Some(parent) => self.step.ops[parent].children.push(at),
            None => self.step.threads[thread].push(at),
        }
        at
    }
}

fn one(tensor: TensorId) -> Arg<TensorId> {
    Arg::Tensor(tensor)
}

fn two() -> (StepIr, OpId) {
    let mut two = Two::default();
    two.step.threads = vec![Vec::new()].into();
    let (weight, of_weight) = (two.tensor(&[5], Dtype::F32), two.tensor(&[5], Dtype::F32));
    let bags = [10, 20].map(|rows| {
        let (table, gradient) = (two.tensor(&[rows, 4], Dtype::F32), two.tensor(&[rows, 4], Dtype::F32));
        let [indices, offsets, bag_of] = [6, 2, 6].map(|size| two.tensor(&[size], Dtype::I64));
        let (result, back) = (two.tensor(&[2, 4], Dtype::F32), two.tensor(&[2, 4], Dtype::F32));
        let inputs =
            vec![one(table), one(indices), one(offsets), Arg::Bool(false), Arg::Int(0), Arg::Bool(false)];
        two.op("aten::embedding_bag", None, Some([inputs, vec![one(result), one(bag_of)]]));
        (table, gradient, indices, offsets, bag_of, back)
    });
    let backs = bags.map(|bag| one(bag.5)).to_vec();
    two.op("aten::split", None, Some([Vec::new(), backs]));
    for (_, gradient, indices, offsets, bag_of, back) in bags.into_iter().rev() {
        let function = two.op("autograd::engine::evaluate_function: EmbeddingBagBackward0", None, None);
        let inputs = [back, indices, offsets, bag_of].map(one).to_vec();
        two.op("aten::_embedding_bag_backward", Some(function), Some([inputs, vec![one(gradient)]]));
    }
    let label = two.op("Optimizer.step#SGD.step", None, None);
    let list = |tensors: [TensorId; 3]| Arg::Tensors(tensors.to_vec());
    let inputs = vec![
        list([weight, bags[0].0, bags[1].0]),
        list([of_weight, bags[0].1, bags[1].1]),
        Arg::Float(-0.01),
    ];
    let update = two.op("aten::_foreach_add_", Some(label), Some([inputs, Vec::new()]));
    (two.step, update)
}

#[test]
fn lists_get_shorter() {
    let (mut step, update) = two();
    let ops = OpSet::standard();
    apply(&mut step, &[&FuseEmbeddingBags], &Facts::new(&ops, None)).expect("it applies");
    let call = step.call(update).expect("a call");
    let shapes = |arg: &Arg| arg.tensors().iter().map(|tensor| tensor.shape.to_vec()).collect::<Vec<_>>();
    assert_eq!(shapes(&call.inputs[0]), [vec![5], vec![30, 4]]);
    assert_eq!(shapes(&call.inputs[1]), [vec![5], vec![30, 4]]);
    let bags = step.running().into_iter().filter(|&op| step.ops[op].name == "aten::embedding_bag").count();
    assert_eq!(bags, 1);
}
