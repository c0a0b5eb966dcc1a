//! Compilation of a step to a program.

use rustc_hash::FxHashSet;
use steptime_cuda::pointwise::Function;
use steptime_eager::Role;
use steptime_graph::MarkKind;
use steptime_graph::names::EventName;
use steptime_step::{OpId, StepIr, TensorId};

use crate::arg::Arg;
use crate::binder::{Binder, Built, Use, Widened};
use crate::described::DescribedStep;
use crate::direct_exchanges::direct_exchanges;
use crate::early_exchanges::{early_exchanges, spans};
use crate::error::Error;
use crate::inputs::{InputPart, Inputs, Joined, PartKind};
use crate::joined_rows::joined_rows;
use crate::kept::{Kept, KeptKind, TensorPart};
use crate::ops::{WITHOUT_WORK, cast, pointwise};
use crate::padded_rows::{padded_rows, zeros_behind};
use crate::places::{Located, MemoryId, Places};
use crate::plan::{MemoryPlan, Reuse};
use crate::program::{Instruction, Program};
use crate::rounds::input_round;
use crate::slices::{Access, Region};
use crate::target::Target;
use crate::{chains, cross_entropy, fuse, removed, table, views};

impl Program {
    /// Compiles a step for a CPU. Of nested ops, the outermost one with an implementation runs as a whole.
    ///
    /// # Errors
    /// Where an op has no implementation, or a tensor is read that nothing writes.
    pub fn new(described: &DescribedStep) -> Result<Program, Error> {
        Program::for_target(described, Target::Cpu, Reuse::ByLifetime)
    }

    /// Compiles a step for a device, with or without sharing of memory among temporary tensors.
    ///
    /// # Errors
    /// As [`Program::new`].
    pub fn for_target(described: &DescribedStep, target: Target, reuse: Reuse) -> Result<Program, Error> {
        if let Some(input) = described.shared_input() {
            let why = format!(
                "all rounds take the input `{input}`: call `separate_rounds` after the rule `accumulate`"
            );
            return Err(Error::Order { why });
        }
        compile_in(described, &in_order(described)?, target, reuse)
    }
}

/// Compiles a step whose ops begin in the given order.
pub(crate) fn compile_in(
    described: &DescribedStep,
    order: &[OpId],
    target: Target,
    reuse: Reuse,
) -> Result<Program, Error> {
    let mut compiler = Compiler::with_instructions(described, order, target)?;
    if target == Target::Cuda {
        compiler.join_chains()?;
    }
    compiler.finish(reuse)
}

/// The instructions of a step on a GPU before functions of elements are joined, and whether each piece of memory is temporary.
#[cfg(test)]
pub(crate) fn separate_instructions(
    described: &DescribedStep,
) -> Result<(Vec<Instruction>, Vec<bool>), Error> {
    let compiler = Compiler::with_instructions(described, &in_order(described)?, Target::Cuda)?;
    let temporary = compiler.temporary();
    Ok((compiler.instructions, temporary))
}

/// The ops in the order in which they begin, over all threads.
fn in_order(described: &DescribedStep) -> Result<Vec<OpId>, Error> {
    let scheduled = described.scheduled();
    if let Some(op) = scheduled.circle() {
        return Err(Error::Order { why: format!("the threads wait for one another at {op}") });
    }
    let graph = &scheduled.graph;
    let begins = |mark: steptime_graph::MarkId| match graph.marks[mark].kind {
        MarkKind::OpBegin(op) => Some(scheduled.ops[op]),
        _ => None,
    };
    Ok(graph.marks_by_hand_off().into_iter().filter_map(begins).collect())
}

struct Compiler<'d> {
    described: &'d DescribedStep,
    target: Target,
    places: Places<'d>,
    joined: Vec<Joined>,
    instructions: Vec<Instruction>,
    /// Ops that run as a part of an op around them.
    inside: Vec<bool>,
    optimizer: Option<String>,
    /// In-place ops that belong to an earlier compiled kernel and must not run again.
    changed: FxHashSet<OpId>,
}

impl<'d> Compiler<'d> {
    fn new(described: &'d DescribedStep, target: Target) -> Compiler<'d> {
        Compiler {
            described,
            target,
            places: Places::new(described),
            joined: Vec::new(),
            instructions: Vec::new(),
            inside: vec![false; described.step.ops.len()],
            optimizer: None,
            changed: FxHashSet::default(),
        }
    }

    fn with_instructions(
        described: &'d DescribedStep,
        order: &[OpId],
        target: Target,
    ) -> Result<Compiler<'d>, Error> {
        let mut compiler = Compiler::new(described, target);
        views::copies_of_inputs(&mut compiler.places, order);
        if target == Target::Cuda {
            padded_rows(&mut compiler.places, order);
            joined_rows(&mut compiler.places, order);
        }
        compiler.run(order)?;
        if target == Target::Cuda {
            let instructions = std::mem::take(&mut compiler.instructions);
            compiler.instructions = cross_entropy::joined(instructions, &mut compiler.places);
        }
        if target == Target::Cuda && described.direct {
            let instructions = std::mem::take(&mut compiler.instructions);
            compiler.instructions = direct_exchanges(instructions, &compiler.places);
        }
        let separate = target == Target::Cuda && described.ranks() > 1;
        let instructions = std::mem::take(&mut compiler.instructions);
        compiler.instructions = fuse::linear_layers(instructions, target, separate);
        Ok(compiler)
    }

    fn run(&mut self, order: &[OpId]) -> Result<(), Error> {
        let step = &self.described.step;
        for &op in order {
            if step.ops[op].parent.is_some_and(|parent| self.inside[usize::from(parent)]) {
                self.inside[usize::from(op)] = true;
                if WITHOUT_WORK.contains(&&*step.ops[op].name) {
                    // The backward pass may read a view that the forward pass made inside of another op.
                    let _ = self.op(op);
                }
                continue;
            }
            let event = step.event(op);
            if event.is_optimizer_step() {
                self.optimizer = EventName::optimizer_class(&step.ops[op].name).map(str::to_owned);
            }
            let built = self.op(op).map_err(|why| refused(step, op, self.target, why))?;
            self.inside[usize::from(op)] = built;
        }
        Ok(())
    }

    /// Adds the instruction of an op. Returns whether it runs as a whole.
    fn op(&mut self, op: OpId) -> Result<bool, String> {
        let row = &self.described.step.ops[op];
        let compiled = row.call.as_deref().filter(|_| row.name.starts_with(removed::KERNEL));
        if let Some(call) = compiled {
            let members = removed::replaced_by(&self.described.step, op, call, &mut self.changed);
            let empty = call.gives().next().is_none();
            let runs = members.into_iter().try_fold(empty, |_, member| self.op(member).map(|_| true))?;
            return if runs { Ok(true) } else { Err(table::unknown(&row.name)) };
        }
        if let Some(why) = table::foreign(&row.name) {
            return Err(why.to_owned());
        }
        let Some(entry) = table::find(&row.name) else {
            let gives = row.call.as_deref().is_some_and(|call| call.gives().next().is_some());
            let leaf = row.children.is_empty() && !row.annotation;
            return match leaf && (gives || row.name.contains("::")) && !is_note(&row.name) {
                true => Err(table::unknown(&row.name)),
                false => Ok(false),
            };
        };
        let build = entry.build.map_err(str::to_owned)?;
        let mut binder = Binder {
            op,
            target: self.target,
            places: &mut self.places,
            is_op: |name| table::find(name).is_some(),
            joined: &mut self.joined,
            slots: Vec::new(),
            uses: Vec::new(),
            takes_halves: false,
            widened: Vec::new(),
        };
        match build(&mut binder)? {
            Built::Nothing => Ok(true),
            Built::Inside if row.children.is_empty() => Err(table::unknown(&row.name)),
            Built::Inside => Ok(false),
            Built::Kernel(kernel) => {
                let Binder { slots, uses, widened, .. } = binder;
                self.used(&uses)?;
                let place = around(&self.described.step, op);
                let name = row.name.clone();
                let (at, order) = (Vec::new(), Vec::new());
                let zeros = zeros_behind(&name, &uses);
                let instruction = Instruction { op, name, place, slots, uses, at, order, kernel };
                let zeros = zeros.map(|zeros| filled(&instruction, zeros)).transpose()?;
                let (before, after) = casts(&instruction, &widened)?;
                self.instructions.extend(before);
                self.instructions.push(instruction);
                self.instructions.extend(zeros);
                self.instructions.extend(after);
                Ok(true)
            }
        }
    }

    /// Notes the tensors that the next instruction uses. Temporary tensors must be written before they are read.
    fn used(&mut self, uses: &[Use]) -> Result<(), String> {
        let mut all: Vec<_> = uses.iter().map(|one| (one.access, one.tensor)).collect();
        all.sort_by_key(|(access, _)| *access);
        for (access, tensor) in all {
            let memory = self.places.locate(tensor)?.memory;
            let bound = self.region(memory) != Region::Arena;
            if !self.places.touch(memory, access) && !bound {
                let value = &self.places.described.step.tensors[tensor].value;
                return Err(format!("it reads a tensor {:?} that no op before it writes", value.shape));
            }
        }
        Ok(())
    }

    fn region(&self, memory: MemoryId) -> Region {
        let joined = self.joined.iter().any(|joined| self.places.memory_of(joined.tensor) == Some(memory));
        let named = self.places.memories[memory.0].tensor.and_then(|tensor| self.described.named(tensor));
        match named.map(|(_, role)| role) {
            _ if joined => Region::Inputs,
            Some(Role::Input) => Region::Inputs,
            Some(Role::Parameter(_) | Role::State | Role::Indices(_)) => Region::Kept,
            _ => Region::Arena,
        }
    }

    fn finish(mut self, reuse: Reuse) -> Result<Program, Error> {
        let loss = self.loss_tensor();
        self.instructions = early_exchanges(std::mem::take(&mut self.instructions), loss);
        for (at, instruction) in self.instructions.iter().enumerate() {
            instruction.slots.iter().for_each(|(memory, _)| self.places.lives_at(*memory, at));
        }
        // Other work runs beside an exchange, and must not have its memory.
        for (memories, end) in spans(&self.instructions) {
            memories.into_iter().for_each(|memory| self.places.lives_at(memory, end));
        }
        let losses = self.losses()?;
        let regions: Vec<Region> =
            (0..self.places.memories.len()).map(|at| self.region(MemoryId(at))).collect();
        let plan = MemoryPlan::new(&self.places.memories, |memory| regions[memory.0], reuse);
        for instruction in &mut self.instructions {
            instruction.place(&plan);
        }
        let (kept, inputs) = (self.kept(&plan)?, self.inputs(&plan)?);
        let ranks = self.described.ranks();
        let Compiler { instructions, optimizer, target, .. } = self;
        let row_caches = Vec::new();
        Ok(Program { target, instructions, plan, inputs, kept, losses, optimizer, ranks, row_caches })
    }

    fn loss_tensor(&self) -> Option<TensorId> {
        let is_loss = |tensor: &TensorId| matches!(self.described.named(*tensor), Some((_, Role::Loss)));
        self.described.step.tensors.keys().find(is_loss)
    }

    /// Joins functions of elements.
    fn join_chains(&mut self) -> Result<(), Error> {
        let instructions = std::mem::take(&mut self.instructions);
        let joined = chains::joined(instructions, &self.temporary());
        self.instructions = joined.map_err(|why| Error::Order { why })?;
        Ok(())
    }

    /// Whether each piece of memory is used by instructions alone.
    fn temporary(&self) -> Vec<bool> {
        let memories = (0..self.places.memories.len()).map(MemoryId);
        let mut temporary: Vec<bool> = memories.map(|memory| self.region(memory) == Region::Arena).collect();
        for tensor in self.described.step.tensors.keys() {
            let is_loss = matches!(self.described.named(tensor), Some((_, Role::Loss)));
            if let Some(MemoryId(loss)) = self.places.memory_of(tensor).filter(|_| is_loss) {
                temporary[loss] = false;
            }
        }
        temporary
    }

    /// Memory and position of the loss of each round, which remain to the end of the step.
    fn losses(&mut self) -> Result<Vec<(MemoryId, usize)>, Error> {
        let step = &self.described.step;
        let name_of = |tensor: TensorId| match self.described.named(tensor) {
            Some((name, Role::Loss)) => Some(input_round(name)),
            _ => None,
        };
        let Some((name, _)) = step.tensors.keys().find_map(name_of) else { return Ok(Vec::new()) };
        let named = step.tensors.keys().filter_map(|tensor| Some((tensor, name_of(tensor)?)));
        let mut rounds: Vec<(usize, TensorId)> =
            named.filter(|(_, own)| own.0 == name).map(|(tensor, own)| (own.1, tensor)).collect();
        rounds.sort_unstable();
        rounds.dedup_by_key(|(round, _)| *round);
        let mut losses = Vec::with_capacity(rounds.len());
        let last = self.instructions.len();
        for (_, loss) in rounds {
            if !self.places.is_placed(loss) {
                continue;
            }
            let located = self.places.locate(loss).map_err(|why| Error::Order { why })?;
            self.places.lives_at(located.memory, last);
            losses.push((located.memory, located.layout.offset()));
        }
        Ok(losses)
    }

    /// The named tensors in the kept region.
    fn kept(&mut self, plan: &MemoryPlan) -> Result<Vec<Kept>, Error> {
        let mut all = Vec::new();
        for tensor in self.described.step.tensors.keys() {
            let Some((name, role)) = self.described.named(tensor) else { continue };
            let kind = match role {
                Role::Parameter(initial) => KeptKind::Parameter(*initial),
                Role::State => KeptKind::State,
                Role::Indices(indices) => KeptKind::Indices(indices.clone()),
                Role::Input | Role::Number(_) | Role::Loss => continue,
            };
            if !self.places.is_placed(tensor) {
                continue;
            }
            let located = self.places.locate(tensor).map_err(|why| Error::Order { why })?;
            if plan.piece(located.memory).life.is_none() || located.layout.is_empty() {
                continue;
            }
            all.push(Kept {
                name: name.clone(),
                memory: located.memory,
                start: located.layout.offset(),
                shape: located.layout.shape().to_vec(),
                part: self.described.shard(name).map(TensorPart::new),
                kind,
            });
        }
        all.sort_by_key(|kept| kept.memory);
        all.dedup_by(|one, other| one.name == other.name);
        Ok(all)
    }

    /// The inputs by name. Inputs that nothing reads have no part.
    fn inputs(&mut self, plan: &MemoryPlan) -> Result<Inputs, Error> {
        let mut inputs = Inputs::new();
        let joined = std::mem::take(&mut self.joined);
        for one in &joined {
            let located = self.places.locate(one.tensor).map_err(|why| Error::Order { why })?;
            join(self.described, one, located.memory, &mut inputs);
        }
        for tensor in self.described.step.tensors.keys() {
            let Some((name, Role::Input)) = self.described.named(tensor) else { continue };
            let parts = inputs.entry(name.clone()).or_default();
            if !self.places.is_placed(tensor) {
                continue;
            }
            let located = self.places.locate(tensor).map_err(|why| Error::Order { why })?;
            let is_joined =
                joined.iter().any(|one| self.places.memory_of(one.tensor) == Some(located.memory));
            if is_joined || plan.piece(located.memory).life.is_none() {
                continue;
            }
            let len = located.layout.len();
            let first = input_round(name).0;
            let lookup = || self.described.lookups().find(|lookup| lookup.offsets == first);
            let kind = match (located.dtype.is_float(), lookup()) {
                (true, _) => PartKind::Floats,
                (false, Some(lookup)) => PartKind::Offsets { base: 0, lookups: lookup.count, closes: false },
                (false, None) => PartKind::Ints,
            };
            let part = InputPart { memory: located.memory, start: located.layout.offset(), len, kind };
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        Ok(inputs)
    }
}

/// Adds the parts of a joined input.
fn join(described: &DescribedStep, one: &Joined, memory: MemoryId, inputs: &mut Inputs) {
    let (mut start, mut base) = (0, 0);
    for (at, table) in one.tables.iter().enumerate() {
        let Some(lookup) = described.lookup(*table) else { continue };
        let (name, len, kind) = match one.offsets {
            true => {
                let closes = at + 1 == one.tables.len();
                let kind = PartKind::Offsets { base, lookups: lookup.count, closes };
                (&lookup.offsets, lookup.bags, kind)
            }
            false => (&lookup.indices, lookup.count, PartKind::Ints),
        };
        let part = InputPart { memory, start, len, kind };
        let parts: &mut Vec<InputPart> = inputs.entry(name.clone()).or_default();
        if !parts.contains(&part) {
            parts.push(part);
        }
        (start, base) = (start + len, base + lookup.count);
    }
}

/// The instructions before and after one that takes operands of 16 bits as 32-bit floats.
fn casts(of: &Instruction, widened: &[Widened]) -> Result<(Vec<Instruction>, Vec<Instruction>), String> {
    let cast = |one: &Widened, widens: bool| {
        let Located { memory, layout, dtype, pad } = one.narrow.clone();
        let narrow = Arg { slot: 0, layout, dtype, pad };
        let wide = Arg { slot: 1, ..one.wide.clone() };
        let [read, write] =
            if widens { [Access::Read, Access::Write] } else { [Access::Write, Access::Read] };
        let slots = vec![(memory, read), (one.memory, write)];
        let one_use = |arg: &Arg, access| Use { tensor: one.tensor, access, arg: arg.clone() };
        let uses = vec![one_use(&narrow, read), one_use(&wide, write)];
        let pair = if widens { (narrow, wide) } else { (wide, narrow) };
        let kernel = cast::on_gpu(vec![pair.clone()])?;
        let kernel = pointwise::copy(kernel, &pair.0, &pair.1);
        let (name, place) = ("steptime::cast".to_owned(), of.place.clone());
        Ok::<_, String>(Instruction {
            op: of.op,
            name,
            place,
            slots,
            uses,
            at: Vec::new(),
            order: Vec::new(),
            kernel,
        })
    };
    let access = |one: &Widened| of.slots[one.wide.slot].1;
    let read = widened.iter().filter(|one| access(one) != Access::Write);
    let written = widened.iter().filter(|one| access(one) != Access::Read);
    let before = read.map(|one| cast(one, true)).collect::<Result<_, _>>()?;
    let after = written.map(|one| cast(one, false)).collect::<Result<_, _>>()?;
    Ok((before, after))
}

/// The instruction that writes the zeros behind the rows of another one's result.
fn filled(of: &Instruction, mut zeros: Use) -> Result<Instruction, String> {
    let slots = vec![(of.slots[zeros.arg.slot].0, Access::Change)];
    zeros.arg.slot = 0;
    let Built::Kernel(kernel) = pointwise::on_gpu(Function::Fill(0.0), Vec::new(), vec![zeros.arg.clone()])?
    else {
        return Err("zeros behind its rows cannot be written".to_owned());
    };
    let (name, place, uses) = ("steptime::zeros".to_owned(), of.place.clone(), vec![zeros]);
    Ok(Instruction { op: of.op, name, place, slots, uses, at: Vec::new(), order: Vec::new(), kernel })
}

/// Whether an op is only a label by the recorder, with nothing to compute.
fn is_note(name: &str) -> bool {
    matches!(EventName::parse(name), EventName::BackwardFunction(_) | EventName::Engine(_))
}

fn refused(step: &StepIr, op: OpId, target: Target, why: String) -> Error {
    Error::Op { op: step.ops[op].name.clone(), place: around(step, op), target, why }
}

/// Names of the ops around an op, the outermost first.
fn around(step: &StepIr, op: OpId) -> String {
    let plain = |op: OpId| match step.event(op) {
        EventName::Engine(function) => function,
        _ => step.ops[op].name.trim_matches(|c: char| c == '#' || c == ' '),
    };
    let mut names: Vec<&str> = step.around(op).skip(1).map(plain).collect();
    names.dedup();
    names.reverse();
    if names.is_empty() { "the step".to_owned() } else { names.join(" / ") }
}
