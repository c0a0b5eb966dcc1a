//! One trace file: an object around a list of events or nodes, or the bare list.

use crate::byte_source::Feed;
use crate::distributed::DistributedRun;
use crate::error::Error;
use crate::execution::{self, ExecutionTrace, Schema};
use crate::json::{Cursor, Fault, Text};
use crate::kineto::{self, DeviceProperties, Trace};
use crate::list::{End, read_list};
use crate::other_profilers::Origin;
use crate::repairs::{Note, Notes};
use crate::units::Nanos;
use std::path::Path;

/// Contents of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    /// Kineto trace.
    Kineto(Box<Trace>),
    /// Execution trace.
    Execution(Box<ExecutionTrace>),
}

/// Kinds of trace to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kinds {
    pub(crate) kineto: bool,
    pub(crate) execution: bool,
}

/// Options of reading one file.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'p> {
    /// Path for messages.
    pub(crate) path: &'p Path,
    pub(crate) wanted: Kinds,
    /// Maximum number of threads that share the work.
    pub(crate) threads: usize,
}

/// Fields around the list.
#[derive(Default)]
struct Header {
    base_time: Nanos,
    /// Origin by the name of the program; `None` where the events tell it.
    program: Option<Origin>,
    devices: Vec<DeviceProperties>,
    distributed: Option<DistributedRun>,
    schema: String,
    pid: i64,
}

/// State of reading one file.
struct Reader<'p> {
    plan: Plan<'p>,
    header: Header,
    events: Option<kineto::Builder>,
    nodes: Option<(execution::Builder, u64)>,
    notes: Notes,
}

/// End of the outer object, and its position in the buffered bytes.
enum Outer {
    Closed(usize),
    Lost,
    Unwanted,
}

/// Next element of the outer object.
enum Next {
    Events,
    Nodes,
    Unwanted,
    Member,
    Close,
}

/// Reads a whole file; `None` if it is of a kind that `plan` does not include.
pub(crate) fn read<F: Feed>(feed: &mut F, plan: Plan<'_>) -> Result<Option<Document>, Error> {
    let mut reader =
        Reader { plan, header: Header::default(), events: None, nodes: None, notes: Notes::default() };
    let start = reader.start(feed)?;
    let end = match feed.bytes()[start] {
        b'[' if !plan.wanted.kineto => return Ok(None),
        b'[' => reader.events(feed, start + 1)?,
        _ => reader.members(feed, start + 1)?,
    };
    match end {
        Outer::Closed(end) => reader.tail(feed, end)?,
        Outer::Lost => {}
        Outer::Unwanted => return Ok(None),
    }
    reader.finish(feed).map(Some)
}

impl Reader<'_> {
    /// Returns the position of the first significant byte, a brace or a bracket.
    fn start<F: Feed>(&self, feed: &mut F) -> Result<usize, Error> {
        loop {
            let bytes = feed.bytes();
            let mark = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
            let blanks = bytes[mark..].iter().position(|byte| !byte.is_ascii_whitespace());
            match blanks.map(|blanks| mark + blanks) {
                Some(at) if matches!(bytes[at], b'{' | b'[') => return Ok(at),
                Some(at) if at + 16 <= bytes.len() || feed.ended() => {
                    let found = &bytes[at..bytes.len().min(at + 16)];
                    return Err(Error::NotJson {
                        path: self.plan.path.to_owned(),
                        offset: feed.base() + at as u64,
                        found: String::from_utf8_lossy(found).escape_debug().to_string(),
                    });
                }
                _ => {}
            }
            if !feed.more(0).map_err(Error::io(self.plan.path))? {
                return Err(Error::Empty { path: self.plan.path.to_owned() });
            }
        }
    }

    /// Reads members of the outer object from `at`; returns the position after its closing brace.
    fn members<F: Feed>(&mut self, feed: &mut F, mut at: usize) -> Result<Outer, Error> {
        let mut after_value = false;
        loop {
            let base = feed.base();
            let mut cursor = Cursor::new(feed.bytes());
            cursor.ended = feed.ended();
            cursor.at = at;
            cursor.after_value = after_value;
            let next = self.member(&mut cursor);
            if next.is_ok() {
                at = cursor.at;
                after_value = true;
                for (note, place) in cursor.quirks {
                    self.notes.add(note, base + place as u64);
                }
            }
            let list_end = match next {
                Ok(Next::Member) => continue,
                Ok(Next::Close) => return Ok(Outer::Closed(at)),
                Ok(Next::Unwanted) => return Ok(Outer::Unwanted),
                Ok(Next::Events) => self.events(feed, at)?,
                Ok(Next::Nodes) => self.nodes(feed, at)?,
                Err(Fault::End) if feed.more(at).map_err(Error::io(self.plan.path))? => {
                    at = 0;
                    continue;
                }
                Err(fault) => {
                    self.broken(feed, fault, at)?;
                    Outer::Lost
                }
            };
            match list_end {
                Outer::Closed(end) => at = end,
                done => return Ok(done),
            }
        }
    }

    /// Reads one member; of a list only the opening bracket.
    fn member(&mut self, cursor: &mut Cursor<'_>) -> Result<Next, Fault> {
        let Some(key) = cursor.key()? else { return Ok(Next::Close) };
        if cursor.peek()? == b'[' {
            let next = match key.raw {
                b"traceEvents" if self.nodes.is_none() && self.plan.wanted.kineto => Next::Events,
                b"nodes" if self.events.is_none() && self.plan.wanted.execution => Next::Nodes,
                b"traceEvents" | b"nodes" if self.events.is_none() && self.nodes.is_none() => Next::Unwanted,
                _ => Next::Member,
            };
            if !matches!(next, Next::Member) {
                cursor.at += 1;
                return Ok(next);
            }
        }
        let value = cursor.raw()?;
        if self.header.take(key, value).is_err() {
            cursor.wrong_type();
        }
        Ok(Next::Member)
    }

    fn events<F: Feed>(&mut self, feed: &mut F, at: usize) -> Result<Outer, Error> {
        let builder = self.events.get_or_insert_default();
        let end =
            kineto::read_events(feed, at, self.plan.threads, builder).map_err(Error::io(self.plan.path))?;
        Ok(outer(feed, end))
    }

    fn nodes<F: Feed>(&mut self, feed: &mut F, at: usize) -> Result<Outer, Error> {
        let offset = feed.base() + at as u64;
        let (builder, _) = self.nodes.get_or_insert_with(|| (execution::Builder::default(), offset));
        let end = read_list(feed, at, u64::MAX, builder).map_err(Error::io(self.plan.path))?;
        Ok(outer(feed, end))
    }

    /// Handles a broken outer object at `at`: an error only if no list was read before.
    fn broken<F: Feed>(&mut self, feed: &F, fault: Fault, at: usize) -> Result<(), Error> {
        let end = feed.base() + feed.bytes().len() as u64;
        let (note, offset, problem) = match fault {
            Fault::End => (Note::Truncated, end, "the file ends before any event"),
            Fault::Unexpected => (Note::BrokenTail, feed.base() + at as u64, "this is not JSON"),
        };
        if self.events.is_none() && self.nodes.is_none() {
            return Err(Error::Malformed {
                path: self.plan.path.to_owned(),
                offset,
                problem: problem.to_owned(),
            });
        }
        self.notes.add(note, offset);
        Ok(())
    }

    /// Records data after the document.
    fn tail<F: Feed>(&mut self, feed: &mut F, mut at: usize) -> Result<(), Error> {
        loop {
            let rest = &feed.bytes()[at..];
            if let Some(offset) = rest.iter().position(|byte| !byte.is_ascii_whitespace() && *byte != 0) {
                self.notes.add(Note::TrailingData, feed.base() + (at + offset) as u64);
                feed.reached(feed.bytes().len());
                return Ok(());
            }
            feed.reached(feed.bytes().len());
            let held = feed.bytes().len();
            if !feed.more(held).map_err(Error::io(self.plan.path))? {
                return Ok(());
            }
            at = 0;
        }
    }

    fn finish<F: Feed>(mut self, feed: &F) -> Result<Document, Error> {
        let header = self.header;
        let end = feed.base() + feed.bytes().len() as u64;
        if let Some(builder) = self.events {
            let mut trace = builder.finish();
            trace.base_time = header.base_time;
            trace.origin = header.program.unwrap_or(trace.origin);
            trace.devices = header.devices;
            trace.distributed = header.distributed;
            trace.notes.absorb(self.notes);
            note_damage(&mut trace.notes, feed);
            return Ok(Document::Kineto(Box::new(trace)));
        }
        let Some((builder, offset)) = self.nodes else {
            return Err(Error::NotATrace { path: self.plan.path.to_owned(), offset: end });
        };
        let schema = Schema::parse(&header.schema);
        if !schema.is_known() {
            if builder.is_empty() {
                let (path, schema) = (self.plan.path.to_owned(), header.schema);
                return Err(Error::UnsupportedSchema { path, schema, offset });
            }
            self.notes.add(Note::UnknownSchema, 0);
        }
        let mut trace = builder.finish(schema, header.pid);
        trace.notes.absorb(self.notes);
        note_damage(&mut trace.notes, feed);
        Ok(Document::Execution(Box::new(trace)))
    }
}

/// Records damage of the compression, unless the resulting truncation was already recorded.
fn note_damage<F: Feed>(notes: &mut Notes, feed: &F) {
    if let Some((note, at)) = feed.damage()
        && notes.count(note) == 0
    {
        notes.add(note, at);
    }
}

fn outer<F: Feed>(feed: &F, end: End) -> Outer {
    match end {
        End::Closed(at) | End::Stopped(at) => Outer::Closed((at - feed.base()) as usize),
        End::Lost => Outer::Lost,
    }
}

impl Header {
    /// Reads the used fields of one member.
    fn take(&mut self, key: Text<'_>, value: &[u8]) -> Result<(), Fault> {
        let mut cursor = Cursor::new(value);
        match key.raw {
            b"baseTimeNanoseconds" => self.base_time = Nanos(cursor.integer()?.unwrap_or(0)),
            b"deviceProperties" => self.devices = DeviceProperties::read_list(&mut cursor)?,
            b"distributedInfo" => self.distributed = DistributedRun::read(&mut cursor)?,
            b"schema" => self.schema = cursor.string()?.map(|text| text.decoded()).unwrap_or_default(),
            b"program" => {
                let is_train = cursor.string()?.is_some_and(|name| name.raw == Origin::TRAIN.as_bytes());
                self.program = is_train.then_some(Origin::Train);
            }
            b"pid" => self.pid = cursor.integer()?.unwrap_or(0),
            _ => {}
        }
        Ok(())
    }
}
