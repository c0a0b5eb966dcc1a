//! The stream of exchanges with other ranks, beside the stream of all other work.
#![allow(unsafe_code, reason = "events order the streams, which the type system does not see")]

use steptime_cuda::{Buffer, Device, Error, Event, Stream};

use crate::program::Program;

/// A stream beside the main one, whose work begins first, with events that order both.
#[derive(Debug)]
pub(super) struct Beside {
    stream: Stream,
    /// The main stream has reached the begin of an exchange.
    ready: Event,
    /// Ends of exchanges, by instruction.
    done: Vec<Option<Event>>,
}

impl Beside {
    pub(super) fn new(device: &Device, program: &Program) -> Result<Beside, Error> {
        let event = |exchanges: bool| exchanges.then(|| Event::new(device)).transpose();
        let done = program.instructions.iter().map(|one| event(one.kernel.is_exchange()));
        let done = done.collect::<Result<_, _>>()?;
        Ok(Beside { stream: device.urgent_stream()?, ready: Event::new(device)?, done })
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Makes the stream wait for the work in the main one, and gives it the memory.
    pub(super) fn begin(&self, main: &Stream, regions: &[Buffer<u8>]) -> Result<(), Error> {
        main.record(&self.ready)?;
        self.stream.wait(&self.ready)?;
        // SAFETY: this stream waits for all work that is in the main one.
        regions.iter().for_each(|region| unsafe { region.pass_on(main, &self.stream) });
        Ok(())
    }

    /// Notes the end of an exchange, and gives the memory back.
    pub(super) fn end(&self, main: &Stream, regions: &[Buffer<u8>], exchange: usize) -> Result<(), Error> {
        if let Some(done) = &self.done[exchange] {
            self.stream.record(done)?;
        }
        // SAFETY: work in the main stream that uses the bytes of the exchange follows `await_exchange`, by `schedule::actions`, which ends with all of
        // them.
        regions.iter().for_each(|region| unsafe { region.pass_on(&self.stream, main) });
        Ok(())
    }

    /// Makes the main stream wait for an exchange.
    pub(super) fn await_exchange(&self, main: &Stream, exchange: usize) -> Result<(), Error> {
        self.done[exchange].as_ref().map_or(Ok(()), |done| main.wait(done))
    }
}
