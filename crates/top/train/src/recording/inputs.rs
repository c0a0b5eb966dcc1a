//! Arguments of an op, in the lists of PyTorch's profiler.

use serde::Serialize;
use serde_json::{Value, json};
use steptime_aten::{Arg, Tensor};
use steptime_runtime::Instruction;
use steptime_step::{StepIr, TensorId};

/// Lists with one item an argument.
#[derive(Debug, Default, Serialize)]
pub struct Inputs {
    /// Shape of a tensor, shapes of a list of tensors; empty for other arguments.
    #[serde(rename = "Input Dims")]
    dims: Vec<Value>,
    /// Strides in elements, likewise.
    #[serde(rename = "Input Strides")]
    strides: Vec<Value>,
    /// Type of a tensor's elements, or kind of the argument.
    #[serde(rename = "Input type")]
    types: Vec<&'static str>,
    /// Value of an argument that is not a tensor.
    #[serde(rename = "Concrete Inputs")]
    values: Vec<String>,
}

impl Inputs {
    /// The arguments of an instruction: those of its op, or of several ops in one the tensors that it uses.
    pub fn new(step: &StepIr, instruction: &Instruction) -> Inputs {
        let row = &step.ops[instruction.op];
        let mut inputs = Inputs::default();
        match row.call.as_deref().filter(|_| row.name == instruction.name) {
            Some(call) => call.inputs.iter().for_each(|arg| inputs.add(step, arg)),
            None => instruction.tensors().for_each(|tensor| inputs.add(step, &Arg::Tensor(tensor))),
        }
        inputs
    }

    fn add(&mut self, step: &StepIr, arg: &Arg<TensorId>) {
        let of = |tensor: &TensorId| -> &Tensor { &step.tensors[*tensor].value };
        let (mut dims, mut strides, mut value) = (json!([]), json!([]), String::new());
        let kind = match arg {
            Arg::Tensor(tensor) => {
                (dims, strides) = (json!(of(tensor).shape[..]), json!(of(tensor).strides[..]));
                of(tensor).dtype.recorded()
            }
            Arg::Tensors(list) => {
                let all = |part: fn(&Tensor) -> &[i64]| -> Value {
                    list.iter().map(|tensor| json!(part(of(tensor)))).collect()
                };
                (dims, strides) = (all(|tensor| &tensor.shape), all(|tensor| &tensor.strides));
                "TensorList"
            }
            Arg::None => "",
            Arg::Bool(own) => {
                value = if *own { "True" } else { "False" }.to_owned();
                "Scalar"
            }
            Arg::Int(own) => {
                value = own.to_string();
                "Scalar"
            }
            // With a point, so that it is read as a float.
            Arg::Float(own) => {
                value = format!("{own:?}");
                "Scalar"
            }
            Arg::Ints(list) => {
                value = format!("{:?}", &list[..]);
                "ScalarList"
            }
            Arg::Floats(list) => {
                value = format!("{list:?}");
                "ScalarList"
            }
            Arg::Text(text) => {
                value.clone_from(text);
                ""
            }
        };
        self.dims.push(dims);
        self.strides.push(strides);
        self.types.push(kind);
        self.values.push(value);
    }
}
