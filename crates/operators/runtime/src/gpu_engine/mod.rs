//! The memory of a program on a GPU, and its steps: the first launch by launch, all others as one CUDA graph.

mod beside;
mod hazards;
mod measure;
mod recorder;
mod replay;
mod schedule;

use std::time::Duration;

use steptime_cuda::cache::{Access, Statistics};
use steptime_cuda::gemm::{Blas, Math};
use steptime_cuda::optimizer::PITCH;
use steptime_cuda::{Buffer, Device, Event, Graph, Parts, Readback, SliceMut, Staging, Stream};

use self::beside::Beside;
use self::hazards::Hazards;
use self::recorder::Recorder;
use self::replay::{Played, Replay};
use self::schedule::Action;
use crate::bytes::Bytes;
use crate::error::{Error, Failure};
use crate::gpu::{Gpu, GpuSlices, GpuWork, PartSink, RowCaches, StateMemory};
use crate::gpu_group::{GpuGroup, Link};
use crate::kernel::Kernel;
use crate::losses::mean;
use crate::numbers::Numbers;
use crate::places::MemoryId;
use crate::plan::MemoryPlan;
use crate::program::{Instruction, Program};
use crate::slices::{Region, SlotPlace};

/// Room for the numbers of an optimizer.
const NUMBERS: usize = 8 * PITCH;

/// Settings of a program on a GPU.
#[derive(Debug, Clone)]
pub struct GpuOptions {
    /// The GPU.
    pub device: Device,
    /// Precision of products of floats.
    pub math: Math,
    /// Whether steps after the first are replayed as one CUDA graph.
    pub graph: bool,
    /// The rank of its job, where it is one of several.
    pub group: Option<GpuGroup>,
}

/// Memory and streams of a program.
#[derive(Debug)]
pub(crate) struct GpuEngine {
    // Dropped first: their launches use all memory below. Each belongs to a combination of buffers of the row caches.
    replays: Vec<(u64, Replay)>,
    /// The stream of exchanges with other ranks, in replays.
    beside: Option<Beside>,
    options: GpuOptions,
    stream: Stream,
    blas: Blas,
    regions: [Buffer<u8>; 3],
    caches: RowCaches,
    inputs: Staging,
    numbers: Buffer<f32>,
    sent: Staging,
    /// Numbers and learning rate on the device.
    current: (Vec<f32>, f32),
    /// The loss of each round.
    losses: Vec<(Readback<f32>, usize)>,
    /// Begin and end of the step that was started last.
    events: [Event; 2],
    /// Whether a step ran, so that all later ones are equal.
    warm: bool,
    /// Whether other GPUs may still write the memory.
    shared: bool,
}

impl GpuEngine {
    /// Allocates the memory of a program.
    pub(crate) fn new(program: &Program, options: GpuOptions) -> Result<GpuEngine, Error> {
        let device = &options.device;
        let stream = device.stream()?;
        let bytes = |region: Region| program.plan.bytes(region).max(64);
        let region = |region: Region| Buffer::zeros(&stream, bytes(region));
        let regions = [region(Region::Kept)?, region(Region::Inputs)?, region(Region::Arena)?];
        let caches = RowCaches::new(&stream, &program.row_caches)?;
        let loss = |&(memory, at): &(MemoryId, usize)| {
            let place = program.plan.piece(memory);
            Ok::<_, Error>((Readback::new(device, 1)?, place.start / 4 + at))
        };
        let losses = program.losses.iter().map(loss).collect::<Result<_, _>>()?;
        Ok(GpuEngine {
            replays: Vec::new(),
            beside: options.group.as_ref().map(|_| Beside::new(device, program)).transpose()?,
            shared: options.group.as_ref().is_some_and(|group| matches!(group.link, Link::Peers(_))),
            blas: Blas::open(device)?,
            regions,
            caches,
            inputs: Staging::new(device, bytes(Region::Inputs))?,
            numbers: Buffer::zeros(&stream, NUMBERS)?,
            sent: Staging::new(device, 4 * NUMBERS)?,
            current: (Vec::new(), f32::NAN),
            losses,
            events: [Event::new(device)?, Event::new(device)?],
            warm: false,
            stream,
            options,
        })
    }

    /// Bytes of the inputs on the host, for writing.
    pub(crate) fn input(&mut self, start: usize, bytes: usize) -> Result<&mut [u8], Error> {
        Ok(self.inputs.change(start..start + bytes)?)
    }

    /// Compiles the kernels of all instructions.
    pub(crate) fn prepare(&mut self, program: &mut Program, numbers: &Numbers) -> Result<(), Error> {
        self.stream.synchronize()?;
        self.replays.clear();
        for at in 0..program.instructions.len() {
            self.with(program, at, numbers, |work, gpu| work.prepare(gpu))?;
        }
        self.warm = false;
        self.current = (Vec::new(), f32::NAN);
        Ok(())
    }

    /// Starts to copy the inputs that were fed last to the device, and the table rows that they look up, while the step before still runs.
    pub(crate) fn send_inputs(&mut self, access: Access) -> Result<(), Error> {
        self.inputs.send()?;
        self.caches.request(&self.stream, &self.inputs, access)
    }

    /// Starts a step with the inputs that were sent last. `steps` is the number of steps before.
    pub(crate) fn start(
        &mut self,
        program: &mut Program,
        numbers: &Numbers,
        steps: u64,
    ) -> Result<(), Error> {
        self.stream.record(&self.events[0])?;
        self.place(program, numbers, steps)?;
        if self.warm && self.options.graph {
            self.replay(program, numbers)?;
        } else {
            for at in 0..program.instructions.len() {
                self.launch(program, at, numbers)?;
            }
            self.warm = true;
        }
        self.stream.record(&self.events[1])?;
        self.read_losses(program, self.losses.len())
    }

    /// Puts inputs and numbers that changed in their places, and takes the rows of the inputs.
    fn place(&mut self, program: &mut Program, numbers: &Numbers, steps: u64) -> Result<(), Error> {
        self.inputs.place(&self.stream, &mut self.regions[Region::Inputs as usize].as_mut())?;
        self.caches.take(&self.stream, &self.inputs)?;
        let class = program.optimizer.as_deref().unwrap_or("SGD");
        let now = numbers.of_step(class, steps + 1);
        if now != self.current.0 {
            let to = self.sent.change(0..4 * NUMBERS)?;
            for (at, number) in now.iter().enumerate() {
                to[4 * PITCH * at..][..4].copy_from_slice(bytemuck::bytes_of(number));
            }
            self.sent.upload(&self.stream, &mut self.numbers.as_mut().cast())?;
            self.current.0 = now;
        }
        let rate = numbers.rate as f32;
        if rate != self.current.1 {
            let first = self.current.1.is_nan();
            for instruction in &mut program.instructions {
                let Kernel::Gpu(work) = &mut instruction.kernel else { continue };
                let Some(rows) = work.rows_mut() else { continue };
                let (stream, caches) = (&self.stream, &mut self.caches);
                let set = if first {
                    rows.set_steps(StateMemory { stream, caches: &mut *caches }, steps)
                } else {
                    Ok(())
                };
                set.and_then(|()| rows.set_rate(StateMemory { stream, caches }, rate))
                    .map_err(|source| failed(&instruction.name, &instruction.place, source))?;
            }
            self.current.1 = rate;
        }
        Ok(())
    }

    fn replay(&mut self, program: &mut Program, numbers: &Numbers) -> Result<(), Error> {
        let buffers = self.caches.buffers();
        let at = match self.replays.iter().position(|(own, _)| *own == buffers) {
            Some(at) => at,
            None => {
                let captured = self.capture(program, numbers)?;
                self.replays.push((buffers, captured));
                self.replays.len() - 1
            }
        };
        let parts = self.replays[at].1.parts();
        for part in 0..parts {
            match self.replays[at].1.run(part)? {
                Some(Action::Start(exchange)) => self.start_exchange(program, exchange, numbers)?,
                Some(Action::Await(exchange)) => {
                    if let Some(beside) = &self.beside {
                        beside.await_exchange(&self.stream, exchange)?;
                    }
                }
                Some(Action::Run(_)) | None => {}
            }
        }
        Ok(())
    }

    /// Captures all instructions, except for exchanges. Work of later parts that reads inputs alone is in the first part.
    fn capture(&mut self, program: &mut Program, numbers: &Numbers) -> Result<Replay, Error> {
        let mut played = Vec::new();
        let actions = schedule::actions(&program.instructions);
        let runs = actions.iter().filter_map(|action| match action {
            Action::Run(instructions) => Some(&instructions[..]),
            Action::Start(_) | Action::Await(_) => None,
        });
        let mut early = runs.skip(1).collect::<Vec<_>>().concat();
        for action in &actions {
            played.push(match action {
                Action::Run(instructions) => {
                    let early = std::mem::take(&mut early);
                    Played::Graph(self.captured(program, [&early, instructions], numbers)?)
                }
                other => Played::Exchange(other.clone()),
            });
        }
        Ok(Replay::new(played))
    }

    /// Captures some instructions as one graph, with the early work of others.
    fn captured(
        &mut self,
        program: &mut Program,
        [early, instructions]: [&[usize]; 2],
        numbers: &Numbers,
    ) -> Result<Graph, Error> {
        let (stream, blas, math) = (&self.stream, &self.blas, self.options.math);
        let group = self.options.group.as_ref();
        let mut failure = None;
        let (regions, caches) = (&mut self.regions, &mut self.caches);
        let device_numbers = self.numbers.as_ref();
        let mut hazards = Hazards::default();
        let work = |stream: &Stream, parts: &mut Parts<'_>| {
            let is_early = early.iter().map(|&at| (at, true));
            for (at, is_early) in is_early.chain(instructions.iter().map(|&at| (at, false))) {
                let instruction = &mut program.instructions[at];
                let mut recorder = Recorder::new(parts, &mut hazards, Bytes::of_slots(instruction));
                let memory = slices(regions, instruction);
                let caches = &mut *caches;
                let parts = Some(&mut recorder as &mut dyn PartSink);
                let mut gpu =
                    Gpu { stream, blas, math, memory, caches, device_numbers, numbers, group, parts };
                let Kernel::Gpu(work) = &mut instruction.kernel else { continue };
                let launched =
                    if is_early { work.launch_early(&mut gpu).map(|_| ()) } else { work.launch(&mut gpu) };
                if let Err(source) = launched {
                    failure = Some(failed(&instruction.name, &instruction.place, source));
                    break;
                }
                recorder.finish()?;
            }
            Ok(())
        };
        let captured = Graph::capture_parts(stream, work);
        match failure {
            Some(failure) => Err(failure),
            None => Ok(captured?),
        }
    }

    /// Starts an exchange beside the work that is in the stream.
    fn start_exchange(&mut self, program: &mut Program, at: usize, numbers: &Numbers) -> Result<(), Error> {
        let instruction = &mut program.instructions[at];
        let (Kernel::Gpu(work), Some(beside)) = (&mut instruction.kernel, &self.beside) else {
            return Ok(());
        };
        beside.begin(&self.stream, &self.regions)?;
        let mut gpu = Gpu {
            stream: beside.stream(),
            blas: &self.blas,
            math: self.options.math,
            memory: places(&mut self.regions, &instruction.at, &instruction.order),
            caches: &mut self.caches,
            device_numbers: self.numbers.as_ref(),
            numbers,
            group: self.options.group.as_ref(),
            parts: None,
        };
        let launched =
            work.launch(&mut gpu).map_err(|source| failed(&instruction.name, &instruction.place, source));
        drop(gpu);
        beside.end(&self.stream, &self.regions, at)?;
        launched
    }

    /// Launches one instruction.
    pub(crate) fn launch(
        &mut self,
        program: &mut Program,
        at: usize,
        numbers: &Numbers,
    ) -> Result<(), Error> {
        self.with(program, at, numbers, |work, gpu| work.launch(gpu))?;
        if program.instructions[at].kernel.is_exchange() {
            // No kernel is loaded while another rank is waited for: that may wait for all work of the GPU.
            self.stream.synchronize()?;
        }
        Ok(())
    }

    /// Launches the instructions up to one with the inputs that were fed last, for a forward pass.
    pub(crate) fn forward(
        &mut self,
        program: &mut Program,
        numbers: &Numbers,
        steps: u64,
        last: usize,
    ) -> Result<(), Error> {
        self.send_inputs(Access::Read)?;
        self.place(program, numbers, steps)?;
        (0..=last).try_for_each(|at| self.launch(program, at, numbers))?;
        self.read_losses(program, 1)
    }

    /// Starts to read the losses of the first rounds.
    fn read_losses(&mut self, program: &Program, rounds: usize) -> Result<(), Error> {
        for ((readback, at), (memory, _)) in self.losses.iter_mut().zip(&program.losses).take(rounds) {
            let region = program.plan.piece(*memory).region as usize;
            let from = self.regions[region].as_ref().cast::<f32>();
            readback.start(&self.stream, from.slice(*at..*at + 1))?;
        }
        Ok(())
    }

    /// Waits for the losses of the first rounds of the pass that was started last, and returns their mean.
    pub(crate) fn loss(&mut self, rounds: usize) -> Result<f32, Error> {
        if self.losses.is_empty() {
            self.stream.synchronize()?;
        }
        let mut losses = Vec::with_capacity(rounds);
        for (readback, _) in self.losses.iter_mut().take(rounds) {
            losses.push(readback.get()?.first().copied().unwrap_or(f32::NAN));
        }
        Ok(mean(losses.into_iter()))
    }

    /// Time of the step that was started last, after waiting for its loss.
    pub(crate) fn step_time(&self) -> Result<Duration, Error> {
        Ok(self.events[1].since(&self.events[0])?)
    }

    /// Waits for all work, and reports errors in the inputs of the last pass.
    pub(crate) fn check(&mut self, program: &mut Program, numbers: &Numbers) -> Result<(), Error> {
        for at in 0..program.instructions.len() {
            self.with(program, at, numbers, |work, gpu| work.check(gpu))?;
        }
        Ok(())
    }

    /// Waits until all ranks have ended their steps: no other GPU uses the memory any more.
    pub(crate) fn leave(&mut self) -> Result<(), Error> {
        self.stream.synchronize()?;
        if let Some(group) = &self.options.group {
            group.rank.gather((), None)?;
        }
        self.shared = false;
        Ok(())
    }

    fn with(
        &mut self,
        program: &mut Program,
        at: usize,
        numbers: &Numbers,
        run: impl FnOnce(&mut Box<dyn GpuWork>, &mut Gpu<'_, '_>) -> Result<(), Failure>,
    ) -> Result<(), Error> {
        let instruction = &mut program.instructions[at];
        let mut gpu = Gpu {
            stream: &self.stream,
            blas: &self.blas,
            math: self.options.math,
            memory: slices(&mut self.regions, instruction),
            caches: &mut self.caches,
            device_numbers: self.numbers.as_ref(),
            numbers,
            group: self.options.group.as_ref(),
            parts: None,
        };
        let Kernel::Gpu(work) = &mut instruction.kernel else {
            return Err(failed(&instruction.name, &instruction.place, "it is compiled for a CPU".into()));
        };
        run(work, &mut gpu).map_err(|source| failed(&instruction.name, &instruction.place, source))
    }

    /// Copies a part of a region to the host.
    pub(crate) fn read(&mut self, region: Region, start: usize, to: &mut [u8]) -> Result<(), Error> {
        let end = start + to.len();
        Ok(self.regions[region as usize].as_ref().slice(start..end).read(&self.stream, to)?)
    }

    /// Copies from the host to a part of a region.
    pub(crate) fn write(&mut self, region: Region, start: usize, from: &[u8]) -> Result<(), Error> {
        let end = start + from.len();
        Ok(self.regions[region as usize].as_mut().slice(start..end).write(&self.stream, from)?)
    }

    /// Copies floats of kept memory to the host, from position `start` on.
    pub(crate) fn read_kept(
        &mut self,
        plan: &MemoryPlan,
        memory: MemoryId,
        start: usize,
        to: &mut [f32],
    ) -> Result<(), Error> {
        let place = plan.piece(memory);
        match place.region {
            Region::Host => self.caches.read(&self.stream, memory, start, to),
            region => self.read(region, place.start + 4 * start, bytemuck::cast_slice_mut(to)),
        }
    }

    /// Copies floats from the host to kept memory, from position `start` on.
    pub(crate) fn write_kept(
        &mut self,
        plan: &MemoryPlan,
        memory: MemoryId,
        start: usize,
        from: &[f32],
    ) -> Result<(), Error> {
        let place = plan.piece(memory);
        match place.region {
            Region::Host => self.caches.write(&self.stream, memory, start, from),
            region => self.write(region, place.start + 4 * start, bytemuck::cast_slice(from)),
        }
    }

    /// Counts of the row caches.
    pub(crate) fn row_cache_statistics(&self) -> Option<Statistics> {
        self.caches.statistics()
    }

    /// The memory of optimizer states of rows.
    pub(crate) fn state_memory(&mut self) -> StateMemory<'_> {
        StateMemory { stream: &self.stream, caches: &mut self.caches }
    }

    /// Forgets the numbers on the device: the next step sends all of them, and the number of steps.
    pub(crate) fn forget_numbers(&mut self) {
        self.current = (Vec::new(), f32::NAN);
    }
}

impl Drop for GpuEngine {
    fn drop(&mut self) {
        // Replays are not known to the memory that they use. After a failed kernel there is nothing to wait for.
        let _ = self.stream.synchronize();
        if self.shared {
            // A rank failed, and others may write this memory meanwhile: it is not freed.
            for region in &mut self.regions {
                if let Ok(none) = Buffer::uninit(&self.options.device, 0) {
                    std::mem::forget(std::mem::replace(region, none));
                }
            }
        }
    }
}

fn slices<'a>(regions: &'a mut [Buffer<u8>; 3], instruction: &Instruction) -> GpuSlices<'a> {
    places(regions, &instruction.at, &instruction.order)
}

fn places<'a>(regions: &'a mut [Buffer<u8>; 3], at: &[SlotPlace], order: &[usize]) -> GpuSlices<'a> {
    let regions: [SliceMut<'a, u8>; 3] = regions.each_mut().map(Buffer::as_mut);
    GpuSlices::new(regions, at, order)
}

fn failed(op: &str, place: &str, source: Failure) -> Error {
    Error::Run { op: op.to_owned(), place: place.to_owned(), source }
}
