//! The type of each tensor, followed through the ops.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::{Arg, Device, Dtype};
use steptime_step::{Call, OpId, Patch, Place, Step, TensorId, Uses};

use super::lists::Kind;
use crate::names::free_storage;
use crate::updates;

/// Which tensors others stand for, within an op.
pub(super) type Local = FxHashMap<TensorId, TensorId>;

/// Types so far, and the patch in the making.
pub(super) struct Types<'s> {
    pub step: &'s Step,
    pub patch: Patch,
    /// The type of 16 bits.
    pub narrow: Dtype,
    /// Whether rows that are looked up are given in it.
    lookups: bool,
    pub(super) uses: Uses,
    /// Whether an optimizer is there, which tells what is trained.
    trains: bool,
    /// Tensors of the step that are in 16 bits, and the types of those that the patch adds.
    known: FxHashMap<TensorId, Dtype>,
    /// Results of 32 bits of softmaxes of float16.
    pub(super) of_half: FxHashSet<TensorId>,
    /// Which tensors others stand for from here on.
    pub now: Local,
    /// Casts that the forward pass made, to 16 and to 32 bits: the backward pass takes them, too.
    pub saved: [Local; 2],
    /// The first memory that no tensor has yet.
    pub(super) next_storage: u32,
    /// How many ops run in 16 bits because autocast says so.
    pub narrowed: usize,
    /// How many casts were put in.
    pub casts: usize,
}

impl<'s> Types<'s> {
    pub fn new(step: &'s Step, rule: &'static str, narrow: Dtype, lookups: bool) -> Types<'s> {
        Types {
            step,
            patch: Patch::new(rule),
            narrow,
            lookups,
            uses: Uses::of(step),
            trains: step.running().into_iter().any(|op| step.event(op).is_optimizer_step()),
            known: FxHashMap::default(),
            of_half: FxHashSet::default(),
            now: Local::default(),
            saved: [Local::default(), Local::default()],
            next_storage: free_storage(step),
            narrowed: 0,
            casts: 0,
        }
    }

    /// The patch, with the types of all tensors that have another.
    pub fn into_patch(mut self) -> Patch {
        let mut narrow: Vec<TensorId> = self.known.keys().copied().collect();
        narrow.sort();
        for tensor in narrow {
            if let Some(row) = self.step.tensors.get(tensor)
                && self.known[&tensor] == self.narrow
            {
                let value = steptime_aten::Tensor { dtype: self.narrow, ..row.value.clone() };
                self.patch.reshape.push((tensor, value));
            }
        }
        self.patch
    }

    /// What stands for a tensor.
    pub fn stands(&self, tensor: TensorId, local: &Local) -> TensorId {
        *local.get(&tensor).or_else(|| self.now.get(&tensor)).unwrap_or(&tensor)
    }

    /// A tensor as it was recorded, or as the patch added it.
    pub fn value(&self, tensor: TensorId) -> Option<&steptime_aten::Tensor> {
        self.step.tensors.get(tensor).map(|row| &row.value).or_else(|| self.patch.added(self.step, tensor))
    }

    /// The type of a tensor of the device in 16 or 32 bits; `None` of others.
    pub fn of(&self, tensor: TensorId) -> Option<Dtype> {
        let value = self.value(tensor)?;
        let ours = value.device == Device::Cuda && (value.dtype == Dtype::F32 || value.dtype == self.narrow);
        ours.then(|| self.known.get(&tensor).copied().unwrap_or(value.dtype))
    }

    pub(super) fn set(&mut self, tensor: TensorId, dtype: Dtype) {
        self.known.insert(tensor, dtype);
    }

    /// Gives the results of an op, and of those inside it, their types.
    pub fn follow(&mut self, op: OpId, local: &Local, autocast: bool) {
        let row = &self.step.ops[op];
        let kind = if autocast { Kind::of_op(&row.name) } else { Kind::Any };
        let to = row.call.as_deref().and_then(|call| self.target(kind, &row.name, call));
        let inside = to.zip(row.call.as_deref()).map(|(to, call)| self.autocast(op, call, to));
        if kind == Kind::Narrow
            && row.call.as_deref().is_some_and(|call| call.takes().any(|tensor| self.of(tensor).is_some()))
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
                let sums: Vec<TensorId> = call.gives().filter(|&sum| self.of(sum).is_some()).collect();
                sums.into_iter().for_each(|sum| self.set(sum, Dtype::F32));
            }
            if autocast {
                self.explicit(op, call);
                self.looked_up(op, call);
            }
        }
    }

    /// The type to which autocast casts the inputs of an op; `None` where it takes them as they come.
    fn target(&self, kind: Kind, name: &str, call: &Call) -> Option<Dtype> {
        match kind {
            Kind::WideResult if self.narrow == Dtype::F16 && name.ends_with("softmax") => None,
            Kind::Narrow => Some(self.narrow),
            Kind::Wide | Kind::WideResult => Some(Dtype::F32),
            Kind::Promoted => {
                let mut of =
                    call.takes().filter_map(|tensor| self.of(self.stands(tensor, &Local::default())));
                of.any(|dtype| dtype == Dtype::F32).then_some(Dtype::F32)
            }
            Kind::WideSum | Kind::Any => None,
        }
    }

    /// Casts the inputs of an op of autocast's lists.
    fn autocast(&mut self, op: OpId, call: &Call, to: Dtype) -> Local {
        let mut local = Local::default();
        for tensor in call.takes() {
            let stands = self.stands(tensor, &Local::default());
            match self.of(stands) {
                Some(from) if from != to && !local.contains_key(&tensor) => {
                    let cast = self.autocast_to(stands, to, Place::Before(op));
                    local.insert(tensor, cast);
                }
                _ => {}
            }
        }
        local
    }

    /// `x.float()` copies where it had nothing to do before.
    fn explicit(&mut self, op: OpId, call: &Call) {
        if is_to_f32(&self.step.ops[op].name, call)
            && let Some(tensor) = call.takes().next()
            && call.gives().eq([tensor])
            && self.of(self.stands(tensor, &Local::default())) == Some(self.narrow)
        {
            let stands = self.stands(tensor, &Local::default());
            let cast = self.cast(stands, Dtype::F32, Place::After(op), false);
            self.now.insert(tensor, cast);
        }
    }

    /// PyTorch's sums of looked-up rows are cast where 16 bits are asked for.
    fn looked_up(&mut self, op: OpId, call: &Call) {
        if self.lookups
            && self.step.ops[op].name == "aten::embedding_bag"
            && let Some(sums) = call.gives().next()
            && self.of(sums) == Some(Dtype::F32)
        {
            let cast = self.cast(sums, self.narrow, Place::After(op), false);
            self.now.insert(sums, cast);
        }
    }

    /// The results of an op have the widest type of its inputs.
    fn results(&mut self, op: OpId, call: &Call, local: &Local) {
        let inner = self.made_inside(op);
        let taken: FxHashSet<TensorId> = call.takes().collect();
        // What is made anew is what no other stands for.
        for tensor in call.gives().filter(|tensor| !taken.contains(tensor) && !inner.contains(tensor)) {
            self.now.remove(&tensor);
        }
        let each = |args: &[Arg<TensorId>]| -> Vec<Arg<TensorId>> {
            args.iter().map(|arg| arg.map(|&tensor| self.stands(tensor, local))).collect()
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
            if is_new && self.is_made(tensor) && self.of(tensor).is_some() && (at == 0 || !first_only) {
                self.set(tensor, of);
            }
        }
        self.exchanged(name, &now);
        self.settle(op, &now, of);
        if now != *call {
            self.patch.change.push((op, now));
        }
    }

    /// What comes from other ranks is of the type of what is sent to them.
    fn exchanged(&mut self, name: &str, call: &Call) {
        let each: Vec<TensorId> = call.takes().collect();
        if let (true, [received, sent]) = (name.starts_with("c10d::"), &each[..])
            && let Some(dtype) = self.of(*sent).filter(|_| self.of(*received).is_some())
        {
            // A rank that has no table sends nothing, and receives what others look up.
            let nothing = self.value(*sent).is_some_and(|sent| sent.numel() == 0);
            self.set(*received, if nothing && self.lookups { self.narrow } else { dtype });
        }
    }

    /// Whether a tensor is older than the step, and trained by its optimizer where it has one.
    pub fn is_parameter(&self, tensor: TensorId) -> bool {
        let is_old = self.step.tensors.get(tensor).is_some() && self.uses.producer(tensor).is_none();
        let updated = |&op: &OpId| updates::owner(self.step, op).is_some();
        is_old && (!self.trains || self.uses.consumers(tensor).iter().any(updated))
    }

    /// Whether an op of the step makes a tensor.
    pub(super) fn is_made(&self, tensor: TensorId) -> bool {
        self.step.tensors.get(tensor).is_some() && self.uses.producer(tensor).is_some()
    }

    /// Whether a type was found for a tensor.
    pub(super) fn is_known(&self, tensor: TensorId) -> bool {
        self.known.contains_key(&tensor)
    }

    /// What ops right inside an op give, and have computed: memory alone has no type yet.
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
        // Fused tables have a type for what they give (`output_dtype`).
        if self.lookups && name.starts_with(FUSED_TABLES) {
            return self.narrow;
        }
        // Statistics, masks and logs of sums stay as they are.
        let first_alone =
            ["batch_norm", "native_dropout", "attention"].iter().any(|part| name.contains(part));
        let count = if first_alone { 1 } else { usize::MAX };
        let all = || call.takes().take(count);
        // A number joins any type, and what has no elements was made for what it is joined with.
        let sized = |tensor: &TensorId| {
            self.value(*tensor).is_some_and(|value| !value.shape.is_empty() && value.numel() > 0)
        };
        let known = all().filter(sized).filter(|&tensor| !self.is_temporary(tensor));
        let mut of: Vec<Dtype> = known.filter_map(|tensor| self.of(tensor)).collect();
        if of.is_empty() {
            of = all().filter(sized).filter_map(|tensor| self.of(tensor)).collect();
        }
        if of.is_empty() {
            of = all().filter_map(|tensor| self.of(tensor)).collect();
        }
        if of.contains(&Dtype::F32) || of.is_empty() { Dtype::F32 } else { self.narrow }
    }
}

/// Ops that look up in fused tables.
const FUSED_TABLES: &str = "fbgemm::split_embedding_codegen_forward";

/// Whether an op makes a tensor of no other.
fn is_memory(name: &str) -> bool {
    ["aten::empty", "aten::zeros", "aten::ones", "aten::full", "aten::new_"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// PyTorch's number of 32-bit floats.
const F32_CODE: i64 = 6;

fn is_to_f32(name: &str, call: &Call) -> bool {
    matches!(name, "aten::to" | "aten::_to_copy") && call.inputs.get(1) == Some(&Arg::Int(F32_CODE))
}
