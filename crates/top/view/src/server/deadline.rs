//! Connections with a deadline, however slow the other side is.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Reader and writer with a deadline.
pub(super) struct TimedStream<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl<'a> TimedStream<'a> {
    /// Sets the deadline to `within` from now.
    pub(super) fn new(stream: &'a TcpStream, within: Duration) -> TimedStream<'a> {
        TimedStream { stream, until: Instant::now() + within }
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for TimedStream<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(bytes)
    }
}

impl Write for TimedStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
