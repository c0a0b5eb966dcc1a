//! Conversion of events into columns.

use super::category::Category;
use super::event::{Event, Number};
use super::flows::{self, FlowEnd};
use super::overlaps;
use super::uncategorized::UncategorizedEvent;
use super::{
    Activity, ActivityKind, Call, CallLibrary, GpuAnnotation, HostInterval, HostKind, HostOp, LaunchShape,
    Stream, StreamId, SyncEvent, SyncKind, Thread, ThreadId, Trace,
};
use crate::collective::{Carrier, Collective, intern};
use crate::json::{Cursor, Fault};
use crate::list::Sink;
use crate::repairs::{Note, Notes};
use crate::strings::NameId;
use crate::units::Nanos;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

/// Trace under construction, with the tables that assign ids.
#[derive(Default)]
pub(crate) struct Builder {
    pub(crate) trace: Trace,
    pub(super) thread_ids: FxHashMap<(i64, i64), u32>,
    pub(super) stream_ids: FxHashMap<Stream, u32>,
    pub(super) shape_ids: FxHashMap<LaunchShape, u32>,
    /// Thread names from metadata events; these threads may have no events.
    pub(crate) thread_names: Vec<((i64, i64), String)>,
    /// Process names from metadata events.
    pub(super) process_names: Vec<(i64, String)>,
    /// Events without a category: their kind is determined once all names are known.
    pub(super) uncategorized: Vec<UncategorizedEvent>,
    /// Both ends of flow arrows; none are stored once activities have correlation ids.
    pub(super) flows: Vec<FlowEnd>,
}

/// Event of phase `X` (Chrome's "complete" event) that has all required fields.
struct CompleteEvent<'e, 'a> {
    event: &'e Event<'a>,
    at: u64,
    name: NameId,
    start: Nanos,
    dur: Nanos,
    pid: Number<'a>,
    tid: Number<'a>,
}

impl Sink for Builder {
    fn object(&mut self, cursor: &mut Cursor<'_>, base: u64) -> Result<(), Fault> {
        let at = base + cursor.at as u64;
        let event = Event::read(cursor)?;
        self.keep(&event, at);
        Ok(())
    }

    fn looks_like_item(bytes: &[u8]) -> bool {
        let rest = bytes[1..].trim_ascii_start();
        [
            &b"\"ph\""[..],
            b"\"name\"",
            b"\"cat\"",
            b"\"pid\"",
            b"\"tid\"",
            b"\"ts\"",
            b"\"dur\"",
            b"\"args\"",
            b"\"id\"",
        ]
        .iter()
        .any(|key| rest.strip_prefix(*key).is_some_and(|rest| rest.trim_ascii_start().first() == Some(&b':')))
    }

    fn notes(&mut self) -> &mut Notes {
        &mut self.trace.notes
    }
}

impl Builder {
    /// Returns the finished trace.
    pub(crate) fn finish(mut self) -> Trace {
        self.place_uncategorized();
        flows::link(&std::mem::take(&mut self.flows), &mut self.trace, &self.thread_ids, &self.stream_ids);
        // Streams of several processes may share a number: then overlaps are cut after the processes are separated.
        if self.trace.stepping_processes().len() < 2 {
            overlaps::cut(&mut self.trace.activities, &mut self.trace.notes);
        }
        for (key, name) in &self.thread_names {
            if let Some(&id) = self.thread_ids.get(key) {
                self.trace.threads[id as usize].name = Some(self.trace.names.intern(name));
            }
        }
        let trace = &mut self.trace;
        trace.ops.shrink();
        trace.calls.shrink();
        trace.activities.shrink();
        trace.gpu_annotations.shrink();
        trace.syncs.shrink();
        trace.overheads.shrink();
        self.trace
    }

    /// Keeps the event, or counts it as skipped.
    fn keep(&mut self, event: &Event<'_>, at: u64) {
        let skipped = match event.phase {
            b'X' => return self.keep_complete(event, at),
            b'M' => return self.keep_metadata(event),
            b's' | b'f' => return self.keep_flow(event, at),
            b't' => Note::FlowEvents,
            b'i' | b'I' | b'R' | b'n' => Note::Instants,
            b'C' => Note::Counters,
            _ => Note::UnknownPhase,
        };
        self.trace.notes.add(skipped, at);
    }

    fn keep_metadata(&mut self, event: &Event<'_>) {
        if let (Some(pid), Some(b"process_name"), Some(name)) =
            (event.pid, event.name.map(|kind| kind.raw), event.args.name)
        {
            self.process_names.push((pid.value(), name.decoded()));
        }
        let (Some(pid), Some(tid), Some(name)) = (event.pid, event.tid, event.args.name) else { return };
        if event.name.is_some_and(|kind| kind.raw == b"thread_name") {
            self.thread_names.push(((pid.value(), tid.value()), name.decoded()));
        }
    }

    fn keep_complete(&mut self, event: &Event<'_>, at: u64) {
        let category = Category::parse(event.category.raw);
        match category {
            Category::PythonFunction => return self.trace.notes.add(Note::PythonFunctions, at),
            Category::Span => return self.trace.notes.add(Note::Spans, at),
            Category::Unknown if !event.category.raw.is_empty() => {
                return self.trace.notes.add_category(&event.category.decoded(), at);
            }
            _ => {}
        }
        let (Some(start), Some(name), Some(pid), Some(tid)) = (event.start, event.name, event.pid, event.tid)
        else {
            return self.trace.notes.add(Note::MissingField, at);
        };
        let dur = self.duration(event.dur, at);
        let name = intern(name, &mut self.trace.names, &mut self.trace.notes, at);
        let seen = CompleteEvent { event, at, name, start, dur, pid, tid };
        match category {
            Category::Op => self.keep_op(&seen, HostKind::Op),
            Category::Annotation => self.keep_op(&seen, HostKind::Annotation),
            Category::Runtime => self.keep_call(&seen, CallLibrary::Runtime),
            Category::Driver => self.keep_call(&seen, CallLibrary::Driver),
            Category::Kernel | Category::Memcpy | Category::Memset => {
                self.keep_activity(&seen, category.activity().unwrap_or(ActivityKind::Kernel));
            }
            Category::GpuAnnotation => self.keep_gpu_annotation(&seen),
            Category::Sync => self.keep_sync(&seen),
            Category::Overhead => self.keep_overhead(&seen),
            Category::Unknown => self.keep_uncategorized(&seen),
            Category::PythonFunction | Category::Span => {}
        }
    }

    /// Stores the end of a flow arrow, unless correlation ids make it superfluous.
    fn keep_flow(&mut self, event: &Event<'_>, offset: u64) {
        let correlated =
            self.trace.activities.correlation.last().is_some_and(|&correlation| correlation != 0);
        match (event.id, event.pid, event.tid, event.start) {
            (Some(id), Some(pid), Some(tid), Some(at)) if !correlated => {
                let (begins, pid, tid) = (event.phase == b's', pid.value(), tid.value());
                // Arrows of two categories may share an id.
                let id = FxBuildHasher.hash_one((event.category.raw, id));
                self.flows.push(FlowEnd { id, begins, pid, tid, at, offset });
            }
            _ => self.trace.notes.add(Note::FlowEvents, offset),
        }
    }

    fn keep_uncategorized(&mut self, seen: &CompleteEvent<'_, '_>) {
        let args = &seen.event.args;
        let details =
            args.details.map(|text| intern(text, &mut self.trace.names, &mut self.trace.notes, seen.at));
        let &CompleteEvent { name, start, dur, at, .. } = seen;
        let (pid, tid) = (seen.pid.value(), seen.tid.value());
        let (correlation, graph_node, step) = (args.correlation, args.graph_node, args.step);
        self.uncategorized.push(UncategorizedEvent {
            pid,
            tid,
            name,
            start,
            dur,
            correlation,
            graph_node,
            step,
            details,
            at,
        });
    }

    fn keep_op(&mut self, seen: &CompleteEvent<'_, '_>, kind: HostKind) {
        let args = &seen.event.args;
        let index = self.trace.ops.len() as u32;
        let thread = self.thread(seen.pid, seen.tid);
        self.trace.ops.push(HostOp {
            kind,
            name: seen.name,
            thread,
            start: seen.start,
            dur: seen.dur,
            external_id: args.external_id,
            record_function_id: args.record_function_id,
            sequence: args.sequence.unwrap_or(-1),
            forward_thread: args.forward_thread,
        });
        if args.inputs {
            let Trace { inputs, names, notes, .. } = &mut self.trace;
            inputs.read(index, args.raw, names, notes, seen.at);
        }
        if args.collective {
            self.keep_collective(Carrier::Op(index), args.raw, seen.at);
        }
    }

    fn keep_call(&mut self, seen: &CompleteEvent<'_, '_>, api: CallLibrary) {
        let thread = self.thread(seen.pid, seen.tid);
        self.trace.calls.push(Call {
            api,
            name: seen.name,
            thread,
            start: seen.start,
            dur: seen.dur,
            correlation: seen.event.args.correlation,
            external_id: seen.event.args.external_id,
        });
    }

    fn keep_activity(&mut self, seen: &CompleteEvent<'_, '_>, kind: ActivityKind) {
        let args = &seen.event.args;
        let index = self.trace.activities.len() as u32;
        let (stream, launch) = (self.stream(seen), self.shape(args.shape));
        self.trace.activities.push(Activity {
            kind,
            name: seen.name,
            stream,
            start: seen.start,
            dur: seen.dur,
            correlation: args.correlation,
            external_id: args.external_id,
            bytes: args.bytes,
            launch,
            graph_node: args.graph_node,
        });
        if args.collective {
            self.keep_collective(Carrier::Activity(index), args.raw, seen.at);
        }
    }

    fn keep_gpu_annotation(&mut self, seen: &CompleteEvent<'_, '_>) {
        let &CompleteEvent { name, start, dur, .. } = seen;
        let (stream, external_id) = (self.stream(seen), seen.event.args.external_id);
        self.trace.gpu_annotations.push(GpuAnnotation { name, stream, start, dur, external_id });
    }

    fn keep_sync(&mut self, seen: &CompleteEvent<'_, '_>) {
        let args = &seen.event.args;
        let unsigned = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
        let kind = args.sync_kind.or(seen.event.name).unwrap_or_default();
        let track = self.stream(seen);
        self.trace.syncs.push(SyncEvent {
            kind: SyncKind::parse(kind.raw),
            track,
            start: seen.start,
            dur: seen.dur,
            correlation: args.correlation,
            stream: args.stream.filter(|&stream| stream >= 0),
            wait_on_stream: args.wait_on_stream.filter(|&stream| stream >= 0),
            wait_on_event_record_correlation: unsigned(args.wait_on_correlation),
            event_id: unsigned(args.wait_on_event),
        });
    }

    fn keep_overhead(&mut self, seen: &CompleteEvent<'_, '_>) {
        let &CompleteEvent { name, start, dur, .. } = seen;
        let thread = self.thread(seen.pid, seen.tid);
        self.trace.overheads.push(HostInterval { name, thread, start, dur });
    }

    /// Returns a duration; zero if it is missing or negative.
    fn duration(&mut self, dur: Option<Nanos>, at: u64) -> Nanos {
        match dur {
            Some(dur) if dur >= Nanos::ZERO => return dur,
            Some(_) => self.trace.notes.add(Note::NegativeDuration, at),
            None => self.trace.notes.add(Note::MissingDuration, at),
        }
        Nanos::ZERO
    }

    fn keep_collective(&mut self, carrier: Carrier, args: &[u8], at: u64) {
        let Trace { names, notes, collectives, .. } = &mut self.trace;
        let mut collective = Collective::new(carrier);
        let mut cursor = Cursor::new(args);
        let mut read = || -> Result<(), Fault> {
            cursor.enter_object()?;
            while let Some(key) = cursor.key()? {
                if !collective.field(key.raw, &mut cursor, names, notes)? {
                    cursor.skip()?;
                }
            }
            Ok(())
        };
        match read() {
            Ok(()) => collectives.push(collective),
            Err(_) => notes.add(Note::WrongType, at),
        }
    }

    /// Returns the id of a thread. A thread whose `tid` is text, not a number, keeps the text as its name.
    fn thread(&mut self, pid: Number<'_>, tid: Number<'_>) -> ThreadId {
        let name = match tid {
            Number::Named(text) => Some(intern(text, &mut self.trace.names, &mut self.trace.notes, 0)),
            Number::Is(_) => None,
        };
        self.thread_id(Thread { pid: pid.value(), tid: tid.value(), name })
    }

    pub(crate) fn thread_id(&mut self, thread: Thread) -> ThreadId {
        let next = self.trace.threads.len() as u32;
        let id = *self.thread_ids.entry((thread.pid, thread.tid)).or_insert(next);
        if id == next {
            self.trace.threads.push(thread);
        }
        ThreadId(id)
    }

    /// Returns the id of a stream: from the event's arguments, or else from its track (`pid` and `tid`).
    fn stream(&mut self, seen: &CompleteEvent<'_, '_>) -> StreamId {
        let device = seen.event.args.device.unwrap_or_else(|| seen.pid.value());
        let stream = seen.event.args.stream.unwrap_or_else(|| seen.tid.value());
        self.stream_id(Stream { device: u32::try_from(device).unwrap_or(0), stream })
    }

    pub(crate) fn stream_id(&mut self, stream: Stream) -> StreamId {
        let next = self.trace.streams.len() as u32;
        let id = *self.stream_ids.entry(stream).or_insert(next);
        if id == next {
            self.trace.streams.push(stream);
        }
        StreamId(id)
    }

    pub(crate) fn shape(&mut self, shape: LaunchShape) -> u32 {
        let next = self.trace.activities.shapes.len() as u32;
        let id = *self.shape_ids.entry(shape).or_insert(next);
        if id == next {
            self.trace.activities.shapes.push(shape);
        }
        id
    }
}
