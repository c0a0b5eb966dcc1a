//! Events of Chrome's trace format, as PyTorch's profiler writes them.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

/// An event with begin and duration, both in microseconds.
#[derive(Serialize)]
struct Complete<'a, A> {
    ph: &'static str,
    cat: &'static str,
    name: &'a str,
    pid: u32,
    tid: u32,
    ts: f64,
    dur: f64,
    args: A,
}

/// Track of events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Track {
    /// Process, or number of the GPU.
    pub pid: u32,
    /// Thread, or number of the stream.
    pub tid: u32,
}

/// Writes the list of events, one a line.
pub struct Events<'w, W> {
    out: &'w mut W,
    any: bool,
}

impl<'w, W: Write> Events<'w, W> {
    /// An empty list, within the object whose members before it are `header`.
    ///
    /// # Errors
    /// Where the output cannot be written.
    pub fn new(out: &'w mut W, header: &Value) -> io::Result<Events<'w, W>> {
        let members = header.to_string();
        write!(out, "{},\n\"traceEvents\": [\n", members.strip_suffix('}').unwrap_or(&members))?;
        Ok(Events { out, any: false })
    }

    /// Adds an event from one time to another, in nanoseconds.
    ///
    /// # Errors
    /// Where the output cannot be written.
    pub fn add<A: Serialize>(
        &mut self,
        cat: &'static str,
        name: &str,
        track: Track,
        [begin, end]: [u64; 2],
        args: A,
    ) -> io::Result<()> {
        let Track { pid, tid } = track;
        let (ts, dur) = (micros(begin), micros(end.saturating_sub(begin)));
        self.put(&Complete { ph: "X", cat, name, pid, tid, ts, dur, args })
    }

    /// Adds a name or a place in the order of a track: `process_name`, `thread_name`.
    ///
    /// # Errors
    /// Where the output cannot be written.
    pub fn label(&mut self, kind: &str, track: Track, name: &str) -> io::Result<()> {
        let Track { pid, tid } = track;
        self.put(&json!({"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}))
    }

    /// Ends the list and the object.
    ///
    /// # Errors
    /// Where the output cannot be written.
    pub fn end(self) -> io::Result<()> {
        self.out.write_all(b"\n]}\n")
    }

    fn put<T: Serialize>(&mut self, event: &T) -> io::Result<()> {
        if std::mem::replace(&mut self.any, true) {
            self.out.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut *self.out, event).map_err(io::Error::from)
    }
}

/// Microseconds of a time in nanoseconds.
fn micros(time: u64) -> f64 {
    time as f64 / 1e3
}
