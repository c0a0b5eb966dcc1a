//! A program with its memory: inputs are fed, steps run, parameters are read and written by name.

use std::ops::Range;
use std::time::{Duration, Instant};

use steptime_cuda::cache::{Access, Statistics};
use steptime_ops::Cpu;
use steptime_ops::embedding::HugeBuffer;

use crate::error::Error;
use crate::gpu_engine::{GpuEngine, GpuOptions};
use crate::gpu_group::GpuGroup;
use crate::group::Rank;
use crate::initial;
use crate::inputs::{InputPart, PartKind};
use crate::kept::{Kept, KeptKind, TensorPart};
use crate::kernel::Kernel;
use crate::losses::mean;
use crate::numbers::Numbers;
use crate::places::MemoryId;
use crate::program::Program;
use crate::run::Run;
use crate::slices::{Region, Slices};
use crate::target::Target;

/// Parts of a parameter that are filled on the host at once.
const FILLED: usize = 1024;

/// A program in training.
#[derive(Debug)]
pub struct Session {
    // Dropped before the program, whose operators its launches use.
    pub(crate) engine: Engine,
    pub(crate) program: Program,
    pub(crate) numbers: Numbers,
    /// The rank of its job, where it is one of several threads.
    group: Option<Rank>,
    /// Number of steps taken.
    pub(crate) steps: u64,
    /// Whether the loss of the last step was not returned yet.
    started: bool,
    /// Time of the last step whose loss was returned.
    pub(crate) time: Duration,
}

/// The device of a session, with its memory.
#[derive(Debug)]
pub(crate) enum Engine {
    /// Memory by region.
    Cpu(Cpu, [HugeBuffer; 3]),
    Gpu(Box<GpuEngine>),
}

impl Session {
    /// A program for a CPU with initial parameters: the distributions of PyTorch's modules, `nn.Linear` and `nn.EmbeddingBag`, by a generator
    /// whose numbers depend on the seed, the parameter and the position. Optimizer states are zero, and settings are PyTorch's defaults.
    ///
    /// # Errors
    /// Where memory is not sufficient, or the program is compiled for another device, or for one of several ranks.
    pub fn new(program: Program, cpu: Cpu, seed: u64) -> Result<Session, Error> {
        check_ranks(&program, 1)?;
        Session::on_cpu(program, cpu, seed)
    }

    fn on_cpu(program: Program, cpu: Cpu, seed: u64) -> Result<Session, Error> {
        check_target(&program, Target::Cpu)?;
        let allocate = |region: Region, what: &'static str| {
            let bytes = program.plan.bytes(region);
            HugeBuffer::zeroed(bytes).map_err(|source| Error::Memory { what, bytes: bytes as u64, source })
        };
        let regions = [
            allocate(Region::Kept, "parameters and optimizer states")?,
            allocate(Region::Inputs, "inputs")?,
            allocate(Region::Arena, "temporary tensors")?,
        ];
        let mut session = Session::with_engine(program, Engine::Cpu(cpu, regions));
        session.initialize(seed)?;
        session.prepare()?;
        Ok(session)
    }

    /// The program of a rank for a CPU, as [`Session::new`]. All ranks of the group run their steps at once, each in its own thread.
    ///
    /// # Errors
    /// As [`Session::new`]; where the program is that of another number of ranks.
    pub fn in_group(program: Program, cpu: Cpu, seed: u64, group: Rank) -> Result<Session, Error> {
        check_ranks(&program, group.ranks())?;
        let session = Session::on_cpu(program, cpu, seed)?;
        Ok(Session { group: Some(group), ..session })
    }

    /// A program for a GPU with the initial parameters of [`Session::new`], which `cpu` computes. Kernels are compiled before it returns. A rank of a
    /// job exchanges by [`GpuOptions::group`], and runs its steps at once with all others.
    ///
    /// # Errors
    /// Where the GPU's memory is not sufficient, a library is missing, or the program is compiled for another device.
    pub fn on_gpu(program: Program, gpu: GpuOptions, cpu: &Cpu, seed: u64) -> Result<Session, Error> {
        check_target(&program, Target::Cuda)?;
        check_ranks(&program, gpu.group.as_ref().map_or(1, GpuGroup::ranks))?;
        let engine = Engine::Gpu(Box::new(GpuEngine::new(&program, gpu)?));
        let mut session = Session::with_engine(program, engine);
        session.fill_on_gpu(cpu, seed)?;
        session.prepare()?;
        Ok(session)
    }

    /// Ends the use of a rank's session, after the last step of all ranks. Without it the memory of a rank on a GPU is not freed, as other GPUs may
    /// write it.
    ///
    /// # Errors
    /// Where another rank failed.
    pub fn leave_group(&mut self) -> Result<(), Error> {
        match &mut self.engine {
            Engine::Gpu(engine) => engine.leave(),
            Engine::Cpu(..) => Ok(()),
        }
    }

    fn with_engine(program: Program, engine: Engine) -> Session {
        let numbers = Numbers::for_class(program.optimizer.as_deref().unwrap_or("SGD"));
        Session { engine, program, numbers, group: None, steps: 0, started: false, time: Duration::ZERO }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Settings of the optimizer.
    #[must_use]
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Changes the settings of later steps.
    ///
    /// # Errors
    /// Where a setting is out of range.
    pub fn set_numbers(&mut self, numbers: Numbers) -> Result<(), Error> {
        numbers.check()?;
        let others = |numbers: &Numbers| Numbers { rate: 0.0, ..*numbers };
        let changed = others(&numbers) != others(&self.numbers);
        self.numbers = numbers;
        if changed && self.steps == 0 { self.prepare() } else { Ok(()) }
    }

    /// Number of steps taken.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Sets the number of steps taken, from a checkpoint.
    pub fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
        if let Engine::Gpu(engine) = &mut self.engine {
            engine.forget_numbers();
        }
    }

    /// Feeds an input of floats, such as `dense` or `labels`, row by row.
    ///
    /// # Errors
    /// Where no input has the name, or the number of elements differs.
    pub fn feed_floats(&mut self, name: &str, values: &[f32]) -> Result<(), Error> {
        let Session { program, engine, .. } = self;
        for part in parts(program, name)? {
            let given = || format!("{} floats", values.len());
            if part.kind != PartKind::Floats || part.len != values.len() {
                return Err(unfit(name, part, given()));
            }
            elements::<f32>(program, engine, part)?.copy_from_slice(values);
        }
        Ok(())
    }

    /// Feeds an input of whole numbers, such as `tables.0.indices` or `tables.0.offsets`. Indices are checked by the lookup that takes them.
    ///
    /// # Errors
    /// Where no input has the name, the number of elements differs, or offsets decrease.
    pub fn feed_ints(&mut self, name: &str, values: &[i64]) -> Result<(), Error> {
        let Session { program, engine, .. } = self;
        for part in parts(program, name)? {
            if part.kind == PartKind::Floats || part.len != values.len() {
                return Err(unfit(name, part, format!("{} whole numbers", values.len())));
            }
            let PartKind::Offsets { base, lookups, closes } = part.kind else {
                elements::<i64>(program, engine, part)?.copy_from_slice(values);
                continue;
            };
            check_offsets(name, values, lookups)?;
            let part = InputPart { len: part.len + usize::from(closes), ..part.clone() };
            let to = elements::<i64>(program, engine, &part)?;
            to.iter_mut().zip(values).for_each(|(to, &offset)| *to = base as i64 + offset);
            if closes && let Some(end) = to.last_mut() {
                *end = (base + lookups) as i64;
            }
        }
        Ok(())
    }

    /// Runs one step with the inputs that were fed last, and returns its loss. On a CPU parameters change last: after an error in the forward or
    /// the backward pass they are as before, unless the tables take their step in the backward pass.
    ///
    /// # Errors
    /// Where an op fails, for example at an index that a table does not have.
    pub fn step(&mut self) -> Result<f32, Error> {
        self.start()?;
        self.finish().map(|loss| loss.unwrap_or(f32::NAN))
    }

    /// Starts one step, and returns the loss of the step before, if one was started and its loss was not returned. On a GPU the step goes on
    /// while the next inputs are fed; errors in its inputs are reported by [`Session::finish`]. On a CPU it is done on return.
    ///
    /// # Errors
    /// As [`Session::step`].
    pub fn start(&mut self) -> Result<Option<f32>, Error> {
        if let Engine::Gpu(gpu) = &mut self.engine {
            gpu.send_inputs(Access::Train)?;
        }
        let before = self.take_loss()?;
        let begin = Instant::now();
        let Session { engine, program, numbers, steps, .. } = self;
        match engine {
            Engine::Cpu(..) => {
                (0..program.instructions.len()).try_for_each(|at| self.instruction(at))?;
                self.time = begin.elapsed();
            }
            Engine::Gpu(gpu) => gpu.start(program, numbers, *steps)?,
        }
        self.steps += 1;
        self.started = true;
        Ok(before)
    }

    /// Waits for the step that was started last, and returns its loss, if it was not returned.
    ///
    /// # Errors
    /// As [`Session::step`].
    pub fn finish(&mut self) -> Result<Option<f32>, Error> {
        let Session { engine, program, numbers, .. } = self;
        if let Engine::Gpu(gpu) = engine {
            gpu.check(program, numbers)?;
        }
        self.take_loss()
    }

    pub(crate) fn take_loss(&mut self) -> Result<Option<f32>, Error> {
        if !std::mem::take(&mut self.started) {
            return Ok(None);
        }
        let loss = self.loss(self.program.rounds())?;
        if let Engine::Gpu(gpu) = &self.engine {
            self.time = gpu.step_time()?;
        }
        Ok(Some(loss))
    }

    /// Time of the step whose loss was returned last: on a GPU from the first copy of its inputs on the device to its last kernel.
    #[must_use]
    pub fn step_time(&self) -> Duration {
        self.time
    }

    /// Runs one instruction of the next step.
    pub(crate) fn instruction(&mut self, at: usize) -> Result<(), Error> {
        let Session { program, engine, numbers, steps, group, .. } = self;
        let Engine::Cpu(cpu, regions) = engine else { return Ok(()) };
        let instruction = &mut program.instructions[at];
        let regions = regions.each_mut().map(HugeBuffer::bytes_mut);
        let memory = Slices::new(regions, &instruction.at, &instruction.order);
        let mut run = Run { cpu, memory, numbers, group: group.as_ref(), step: *steps + 1 };
        instruction.kernel.run(&mut run).map_err(|source| Error::Run {
            op: instruction.name.clone(),
            place: instruction.place.clone(),
            source,
        })
    }

    /// Mean loss of the first rounds of the last pass.
    pub(crate) fn loss(&mut self, rounds: usize) -> Result<f32, Error> {
        let losses = &self.program.losses[..rounds.min(self.program.losses.len())];
        let regions = match &mut self.engine {
            Engine::Gpu(gpu) => return gpu.loss(losses.len()),
            Engine::Cpu(_, regions) => regions,
        };
        let loss = |&(memory, at): &(MemoryId, usize)| {
            let place = self.program.plan.piece(memory);
            let bytes = &regions[place.region as usize].bytes()[place.start..][..place.bytes];
            bytemuck::cast_slice::<u8, f32>(bytes)[at]
        };
        Ok(mean(losses.iter().map(loss)))
    }

    /// Counts of the row caches of all tables in host memory, over the batches so far, evaluations included; `None` without such tables.
    #[must_use]
    pub fn row_cache_statistics(&self) -> Option<Statistics> {
        match &self.engine {
            Engine::Cpu(..) => None,
            Engine::Gpu(gpu) => gpu.row_cache_statistics(),
        }
    }

    /// Bytes of the program's memory on its device: parameters, states, inputs and temporary tensors. The rows of caches are not counted.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.program.plan.peak()
    }

    fn initialize(&mut self, seed: u64) -> Result<(), Error> {
        let Session { program, engine, .. } = self;
        let Engine::Cpu(cpu, regions) = engine else { return Ok(()) };
        for kept in &program.kept {
            let place = program.plan.piece(kept.memory);
            let bytes = &mut regions[place.region as usize].bytes_mut()[place.start..][..place.bytes];
            match &kept.kind {
                KeptKind::Parameter(initial) if let Some(part) = kept.part => {
                    let keys = [seed, initial::key(&kept.name)];
                    let elements = &mut bytemuck::cast_slice_mut(bytes)[kept.start..][..kept.len()];
                    for (rows, to) in blocks(kept, part).zip(elements.chunks_mut(block(kept, part))) {
                        let own = initial::rows_of_part(cpu, *initial, keys, part, kept.shape[1], rows);
                        to.copy_from_slice(&own);
                    }
                }
                KeptKind::Parameter(initial) => {
                    let elements = &mut bytemuck::cast_slice_mut(bytes)[kept.start..][..kept.len()];
                    initial::fill(cpu, *initial, seed, initial::key(&kept.name), elements);
                }
                KeptKind::State => {}
                KeptKind::Indices(indices) => {
                    let to = &mut bytemuck::cast_slice_mut::<u8, i64>(bytes)[kept.start..];
                    to.iter_mut().zip(indices).for_each(|(to, &index)| *to = index);
                }
            }
        }
        Ok(())
    }

    fn fill_on_gpu(&mut self, cpu: &Cpu, seed: u64) -> Result<(), Error> {
        let Session { program, engine, .. } = self;
        let Engine::Gpu(gpu) = engine else { return Ok(()) };
        let mut elements: Vec<f32> = Vec::new();
        for kept in &program.kept {
            let place = program.plan.piece(kept.memory);
            match &kept.kind {
                KeptKind::Parameter(initial) if let Some(part) = kept.part => {
                    let keys = [seed, initial::key(&kept.name)];
                    for rows in blocks(kept, part) {
                        let first = kept.start + rows.start * kept.shape[1];
                        let own = initial::rows_of_part(cpu, *initial, keys, part, kept.shape[1], rows);
                        gpu.write_kept(&program.plan, kept.memory, first, &own)?;
                    }
                }
                KeptKind::Parameter(initial) => {
                    let keys = [seed, initial::key(&kept.name)];
                    for first in (0..kept.len()).step_by(FILLED * initial::PART) {
                        elements.resize((kept.len() - first).min(FILLED * initial::PART), 0.0);
                        initial::fill_parts(cpu, *initial, keys, first / initial::PART, &mut elements);
                        gpu.write_kept(&program.plan, kept.memory, kept.start + first, &elements)?;
                    }
                }
                KeptKind::State => {}
                KeptKind::Indices(indices) => {
                    gpu.write(place.region, place.start + 8 * kept.start, bytemuck::cast_slice(indices))?;
                }
            }
        }
        Ok(())
    }

    /// Allocates the states of tables that are updated in the backward pass; on a GPU compiles all kernels.
    fn prepare(&mut self) -> Result<(), Error> {
        let Session { program, engine, numbers, .. } = self;
        let regions = match engine {
            Engine::Gpu(gpu) => return gpu.prepare(program, numbers),
            Engine::Cpu(_, regions) => regions,
        };
        for instruction in &mut program.instructions {
            let Kernel::Rows(update) = &mut instruction.kernel else { continue };
            let regions = regions.each_mut().map(HugeBuffer::bytes_mut);
            let mut memory = Slices::new(regions, &instruction.at, &instruction.order);
            update.prepare(&mut memory, numbers).map_err(|source| Error::Run {
                op: instruction.name.clone(),
                place: instruction.place.clone(),
                source,
            })?;
        }
        Ok(())
    }

    /// The bytes of a piece of memory on a CPU.
    #[cfg(test)]
    pub(crate) fn bytes_at(&self, place: &crate::slices::SlotPlace) -> &[u8] {
        match &self.engine {
            Engine::Cpu(_, regions) => &regions[place.region as usize].bytes()[place.start..][..place.bytes],
            Engine::Gpu(_) => &[],
        }
    }

    /// Copies the floats of a kept tensor.
    pub(crate) fn kept_floats(&mut self, at: usize) -> Result<Vec<f32>, Error> {
        let Session { program, engine, .. } = self;
        let kept = &program.kept[at];
        match engine {
            Engine::Cpu(_, regions) => {
                let place = program.plan.piece(kept.memory);
                let start = place.start + 4 * kept.start;
                let bytes = &regions[place.region as usize].bytes()[start..][..4 * kept.len()];
                Ok(bytemuck::cast_slice(bytes).to_vec())
            }
            Engine::Gpu(gpu) => {
                let mut floats = vec![0.0_f32; kept.len()];
                gpu.read_kept(&program.plan, kept.memory, kept.start, &mut floats)?;
                Ok(floats)
            }
        }
    }

    /// Replaces the floats of a kept tensor.
    pub(crate) fn set_kept_floats(&mut self, at: usize, values: &[f32]) -> Result<(), Error> {
        let Session { program, engine, .. } = self;
        let kept = &program.kept[at];
        match engine {
            Engine::Cpu(_, regions) => {
                let place = program.plan.piece(kept.memory);
                let (start, bytes) = (place.start + 4 * kept.start, bytemuck::cast_slice(values));
                regions[place.region as usize].bytes_mut()[start..][..bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
            Engine::Gpu(gpu) => gpu.write_kept(&program.plan, kept.memory, kept.start, values),
        }
    }
}

/// Rows of a part of a table that are filled at once.
fn rows_at_once(part: TensorPart) -> usize {
    (FILLED * initial::PART / part.whole[1].max(1)).max(1)
}

/// Elements of a block of rows that is filled at once.
fn block(kept: &Kept, part: TensorPart) -> usize {
    (rows_at_once(part) * kept.shape[1]).max(1)
}

/// Blocks of rows of a part of a table.
fn blocks(kept: &Kept, part: TensorPart) -> impl Iterator<Item = Range<usize>> {
    let (all, step) = (kept.shape[0], rows_at_once(part));
    (0..all).step_by(step).map(move |first| first..(first + step).min(all))
}

/// Fails where a program is compiled for another device.
fn check_target(program: &Program, needed: Target) -> Result<(), Error> {
    if program.target == needed {
        return Ok(());
    }
    let why = format!("it is compiled for {}, and the session runs on {needed}", program.target);
    Err(Error::Order { why })
}

/// Fails where a program is the step of a rank of another group.
fn check_ranks(program: &Program, ranks: usize) -> Result<(), Error> {
    if program.ranks == ranks {
        return Ok(());
    }
    let why = format!("it is the step of one of {} ranks, and the group has {ranks}", program.ranks);
    Err(Error::Order { why })
}

/// The parts of memory of an input.
fn parts<'p>(program: &'p Program, name: &str) -> Result<&'p [InputPart], Error> {
    program.inputs.get(name).map(Vec::as_slice).ok_or_else(|| Error::Name {
        what: "input",
        name: name.to_owned(),
        known: program.inputs.keys().cloned().collect::<Vec<_>>().join(", "),
    })
}

fn elements<'r, T: bytemuck::Pod>(
    program: &Program,
    engine: &'r mut Engine,
    part: &InputPart,
) -> Result<&'r mut [T], Error> {
    let place = program.plan.piece(part.memory);
    let (start, bytes) = (place.start + size_of::<T>() * part.start, size_of::<T>() * part.len);
    let bytes = match engine {
        Engine::Cpu(_, regions) => &mut regions[place.region as usize].bytes_mut()[start..][..bytes],
        Engine::Gpu(gpu) => gpu.input(start, bytes)?,
    };
    Ok(bytemuck::cast_slice_mut(bytes))
}

fn unfit(name: &str, part: &InputPart, given: String) -> Error {
    let kind = if part.kind == PartKind::Floats { "floats" } else { "whole numbers" };
    Error::Values { name: name.to_owned(), needed: format!("{} {kind}", part.len), given }
}

fn check_offsets(name: &str, values: &[i64], lookups: usize) -> Result<(), Error> {
    let mut last = 0;
    for (at, &value) in values.iter().enumerate() {
        let most = if at == 0 { 0 } else { i64::try_from(lookups).unwrap_or(i64::MAX) };
        if value < last || value > most {
            return Err(Error::Offset { name: name.to_owned(), at, value, lookups });
        }
        last = value;
    }
    Ok(())
}
