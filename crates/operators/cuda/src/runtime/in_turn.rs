//! Device memory that an operator keeps from launch to launch, and kernels take at its word.
//!
//! Launches in one stream come one after the other. Those in another would find it half written: they wait.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Error, Stream};

/// Which stream used the memory last.
#[derive(Debug)]
pub(crate) struct InTurn {
    /// The stream that it was written in.
    written: u64,
    /// Whether it was read in another one since.
    strayed: AtomicBool,
}

impl InTurn {
    /// Of memory that was set up in this stream.
    pub(crate) fn new(stream: &Stream) -> InTurn {
        InTurn::of(stream.number())
    }

    fn of(stream: u64) -> InTurn {
        InTurn { written: stream, strayed: AtomicBool::new(false) }
    }

    /// Waits, where another stream may still use the memory, before this one writes it.
    pub(crate) fn write(&mut self, stream: &Stream) -> Result<(), Error> {
        if self.waits_to_write(stream.number()) {
            stream.device().synchronize()?;
        }
        *self = InTurn::new(stream);
        Ok(())
    }

    /// Waits, where another stream may still write the memory, before this one reads it.
    pub(crate) fn read(&self, stream: &Stream) -> Result<(), Error> {
        if self.waits_to_read(stream.number()) {
            stream.device().synchronize()?;
        }
        Ok(())
    }

    fn waits_to_write(&self, stream: u64) -> bool {
        self.written != stream || self.strayed.load(Ordering::Relaxed)
    }

    fn waits_to_read(&self, stream: u64) -> bool {
        let strays = self.written != stream;
        self.strayed.fetch_or(strays, Ordering::Relaxed);
        strays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_stream_waits() {
        let turn = InTurn::of(1);
        assert!(!turn.waits_to_read(1) && !turn.waits_to_write(1));
        assert!(turn.waits_to_write(2));
        assert!(turn.waits_to_read(2) && turn.waits_to_read(2));
        // The first is not to write while the second may still read.
        assert!(!turn.waits_to_read(1) && turn.waits_to_write(1));
    }
}
