//! The type of each tensor, propagated through the ops.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::{Arg, Device, Dtype};
use steptime_step::{Call, OpId, Patch, Place, StepIr, TensorId, Uses};

use super::lists::Kind;
use crate::repeated_tensors::free_storage;
use crate::updates;

/// Replacements of tensors within an op.
pub(super) type Local = FxHashMap<TensorId, TensorId>;

/// Known types, and the patch under construction.
pub(super) struct Types<'s> {
    pub step: &'s StepIr,
    pub patch: Patch,
    /// The 16-bit type.
    pub narrow: Dtype,
    /// Whether looked-up rows are output in it.
    lookups: bool,
    pub(super) uses: Uses,
    /// Whether the step has an optimizer, which identifies the trained parameters.
    trains: bool,
    /// Types of tensors of the step that changed, and of those that the patch adds.
    known: FxHashMap<TensorId, Dtype>,
    /// Strides of views that changed.
    pub(super) strides: FxHashMap<TensorId, Vec<i64>>,
    /// 32-bit results of softmaxes of float16.
    pub(super) of_half: FxHashSet<TensorId>,
    /// Replacements of tensors from here on.
    pub now: Local,
    /// Casts of the forward pass, to 16 and to 32 bits: the backward pass takes them, too.
    pub saved: [Local; 2],
    /// First unused storage id.
    pub(super) next_storage: u32,
    /// Number of ops that run in 16 bits due to autocast.
    pub narrowed: usize,
    /// Number of inserted casts.
    pub casts: usize,
}

impl<'s> Types<'s> {
    pub fn new(step: &'s StepIr, rule: &'static str, narrow: Dtype, lookups: bool) -> Types<'s> {
        Types {
            step,
            patch: Patch::new(rule),
            narrow,
            lookups,
            uses: Uses::find(step),
            trains: step.running().into_iter().any(|op| step.event(op).is_optimizer_step()),
            known: FxHashMap::default(),
            strides: FxHashMap::default(),
            of_half: FxHashSet::default(),
            now: Local::default(),
            saved: [Local::default(), Local::default()],
            next_storage: free_storage(step),
            narrowed: 0,
            casts: 0,
        }
    }

    /// The patch, with the types and strides of all tensors that changed.
    pub fn into_patch(mut self) -> Patch {
        let narrow = self.known.iter().filter(|(_, dtype)| **dtype == self.narrow).map(|(tensor, _)| *tensor);
        let mut changed: Vec<TensorId> = narrow.chain(self.strides.keys().copied()).collect();
        changed.sort();
        changed.dedup();
        for tensor in changed {
            let Some(row) = self.step.tensors.get(tensor) else { continue };
            let dtype = self.known.get(&tensor).copied().unwrap_or(row.value.dtype);
            let mut value = steptime_aten::Tensor { dtype, ..row.value.clone() };
            if let Some(strides) = self.strides.get(&tensor) {
                value.strides = strides.iter().copied().collect();
            }
            self.patch.reshape.push((tensor, value));
        }
        self.patch
    }

    /// Replacement of a tensor.
    pub fn replacement(&self, tensor: TensorId, local: &Local) -> TensorId {
        *local.get(&tensor).or_else(|| self.now.get(&tensor)).unwrap_or(&tensor)
    }

    /// A tensor as recorded, or as added by the patch.
    pub fn value(&self, tensor: TensorId) -> Option<&steptime_aten::Tensor> {
        self.step.tensors.get(tensor).map(|row| &row.value).or_else(|| self.patch.added(self.step, tensor))
    }

    /// The type of a device tensor in 16 or 32 bits; `None` of others.
    pub fn dtype(&self, tensor: TensorId) -> Option<Dtype> {
        let value = self.value(tensor)?;
        let ours = value.device == Device::Cuda && (value.dtype == Dtype::F32 || value.dtype == self.narrow);
        ours.then(|| self.known.get(&tensor).copied().unwrap_or(value.dtype))
    }

    pub(super) fn set(&mut self, tensor: TensorId, dtype: Dtype) {
        self.known.insert(tensor, dtype);
    }

    /// Sets the types of the outputs of an op and of the ops inside it.
    pub fn follow(&mut self, op: OpId, local: &Local, autocast: bool) {
        let row = &self.step.ops[op];
        let kind = if autocast { Kind::from_op(&row.name) } else { Kind::Any };
        let to = row.call.as_deref().and_then(|call| self.target(kind, &row.name, call));
        let inside = to.zip(row.call.as_deref()).map(|(to, call)| self.autocast(op, call, to));
        if kind == Kind::Narrow
            && row.call.as_deref().is_some_and(|call| call.takes().any(|tensor| self.dtype(tensor).is_some()))
        {
            self.narrowed += 1;
        }
        let autocast = autocast && kind == Kind::Any;
        let local = inside.as_ref().unwrap_or(local);
        for &child in &row.children {
            self.follow(child, local, autocast);
        }
        if let Some(call) = &row.call {
            self.results(op, call, local);
            if kind == Kind::WideSum {
                let sums: Vec<TensorId> = call.gives().filter(|&sum| self.dtype(sum).is_some()).collect();
                sums.into_iter().for_each(|sum| self.set(sum, Dtype::F32));
            }
            if autocast {
                self.explicit(op, call);
                self.looked_up(op, call);
            }
        }
    }

    /// The type to which autocast casts the inputs of an op; `None` where it does not cast.
    fn target(&self, kind: Kind, name: &str, call: &Call) -> Option<Dtype> {
        match kind {
            Kind::WideResult if self.narrow == Dtype::F16 && name.ends_with("softmax") => None,
            Kind::Narrow => Some(self.narrow),
            Kind::Wide | Kind::WideResult => Some(Dtype::F32),
            Kind::Promoted => {
                let mut of =
                    call.takes().filter_map(|tensor| self.dtype(self.replacement(tensor, &Local::default())));
                of.any(|dtype| dtype == Dtype::F32).then_some(Dtype::F32)
            }
            Kind::WideSum | Kind::Any => None,
        }
    }

    /// Casts the inputs of an op of autocast's lists.
    fn autocast(&mut self, op: OpId, call: &Call, to: Dtype) -> Local {
        let mut local = Local::default();
        for tensor in call.takes() {
            let stands = self.replacement(tensor, &Local::default());
            match self.dtype(stands) {
                Some(from) if from != to && !local.contains_key(&tensor) => {
                    let cast = self.autocast_to(stands, to, Place::Before(op));
                    local.insert(tensor, cast);
                }
                _ => {}
            }
        }
        local
    }

    /// Inserts a copy for `x.float()`, which was a no-op before.
    fn explicit(&mut self, op: OpId, call: &Call) {
        if is_to_f32(&self.step.ops[op].name, call)
            && let Some(tensor) = call.takes().next()
            && call.gives().eq([tensor])
            && self.dtype(self.replacement(tensor, &Local::default())) == Some(self.narrow)
        {
            let stands = self.replacement(tensor, &Local::default());
            let cast = self.cast(stands, Dtype::F32, Place::After(op), false);
            self.now.insert(tensor, cast);
        }
    }

    /// Casts PyTorch's pooled rows where lookups in 16 bits are requested.
    fn looked_up(&mut self, op: OpId, call: &Call) {
        if self.lookups
            && self.step.ops[op].name == "aten::embedding_bag"
            && let Some(sums) = call.gives().next()
            && self.dtype(sums) == Some(Dtype::F32)
        {
            let cast = self.cast(sums, self.narrow, Place::After(op), false);
            self.now.insert(sums, cast);
        }
    }

    /// Sets the outputs of an op to the widest type of its inputs.
    fn results(&mut self, op: OpId, call: &Call, local: &Local) {
        let inner = self.made_inside(op);
        let taken: FxHashSet<TensorId> = call.takes().collect();
        // A new tensor has no replacement yet.
        for tensor in call.gives().filter(|tensor| !taken.contains(tensor) && !inner.contains(tensor)) {
            self.now.remove(&tensor);
        }
        let each = |args: &[Arg<TensorId>]| -> Vec<Arg<TensorId>> {
            args.iter().map(|arg| arg.map(|&tensor| self.replacement(tensor, local))).collect()
        };
        let mut now = Call { inputs: each(&call.inputs), outputs: each(&call.outputs), ..call.clone() };
        let takes: FxHashSet<TensorId> = now.takes().collect();
        let name = &self.step.ops[op].name;
        let half = self.half_softmax(name, &mut now);
        let first_only = name.contains("batch_norm")
            || name.contains("native_dropout")
            || (name.contains("attention") && !name.contains("backward"));
        let of = half.unwrap_or_else(|| self.widest(name, &now));
        for (at, tensor) in now.gives().enumerate() {
            let is_new = !takes.contains(&tensor) && !inner.contains(&tensor);
            if is_new && self.is_made(tensor) && self.dtype(tensor).is_some() && (at == 0 || !first_only) {
                self.set(tensor, of);
            }
        }
        self.exchanged(name, &now);
        self.set_view_strides(call, &now);
        self.settle(op, &now, of);
        if now != *call {
            self.patch.change.push((op, now));
        }
    }

    /// Sets the type of received tensors to that of the sent ones.
    fn exchanged(&mut self, name: &str, call: &Call) {
        let each: Vec<TensorId> = call.takes().collect();
        if let (true, [received, sent]) = (name.starts_with("c10d::"), &each[..])
            && let Some(dtype) = self.dtype(*sent).filter(|_| self.dtype(*received).is_some())
        {
            // A rank without tables sends nothing, and receives the lookups of others.
            let nothing = self.value(*sent).is_some_and(|sent| sent.numel() == 0);
            self.set(*received, if nothing && self.lookups { self.narrow } else { dtype });
        }
    }

    /// Whether a tensor is older than the step, and updated by the optimizer if there is one.
    pub fn is_parameter(&self, tensor: TensorId) -> bool {
        let is_old = self.step.tensors.get(tensor).is_some() && self.uses.producer(tensor).is_none();
        let updated = |&op: &OpId| updates::owner(self.step, op).is_some();
        is_old && (!self.trains || self.uses.consumers(tensor).iter().any(updated))
    }

    /// Whether an op of the step makes a tensor.
    pub(super) fn is_made(&self, tensor: TensorId) -> bool {
        self.step.tensors.get(tensor).is_some() && self.uses.producer(tensor).is_some()
    }

    /// Whether the type of a tensor is known.
    pub(super) fn is_known(&self, tensor: TensorId) -> bool {
        self.known.contains_key(&tensor)
    }

    /// Tensors computed by ops directly inside an op. Memory alone has no type yet.
    fn made_inside(&self, op: OpId) -> FxHashSet<TensorId> {
        let mut made = FxHashSet::default();
        for &child in &self.step.ops[op].children {
            let row = &self.step.ops[child];
            if let Some(call) = row.call.as_deref().filter(|_| !is_memory(&row.name)) {
                let takes: FxHashSet<TensorId> = call.takes().collect();
                made.extend(call.gives().filter(|tensor| !takes.contains(tensor)));
            }
        }
        made
    }

    fn widest(&self, name: &str, call: &Call) -> Dtype {
        if is_to_f32(name, call) {
            return Dtype::F32;
        }
        // Fused tables have an output type (`output_dtype`).
        if self.lookups && name.starts_with(FUSED_TABLES) {
            return self.narrow;
        }
        // Statistics, masks and logs of sums keep their type.
        let first_alone =
            ["batch_norm", "native_dropout", "attention"].iter().any(|part| name.contains(part));
        let count = if first_alone { 1 } else { usize::MAX };
        let all = || call.takes().take(count);
        // A scalar joins any type, and an empty tensor was created for the tensors that it is joined with.
        let sized = |tensor: &TensorId| {
            self.value(*tensor).is_some_and(|value| !value.shape.is_empty() && value.numel() > 0)
        };
        let known = all().filter(sized).filter(|&tensor| !self.is_temporary(tensor));
        let mut of: Vec<Dtype> = known.filter_map(|tensor| self.dtype(tensor)).collect();
        if of.is_empty() {
            of = all().filter(sized).filter_map(|tensor| self.dtype(tensor)).collect();
        }
        if of.is_empty() {
            of = all().filter_map(|tensor| self.dtype(tensor)).collect();
        }
        if of.contains(&Dtype::F32) || of.is_empty() { Dtype::F32 } else { self.narrow }
    }
}

/// Ops that look up in fused tables.
const FUSED_TABLES: &str = "fbgemm::split_embedding_codegen_forward";

/// Whether an op allocates a tensor without reading another.
fn is_memory(name: &str) -> bool {
    ["aten::empty", "aten::zeros", "aten::ones", "aten::full", "aten::new_"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// PyTorch's type code of 32-bit floats.
const F32_CODE: i64 = 6;

fn is_to_f32(name: &str, call: &Call) -> bool {
    matches!(name, "aten::to" | "aten::_to_copy") && call.inputs.get(1) == Some(&Arg::Int(F32_CODE))
}
