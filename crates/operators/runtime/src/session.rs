//! A program with its memory: inputs are fed, steps run, parameters are read and written by name.

use std::time::{Duration, Instant};

use steptime_ops::Cpu;
use steptime_ops::embedding::HugeBuffer;

use crate::error::Error;
use crate::initial;
use crate::inputs::{InputPart, PartKind};
use crate::kept::{Kept, KeptKind};
use crate::kernel::Kernel;
use crate::numbers::Numbers;
use crate::program::Program;
use crate::run::Run;
use crate::slices::{Region, Slices};

/// A program in training.
#[derive(Debug)]
pub struct Session {
    pub(crate) program: Program,
    cpu: Cpu,
    /// Memory by region.
    regions: [HugeBuffer; 3],
    numbers: Numbers,
    /// Number of steps taken.
    steps: u64,
}

impl Session {
    /// A program with initial parameters: the distributions of PyTorch's modules, `nn.Linear` and `nn.EmbeddingBag`, by a generator whose numbers
    /// depend on the seed, the parameter and the position. Optimizer states are zero, and settings are PyTorch's defaults.
    ///
    /// # Errors
    /// Where memory is not sufficient.
    pub fn new(program: Program, cpu: Cpu, seed: u64) -> Result<Session, Error> {
        let allocate = |region: Region, what: &'static str| {
            let bytes = program.plan.bytes(region);
            HugeBuffer::zeroed(bytes).map_err(|source| Error::Memory { what, bytes: bytes as u64, source })
        };
        let regions = [
            allocate(Region::Kept, "parameters and optimizer states")?,
            allocate(Region::Inputs, "inputs")?,
            allocate(Region::Arena, "temporary tensors")?,
        ];
        let numbers = Numbers::for_class(program.optimizer.as_deref().unwrap_or("SGD"));
        let mut session = Session { program, cpu, regions, numbers, steps: 0 };
        session.initialize(seed);
        session.prepare()?;
        Ok(session)
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
    }

    /// Feeds an input of floats, such as `dense` or `labels`, row by row.
    ///
    /// # Errors
    /// Where no input has the name, or the number of elements differs.
    pub fn feed_floats(&mut self, name: &str, values: &[f32]) -> Result<(), Error> {
        let Session { program, regions, .. } = self;
        for part in parts(program, name)? {
            let given = || format!("{} floats", values.len());
            if part.kind != PartKind::Floats || part.len != values.len() {
                return Err(unfit(name, part, given()));
            }
            elements::<f32>(program, regions, part).copy_from_slice(values);
        }
        Ok(())
    }

    /// Feeds an input of whole numbers, such as `tables.0.indices` or `tables.0.offsets`. Indices are checked by the lookup that takes them.
    ///
    /// # Errors
    /// Where no input has the name, the number of elements differs, or offsets decrease.
    pub fn feed_ints(&mut self, name: &str, values: &[i64]) -> Result<(), Error> {
        let Session { program, regions, .. } = self;
        for part in parts(program, name)? {
            if part.kind == PartKind::Floats || part.len != values.len() {
                return Err(unfit(name, part, format!("{} whole numbers", values.len())));
            }
            let PartKind::Offsets { base, lookups, closes } = part.kind else {
                elements::<i64>(program, regions, part).copy_from_slice(values);
                continue;
            };
            check_offsets(name, values, lookups)?;
            let part = InputPart { len: part.len + usize::from(closes), ..part.clone() };
            let to = elements::<i64>(program, regions, &part);
            to.iter_mut().zip(values).for_each(|(to, &offset)| *to = base as i64 + offset);
            if closes && let Some(end) = to.last_mut() {
                *end = (base + lookups) as i64;
            }
        }
        Ok(())
    }

    /// Runs one step with the inputs that were fed last, and returns its loss. Parameters change last: after an error in the forward or the
    /// backward pass they are as before, unless the tables take their step in the backward pass.
    ///
    /// # Errors
    /// Where an op fails, for example at an index that a table does not have.
    pub fn step(&mut self) -> Result<f32, Error> {
        self.observed(|_, _| ())?;
        Ok(self.loss())
    }

    /// Runs one step like [`Session::step`], and returns the time of each instruction, with the name of its op.
    ///
    /// # Errors
    /// As [`Session::step`].
    pub fn profile(&mut self) -> Result<Vec<(String, Duration)>, Error> {
        let mut times = Vec::with_capacity(self.program.instructions.len());
        self.observed(|name, time| times.push((name.to_owned(), time)))?;
        Ok(times)
    }

    /// Runs one step; `ended` takes the name and the time of each instruction.
    fn observed(&mut self, mut ended: impl FnMut(&str, Duration)) -> Result<(), Error> {
        for at in 0..self.program.instructions.len() {
            let start = Instant::now();
            self.instruction(at)?;
            ended(&self.program.instructions[at].name, start.elapsed());
        }
        self.steps += 1;
        Ok(())
    }

    /// Runs one instruction of the next step.
    pub(crate) fn instruction(&mut self, at: usize) -> Result<(), Error> {
        let Session { program, cpu, regions, numbers, steps } = self;
        let instruction = &mut program.instructions[at];
        let regions = regions.each_mut().map(HugeBuffer::bytes_mut);
        let memory = Slices::new(regions, &instruction.at, &instruction.order);
        let mut run = Run { cpu, memory, numbers, step: *steps + 1 };
        instruction.kernel.run(&mut run).map_err(|source| Error::Run {
            op: instruction.name.clone(),
            place: instruction.place.clone(),
            source,
        })
    }

    /// The bytes of a piece of memory.
    pub(crate) fn bytes_at(&self, place: &crate::slices::SlotPlace) -> &[u8] {
        &self.regions[place.region as usize].bytes()[place.start..][..place.bytes]
    }

    /// Loss of the last pass.
    pub(crate) fn loss(&self) -> f32 {
        let Some((memory, at)) = self.program.loss else { return f32::NAN };
        let place = self.program.plan.piece(memory);
        let bytes = &self.regions[place.region as usize].bytes()[place.start..][..place.bytes];
        bytemuck::cast_slice::<u8, f32>(bytes)[at]
    }

    /// Bytes of memory in use: parameters, states, inputs and temporary tensors.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.program.plan.peak()
    }

    fn initialize(&mut self, seed: u64) {
        let Session { program, cpu, regions, .. } = self;
        for kept in &program.kept {
            let elements = kept_bytes(program, regions, kept);
            match &kept.kind {
                KeptKind::Parameter(initial) => {
                    let elements = &mut bytemuck::cast_slice_mut(elements)[kept.start..][..kept.len()];
                    initial::fill(cpu, *initial, seed, initial::key(&kept.name), elements);
                }
                KeptKind::State => {}
                KeptKind::Indices(indices) => {
                    let to = &mut bytemuck::cast_slice_mut::<u8, i64>(elements)[kept.start..];
                    to.iter_mut().zip(indices).for_each(|(to, &index)| *to = index);
                }
            }
        }
    }

    /// Allocates the states of tables that are updated in the backward pass.
    fn prepare(&mut self) -> Result<(), Error> {
        let Session { program, regions, numbers, .. } = self;
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

    /// The floats of a kept tensor.
    pub(crate) fn floats_of(&mut self, at: usize) -> &mut [f32] {
        let Session { program, regions, .. } = self;
        let kept = &program.kept[at];
        &mut bytemuck::cast_slice_mut(kept_bytes(program, regions, kept))[kept.start..][..kept.len()]
    }
}

fn kept_bytes<'r>(program: &Program, regions: &'r mut [HugeBuffer; 3], kept: &Kept) -> &'r mut [u8] {
    let place = program.plan.piece(kept.memory);
    &mut regions[place.region as usize].bytes_mut()[place.start..][..place.bytes]
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
    regions: &'r mut [HugeBuffer; 3],
    part: &InputPart,
) -> &'r mut [T] {
    let place = program.plan.piece(part.memory);
    let bytes = &mut regions[place.region as usize].bytes_mut()[place.start..][..place.bytes];
    &mut bytemuck::cast_slice_mut(bytes)[part.start..][..part.len]
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
