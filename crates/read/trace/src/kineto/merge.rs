//! Joins the columns of two pieces of one file, as if they had been read in one go.

use super::uncategorized::UncategorizedEvent;
use super::{
    Activity, Builder, Call, GpuAnnotation, HostInterval, HostOp, StreamId, SyncEvent, Thread, ThreadId,
};
use crate::collective::Carrier;
use crate::strings::NameId;

impl Builder {
    /// Appends the contents of `other`, read from the bytes that follow this one's.
    pub(super) fn absorb(&mut self, other: Builder) {
        let piece = other.trace;
        let names = self.trace.names.absorb(&piece.names);
        let name = |id: NameId| names[id.index()];
        let threads: Vec<ThreadId> = piece
            .threads
            .iter()
            .map(|thread| self.thread_id(Thread { name: thread.name.map(name), ..*thread }))
            .collect();
        let streams: Vec<StreamId> = piece.streams.iter().map(|&stream| self.stream_id(stream)).collect();
        let shapes: Vec<u32> = piece.activities.shapes.iter().map(|&shape| self.shape(shape)).collect();
        let thread = |id: ThreadId| threads[id.0 as usize];
        let stream = |id: StreamId| streams[id.0 as usize];
        let launch = |id: u32| shapes[id as usize];

        let trace = &mut self.trace;
        let first_op = trace.ops.len() as u32;
        let first_activity = trace.activities.len() as u32;
        trace.ops.absorb(&piece.ops, |row| HostOp {
            name: name(row.name),
            thread: thread(row.thread),
            ..row
        });
        trace.calls.absorb(&piece.calls, |row| Call {
            name: name(row.name),
            thread: thread(row.thread),
            ..row
        });
        trace.activities.absorb(&piece.activities, |row| Activity {
            name: name(row.name),
            stream: stream(row.stream),
            launch: launch(row.launch),
            ..row
        });
        trace.gpu_annotations.absorb(&piece.gpu_annotations, |row| GpuAnnotation {
            name: name(row.name),
            stream: stream(row.stream),
            ..row
        });
        trace.syncs.absorb(&piece.syncs, |row| SyncEvent { track: stream(row.track), ..row });
        trace.overheads.absorb(&piece.overheads, |row| HostInterval {
            name: name(row.name),
            thread: thread(row.thread),
            ..row
        });
        trace.inputs.absorb(&piece.inputs, first_op, name);
        trace.collectives.extend(piece.collectives.into_iter().map(|collective| {
            let carrier = match collective.carrier {
                Carrier::Op(index) => Carrier::Op(index + first_op),
                Carrier::Activity(index) => Carrier::Activity(index + first_activity),
                node => node,
            };
            collective.renamed(name, carrier)
        }));
        trace.notes.absorb(piece.notes);
        self.thread_names.extend(other.thread_names);
        self.flows.extend(other.flows);
        self.process_names.extend(other.process_names);
        self.uncategorized.extend(other.uncategorized.into_iter().map(|event| UncategorizedEvent {
            name: name(event.name),
            details: event.details.map(name),
            ..event
        }));
    }
}
