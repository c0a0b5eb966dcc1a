//! Records ops like PyTorch's `ExecutionTraceObserver`, into the columns that its file is read into.

use steptime_aten::{Dtype, declared};
use steptime_trace::{
    Carrier, Collective, ExecutionTrace, NameId, Node, ProcessGroup, Schema, Tensor as Recorded, Value,
    ValueRange,
};

use crate::argument::Input;
use crate::tensor::Tensor;

/// Schemas of PyTorch 2.11 that are missing from [`declared`]: overloads that write into an argument, collectives, and one overload of `to`.
static OTHERS: [&str; 14] = [
    "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    "c10d::_allgather_base_(Tensor output_tensor, Tensor input_tensor, __torch__.torch.classes.c10d.ProcessGroup process_group, bool async_op=True, int timeout=-1) -> (Tensor, __torch__.torch.classes.c10d.Work)",
    "c10d::_reduce_scatter_base_(Tensor output_tensor, Tensor input_tensor, __torch__.torch.classes.c10d.ProcessGroup process_group, __torch__.torch.classes.c10d.ReduceOp reduce_op, bool async_op=True, int timeout=-1) -> (Tensor, __torch__.torch.classes.c10d.Work)",
    "c10d::allreduce_(Tensor[] tensors, __torch__.torch.classes.c10d.ProcessGroup process_group, __torch__.torch.classes.c10d.ReduceOp reduce_op, Tensor? sparse_indices, bool async_op=True, int timeout=-1) -> (Tensor[], __torch__.torch.classes.c10d.Work)",
    "c10d::alltoall_base_(Tensor output, Tensor input, __torch__.torch.classes.c10d.ProcessGroup process_group, int[] output_split_sizes, int[] input_split_sizes, bool async_op=True, int timeout=-1) -> __torch__.torch.classes.c10d.Work",
    "c10d::broadcast_(Tensor[] tensors, __torch__.torch.classes.c10d.ProcessGroup process_group, int root_rank, int root_tensor, bool async_op=True, int timeout=-1) -> (Tensor[], __torch__.torch.classes.c10d.Work)",
    "aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    "aten::arange.start_out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)",
    "aten::flatten_dense_tensors(Tensor[] tensors) -> Tensor",
    "aten::gather.out(Tensor self, int dim, Tensor index, *, bool sparse_grad=False, Tensor(a!) out) -> Tensor(a!)",
    "aten::mean.out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    "aten::mse_loss_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, int reduction, *, Tensor(a!) grad_input) -> Tensor(a!)",
    "aten::unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]",
    "aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
];

/// The schema of an overload; `None` for functions and labels.
pub(crate) fn schema(overload: &str) -> Option<&'static str> {
    let own = || {
        OTHERS.into_iter().find(|text| text.starts_with(overload) && text[overload.len()..].starts_with('('))
    };
    declared(overload).or_else(own)
}

/// Name of the group of all ranks.
const DEFAULT_GROUP: &str = "0";

/// Recorded attributes of a collective.
pub(crate) struct Exchange<'a> {
    /// Name in the process group, such as `allreduce`.
    pub(crate) operation: &'static str,
    /// Elements sent, and received.
    pub(crate) elements: [i64; 2],
    /// Element type, such as `Float`.
    pub(crate) dtype: &'static str,
    /// Number of ranks.
    pub(crate) ranks: i64,
    /// Elements to each rank, and from each, where these differ.
    pub(crate) splits: Option<[&'a [i64]; 2]>,
}

/// A host thread of the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thread {
    /// Runs the script.
    Main,
    /// Runs the backward pass.
    Engine,
}

/// Kind of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// Sequence number that links forward and backward; -1 for none.
    pub(crate) sequence: i64,
    /// PyTorch's `RecordScope`.
    pub(crate) scope: u8,
}

/// An op of the step.
pub(crate) const OP: Kind = Kind { sequence: -1, scope: 0 };
/// A label around code.
pub(crate) const LABEL: Kind = Kind { sequence: -1, scope: 7 };
/// A function of the backward pass.
pub(crate) const BACKWARD: Kind = Kind { sequence: -1, scope: 1 };

/// The recording of a step.
#[derive(Debug)]
pub(crate) struct Recorder {
    trace: ExecutionTrace,
    thread: Thread,
    /// On each thread, the ids of open nodes.
    open: [Vec<u64>; 2],
    next: u64,
}

impl Recorder {
    pub(crate) fn new() -> Recorder {
        let schema = Schema::parse("1.1.1-chakra.0.0.4");
        let trace = ExecutionTrace { schema, pid: 1, ..ExecutionTrace::default() };
        let mut recorder = Recorder { trace, thread: Thread::Main, open: [vec![0], vec![]], next: 0 };
        recorder.begin(ExecutionTrace::PROCESS_NAMES[0], LABEL, &[]);
        recorder.open[1].push(ExecutionTrace::PROCESS_ID);
        recorder.begin(ExecutionTrace::THREAD_NAMES[0], LABEL, &[]);
        recorder
    }

    /// Returns the recording of the finished step.
    pub(crate) fn finish(self) -> ExecutionTrace {
        self.trace
    }

    /// Switches to a thread.
    pub(crate) fn on(&mut self, thread: Thread) {
        self.thread = thread;
        if self.open[thread as usize].len() == 1 {
            self.begin(ExecutionTrace::THREAD_NAMES[0], LABEL, &[]);
        }
    }

    /// Begins a node; returns its row.
    pub(crate) fn begin(&mut self, overload: &str, kind: Kind, inputs: &[Input<'_>]) -> usize {
        let declared = schema(overload);
        let name = if declared.is_some() {
            overload.split_once('.').map_or(overload, |(name, _)| name)
        } else {
            overload
        };
        let thread = self.thread as usize;
        let parent = self.open[thread].last().copied().unwrap_or_default();
        let backward = kind.scope == BACKWARD.scope;
        let forward = self.open[0].last().copied().unwrap_or_default();
        self.next += 1;
        let row = self.trace.nodes.len();
        let inputs = self.values(inputs);
        let node = Node {
            id: self.next,
            name: self.trace.names.intern(name),
            parent,
            rf_id: self.next,
            fw_parent: if backward { forward } else { 0 },
            seq_id: kind.sequence,
            scope: kind.scope,
            tid: if parent == 0 { 0 } else { thread as u64 + 1 },
            fw_tid: u64::from(backward),
            op_schema: self.trace.names.intern(declared.unwrap_or("")),
            kernel_backend: self.trace.names.intern(""),
            kernel_file: self.trace.names.intern(""),
            inputs,
            outputs: ValueRange::default(),
        };
        self.trace.nodes.push(node);
        self.open[thread].push(self.next);
        row
    }

    /// Ends the last node that began, with its outputs.
    pub(crate) fn end(&mut self, row: usize, outputs: &[Input<'_>]) {
        self.open[self.thread as usize].pop();
        self.trace.nodes.outputs[row] = self.values(outputs);
    }

    /// Records the collective of the node in a row.
    pub(crate) fn exchange(&mut self, row: usize, exchange: &Exchange<'_>) {
        let mut name = |text: &str| Some(self.trace.names.intern(text));
        let list = |splits: &[i64]| format!("{splits:?}");
        let collective = Collective {
            carrier: Carrier::Node(row as u32),
            name: name(exchange.operation).unwrap_or_default(),
            in_elements: exchange.elements[0] as u64,
            out_elements: exchange.elements[1] as u64,
            dtype: name(exchange.dtype),
            group_size: u32::try_from(exchange.ranks).ok(),
            group_name: name(DEFAULT_GROUP),
            group_description: name("default_pg"),
            group_ranks: None,
            sequence: None,
            in_split: exchange.splits.and_then(|[sent, _]| name(&list(sent))),
            out_split: exchange.splits.and_then(|[_, received]| name(&list(received))),
            source_rank: None,
            target_rank: None,
        };
        self.trace.collectives.push(collective);
    }

    /// Records the group of all ranks.
    pub(crate) fn among(&mut self, ranks: i64) {
        let group = ProcessGroup {
            name: DEFAULT_GROUP.into(),
            description: Some("default_pg".into()),
            backend: Some("cuda:nccl".into()),
            size: u32::try_from(ranks).ok(),
            ranks: (0..u32::try_from(ranks).unwrap_or(0)).collect(),
        };
        self.trace.process_groups.push(group);
    }

    fn values(&mut self, inputs: &[Input<'_>]) -> ValueRange {
        let values: Vec<Value> = inputs.iter().map(|input| self.value(input)).collect();
        self.trace.values.push_list(&values)
    }

    fn value(&mut self, input: &Input<'_>) -> Value {
        match input {
            Input::None => Value::None,
            Input::Undefined => self.undefined(),
            Input::Bool(value) => Value::Bool(*value),
            Input::Int(value) => Value::Int(*value),
            Input::Float(value) => Value::Float(*value),
            Input::Text(text) => Value::Str(self.trace.names.intern(text)),
            Input::Device(name) => Value::Device(self.trace.names.intern(name)),
            Input::Ints(list) => self.list(list.iter().map(|&value| Value::Int(value)).collect()),
            Input::Floats(list) => self.list(list.iter().map(|&value| Value::Float(value)).collect()),
            Input::Tensor(tensor) => self.tensor(tensor),
            Input::Tensors(list) => {
                let values = list.iter().map(|tensor| self.tensor(tensor)).collect();
                self.list(values)
            }
            Input::Indices(list) => {
                let values = list.iter().map(|one| self.optional(one.as_ref(), Input::Undefined)).collect();
                self.list(values)
            }
            Input::Options(list) => {
                let values = list.iter().map(|one| self.optional(one.as_ref(), Input::None)).collect();
                self.list(values)
            }
        }
    }

    fn optional(&mut self, tensor: Option<&Tensor>, missing: Input<'_>) -> Value {
        self.value(&tensor.map_or(missing, Input::Tensor))
    }

    fn list(&mut self, values: Vec<Value>) -> Value {
        Value::List(self.trace.values.push_list(&values))
    }

    fn tensor(&mut self, tensor: &Tensor) -> Value {
        let sparse = tensor.sparse.is_some();
        let zeros = vec![0; tensor.shape.len()];
        let strides = if sparse { &zeros } else { &tensor.strides };
        let recorded = Recorded {
            tensor_id: tensor.id,
            storage_id: tensor.storage.as_ref().map_or(0, |block| block.address),
            offset: tensor.offset as u64,
            numel: if sparse { 0 } else { tensor.numel() as u64 },
            itemsize: if sparse { 0 } else { tensor.dtype.size() as u32 },
            device: self.name(if sparse { "" } else { tensor.device.name() }),
            dtype: self.name(tensor.dtype.recorded()),
            shape: self.trace.values.push_dims(&tensor.shape),
            strides: Some(self.trace.values.push_dims(strides)),
        };
        Value::Tensor(self.trace.values.push_tensor(recorded))
    }

    /// An undefined tensor.
    fn undefined(&mut self) -> Value {
        let none = self.trace.values.push_dims(&[]);
        let recorded = Recorded {
            tensor_id: 1,
            storage_id: 0,
            offset: 0,
            numel: 0,
            itemsize: 0,
            device: self.name(""),
            dtype: self.name("nullptr (uninitialized)"),
            shape: none,
            strides: Some(none),
        };
        Value::Tensor(self.trace.values.push_tensor(recorded))
    }

    fn name(&mut self, text: &str) -> NameId {
        self.trace.names.intern(text)
    }
}

/// The type code of a dtype argument.
pub(crate) fn code(dtype: Dtype) -> Input<'static> {
    Input::Int(dtype.code())
}
