//! A step with the measured times of its instructions.

use std::time::Instant;

use crate::error::Error;
use crate::session::{Engine, Session};
use crate::step_times::{OpTimes, Span, StepTimes};

impl Session {
    /// Runs one step like [`Session::step`], and returns the times of its instructions, in the order of
    /// [`Program::instructions`](crate::Program::instructions). Parameters and losses have the bits of an ordinary step. On a GPU it runs launch
    /// by launch. The loss of a step that was started before is lost, unless [`Session::finish`] returned it.
    ///
    /// # Errors
    /// As [`Session::step`].
    pub fn measured_step(&mut self) -> Result<StepTimes, Error> {
        self.take_loss()?;
        let times = match &mut self.engine {
            Engine::Gpu(gpu) => gpu.measured_step(&mut self.program, &self.numbers, self.steps)?,
            Engine::Cpu(..) => self.measured_on_cpu()?,
        };
        self.steps += 1;
        self.time = times.time();
        Ok(times)
    }

    fn measured_on_cpu(&mut self) -> Result<StepTimes, Error> {
        let mut instructions = Vec::with_capacity(self.program.instructions.len());
        let begin = Instant::now();
        for at in 0..self.program.instructions.len() {
            let from = begin.elapsed();
            self.instruction(at)?;
            let host = Span { begin: from, end: begin.elapsed() };
            instructions.push(OpTimes { host, device: None });
        }
        let end = begin.elapsed();
        Ok(StepTimes {
            loss: self.loss(self.program.rounds())?,
            begin,
            inputs: None,
            instructions,
            wait: None,
            end,
        })
    }
}
