//! Runs ops one by one as PyTorch eager does, without values: only the ops and their tensors' shapes and memory matter.

pub(crate) mod tape;

use steptime_aten::Dtype;
use steptime_graph::names::ACCUMULATE_GRAD;

use self::tape::{GradFn, GradKind, Tape};
use crate::argument::{Input, OpResults};
use crate::memory::Memory;
use crate::recorder::{Kind, LABEL, OP, Recorder};
use crate::role::{Initial, NamedTensor, Role};
use crate::tensor::{GradId, Place, Tensor, contiguous, numel};
use crate::world::World;

/// A trained tensor.
#[derive(Debug)]
pub(crate) struct Parameter {
    /// The tensor that ops take; its gradient goes to [`Parameter::grad`].
    pub(crate) tensor: Tensor,
    /// The gradient of the last backward pass.
    pub(crate) grad: Option<Tensor>,
    /// Whether every rank has it, so that its gradients are averaged over the ranks.
    pub(crate) replicated: bool,
    /// Name within the model.
    pub(crate) name: String,
    /// Distribution of its initial elements.
    pub(crate) initial: Initial,
    /// First row and column of a part of a table, and rows and columns of the table.
    pub(crate) part_of: Option<[[i64; 2]; 2]>,
}

/// A process that runs a script.
pub(crate) struct Eager {
    pub(crate) log: Recorder,
    pub(crate) tape: Tape,
    pub(crate) parameters: Vec<Parameter>,
    /// Its job, where the process is one of several ranks.
    pub(crate) world: Option<World>,
    memory: Memory,
    /// Number of enclosing ops below autograd.
    below: u32,
    /// Whether gradients will be computed.
    pub(crate) learning: bool,
    /// Names of the enclosing modules.
    pub(crate) scope: Vec<String>,
    /// Inputs, constants and loss of the step.
    pub(crate) named: Vec<NamedTensor>,
    /// Constants that are kept from step to step.
    pub(crate) buffers: Vec<NamedTensor>,
    tensors: u64,
}

/// First number of tensors, so that no node has the same number.
const FIRST_TENSOR: u64 = 1 << 32;

impl Eager {
    /// A process by itself, or a rank of a job.
    pub(crate) fn new(world: Option<World>) -> Eager {
        Eager {
            log: Recorder::new(),
            tape: Tape::default(),
            parameters: Vec::new(),
            world,
            memory: Memory::default(),
            below: 0,
            learning: true,
            scope: Vec::new(),
            named: Vec::new(),
            buffers: Vec::new(),
            tensors: FIRST_TENSOR,
        }
    }

    /// Starts a new recording; memory and parameters stay.
    pub(crate) fn restart(&mut self) {
        self.log = Recorder::new();
        self.tape = Tape::default();
        self.named.clear();
        if let Some(world) = &mut self.world {
            world.restart();
        }
        for at in 0..self.parameters.len() {
            let grad = self.accumulator(at, &self.parameters[at].tensor.shape.clone());
            self.parameters[at].tensor.grad = Some(grad);
        }
    }

    /// Runs code of a module, whose name is part of the names of its parameters.
    pub(crate) fn within<R>(&mut self, module: &str, body: impl FnOnce(&mut Eager) -> R) -> R {
        self.scope.push(module.to_owned());
        let result = body(self);
        self.scope.pop();
        result
    }

    /// Name of a tensor of the current module.
    pub(crate) fn path(&self, name: &str) -> String {
        self.scope.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(".")
    }

    /// Names a tensor of the step.
    pub(crate) fn name(&mut self, tensor: &Tensor, name: &str, role: Role) {
        let name = self.path(name);
        self.named.push(NamedTensor { id: tensor.id, name, role });
    }

    /// Adds a parameter of a shape; returns its index.
    pub(crate) fn parameter(&mut self, name: &str, shape: &[i64], initial: Initial) -> usize {
        let mut tensor = self.empty(shape, Dtype::F32);
        let at = self.parameters.len();
        tensor.grad = Some(self.accumulator(at, shape));
        let name = self.path(name);
        self.parameters.push(Parameter {
            tensor,
            grad: None,
            replicated: true,
            name,
            initial,
            part_of: None,
        });
        at
    }

    /// Adds a parameter, or a part of one, that only this rank has.
    pub(crate) fn own_parameter(&mut self, name: &str, shape: &[i64], initial: Initial) -> usize {
        let at = self.parameter(name, shape, initial);
        self.parameters[at].replicated = false;
        at
    }

    fn accumulator(&mut self, at: usize, shape: &[i64]) -> GradId {
        let name = ACCUMULATE_GRAD;
        self.tape.push(GradFn { name, shape: shape.to_vec(), kind: GradKind::Accumulate(at) })
    }

    /// Runs an op that autograd records: the ops inside it are below autograd. `overload` is its name with that of the overload.
    pub(crate) fn op<R: OpResults>(
        &mut self,
        overload: &str,
        inputs: &[Input<'_>],
        body: impl FnOnce(&mut Eager) -> R,
    ) -> R {
        let row = self.begin(overload, inputs);
        self.below += 1;
        let result = body(self);
        self.below -= 1;
        self.log.end(row, &result.results());
        result
    }

    /// Runs an op that consists of others, each of which autograd records.
    pub(crate) fn composite<R: OpResults>(
        &mut self,
        overload: &str,
        inputs: &[Input<'_>],
        body: impl FnOnce(&mut Eager) -> R,
    ) -> R {
        let row = self.begin(overload, inputs);
        let result = body(self);
        self.log.end(row, &result.results());
        result
    }

    fn begin(&mut self, overload: &str, inputs: &[Input<'_>]) -> usize {
        let seen = self.learning && self.below == 0;
        let sequence = if seen { self.tape.sequence } else { -1 };
        self.log.begin(overload, Kind { sequence, ..OP }, inputs)
    }

    /// Runs code under a label.
    pub(crate) fn label<R>(&mut self, label: &str, body: impl FnOnce(&mut Eager) -> R) -> R {
        self.node(label, LABEL, &[], body)
    }

    /// Runs code under a node that is not an op.
    pub(crate) fn node<R>(
        &mut self,
        name: &str,
        kind: Kind,
        inputs: &[Input<'_>],
        body: impl FnOnce(&mut Eager) -> R,
    ) -> R {
        let row = self.log.begin(name, kind, inputs);
        let result = body(self);
        self.log.end(row, &[]);
        result
    }

    /// Adds a backward function for a result, where an argument needs a gradient.
    pub(crate) fn track(
        &mut self,
        mut result: Tensor,
        name: &'static str,
        arguments: &[&Tensor],
        apply: impl FnOnce(&mut Eager, &Tensor, &[bool]) -> Vec<Option<Tensor>> + 'static,
    ) -> Tensor {
        let next: Vec<Option<GradId>> = arguments.iter().map(|argument| argument.grad).collect();
        if self.learning && self.below == 0 && next.iter().any(Option::is_some) {
            let kind =
                GradKind::Function { sequence: self.tape.sequence, apply: Some(Box::new(apply)), next };
            self.tape.sequence += 1;
            result.grad = Some(self.tape.push(GradFn { name, shape: result.shape.clone(), kind }));
        }
        result
    }

    /// Adds a backward function that takes the gradients of several results together.
    pub(crate) fn track_all(
        &mut self,
        results: Vec<Tensor>,
        name: &'static str,
        argument: &Tensor,
        apply: impl FnOnce(&mut Eager, &[Tensor]) -> Tensor + 'static,
    ) -> Vec<Tensor> {
        let Some(next) = argument.grad.filter(|_| self.learning && self.below == 0) else { return results };
        let kind = GradKind::Join { sequence: self.tape.sequence, apply: Some(Box::new(apply)), next };
        self.tape.sequence += 1;
        let of = self.tape.push(GradFn { name, shape: argument.shape.clone(), kind });
        let part = |(place, result): (usize, Tensor)| {
            let kind = GradKind::Part { of, place };
            let grad = self.tape.push(GradFn { name, shape: result.shape.clone(), kind });
            Tensor { grad: Some(grad), ..result }
        };
        results.into_iter().enumerate().map(part).collect()
    }

    /// A new tensor on the device.
    pub(crate) fn empty(&mut self, shape: &[i64], dtype: Dtype) -> Tensor {
        let bytes = numel(shape) as u64 * dtype.size();
        let storage = (bytes > 0).then(|| self.memory.device(bytes));
        self.tensors += 1;
        Tensor {
            id: self.tensors,
            shape: shape.to_vec(),
            strides: contiguous(shape),
            offset: 0,
            dtype,
            device: Place::Device,
            storage,
            grad: None,
            sparse: None,
        }
    }

    /// A new tensor in host memory.
    pub(crate) fn host(&mut self, shape: &[i64], dtype: Dtype) -> Tensor {
        let bytes = numel(shape) as u64 * dtype.size();
        let storage = Some(self.memory.host(bytes));
        Tensor { device: Place::Host, storage, ..self.unallocated(shape, dtype) }
    }

    /// A new tensor in pinned host memory.
    pub(crate) fn pinned(&mut self, shape: &[i64], dtype: Dtype) -> Tensor {
        Tensor { device: Place::Pinned, ..self.host(shape, dtype) }
    }

    /// A tensor without memory.
    pub(crate) fn unallocated(&mut self, shape: &[i64], dtype: Dtype) -> Tensor {
        Tensor { shape: shape.to_vec(), strides: contiguous(shape), ..self.empty(&[0], dtype) }
    }

    /// A new tensor with the shape and memory order of another.
    pub(crate) fn like(&mut self, model: &Tensor) -> Tensor {
        let fresh = self.empty(&model.shape, model.dtype);
        if model.is_dense() { Tensor { strides: model.strides.clone(), ..fresh } } else { fresh }
    }

    /// Another tensor on the same memory.
    pub(crate) fn view(&mut self, of: &Tensor, shape: &[i64], strides: &[i64], offset: i64) -> Tensor {
        self.tensors += 1;
        Tensor {
            id: self.tensors,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            offset,
            grad: None,
            ..of.clone()
        }
    }
}
