//! Where the host or a stream waited for the device.

use super::StreamId;
use crate::columns::columns;
use crate::units::Nanos;

/// What waits for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncKind {
    /// The host waits for a stream.
    Stream,
    /// The host waits for an event.
    Event,
    /// The host waits for the whole device.
    Context,
    /// A stream waits for an event of another stream.
    StreamWaitEvent,
    /// Something this reader does not know.
    Other,
}

columns! {
    /// Synchronisations, `cuda_sync`.
    pub struct Syncs of SyncEvent {
        /// What waits for what.
        kind: SyncKind,
        /// The track it is drawn on: the device and stream, or stream -1.
        track: StreamId,
        /// When it began.
        start: Nanos,
        /// How long it took.
        dur: Nanos,
        /// Ties it to the call; 0 is none.
        correlation: u64,
        /// The stream that waits, or that is waited for by the host.
        stream: Option<i64>,
        /// The stream on which the awaited event was recorded.
        wait_on_stream: Option<i64>,
        /// The correlation of the call that recorded the awaited event.
        wait_on_event_record_correlation: Option<u64>,
        /// The awaited event.
        event_id: Option<u64>,
    }
}

impl SyncKind {
    pub(crate) fn parse(name: &[u8]) -> SyncKind {
        match name {
            b"Stream Sync" | b"Stream Synchronize" => SyncKind::Stream,
            b"Event Sync" | b"Event Synchronize" => SyncKind::Event,
            b"Context Sync" | b"Context Synchronize" => SyncKind::Context,
            b"Stream Wait Event" => SyncKind::StreamWaitEvent,
            _ => SyncKind::Other,
        }
    }
}
