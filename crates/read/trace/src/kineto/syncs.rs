//! Waits of the host or a stream for the device.

use super::StreamId;
use crate::columns::columns;
use crate::units::Nanos;

/// Kind of a wait.
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
    /// A kind that this reader does not know.
    Other,
}

columns! {
    /// Synchronisations, `cuda_sync`.
    pub struct Syncs of SyncEvent {
        /// Kind of the wait.
        kind: SyncKind,
        /// Track it is drawn on: the device and stream, or stream -1.
        track: StreamId,
        /// Start time.
        start: Nanos,
        /// Duration.
        dur: Nanos,
        /// Correlation with the call; 0 if there is none.
        correlation: u64,
        /// Stream that waits, or that the host waits for.
        stream: Option<i64>,
        /// Stream on which the awaited event was recorded.
        wait_on_stream: Option<i64>,
        /// Correlation of the call that recorded the awaited event.
        wait_on_event_record_correlation: Option<u64>,
        /// Id of the awaited event.
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
