//! A step launch by launch, with the times of its work by events.

use std::time::{Duration, Instant};

use steptime_cuda::Event;
use steptime_cuda::cache::Access;

use super::GpuEngine;
use crate::error::Error;
use crate::numbers::Numbers;
use crate::program::Program;
use crate::step_times::{OpTimes, Span, StepTimes};

impl GpuEngine {
    /// Runs a step launch by launch, and waits for it. An event after each launch marks the end of its work.
    pub(crate) fn measured_step(
        &mut self,
        program: &mut Program,
        numbers: &Numbers,
        steps: u64,
    ) -> Result<StepTimes, Error> {
        let new = |_| Event::new(&self.options.device);
        let mut ends = (0..=program.instructions.len()).map(new).collect::<Result<Vec<_>, _>>()?.into_iter();
        let zero = new(0)?;
        self.stream.synchronize()?;
        let begin = Instant::now();
        self.stream.record(&zero)?;
        // The stream is empty, so the event is reached at once.
        let offset = begin.elapsed();
        let mut marks = Vec::with_capacity(program.instructions.len() + 1);
        let mut launched = |engine: &GpuEngine, from: Duration| {
            let host = Span { begin: from, end: begin.elapsed() };
            if let Some(end) = ends.next() {
                engine.stream.record(&end)?;
                marks.push((host, end));
            }
            Ok::<_, Error>(())
        };
        let from = begin.elapsed();
        self.send_inputs(Access::Train)?;
        self.place(program, numbers, steps)?;
        launched(self, from)?;
        for at in 0..program.instructions.len() {
            let from = begin.elapsed();
            self.launch(program, at, numbers)?;
            launched(self, from)?;
        }
        self.read_losses(program, self.losses.len())?;
        let from = begin.elapsed();
        let loss = self.loss(self.losses.len())?;
        self.stream.synchronize()?;
        let end = begin.elapsed();
        self.warm = true;
        let mut before = offset;
        let mut times = Vec::with_capacity(marks.len());
        for (host, end) in marks {
            let done = offset + end.since(&zero)?;
            let work = Span { begin: before.max(host.begin).min(done), end: done };
            before = done;
            times.push(OpTimes { host, device: Some(work) });
        }
        self.check(program, numbers)?;
        let instructions = times.split_off(1);
        let (inputs, wait) = (times.pop(), Some(Span { begin: from, end }));
        Ok(StepTimes { loss, begin, inputs, instructions, wait, end })
    }
}
