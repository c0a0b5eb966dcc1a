//! Causes of the times at which marks are passed and activities begin.

use steptime_graph::ActivityId;

/// Cause of the time at which a mark is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkCause {
    /// Host time since the mark it comes after.
    Host,
    /// The same thread was still busy, although the mark of the other thread had passed.
    Busy,
    /// The end of a device activity (of this step) that the call waits for.
    Device(ActivityId),
    /// The end of a device activity of the step before.
    DeviceBefore(ActivityId),
}

/// Cause of the beginning of a device activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityCause {
    /// Launch of the activity.
    Launch,
    /// The activity before it on its stream.
    Stream(ActivityId),
    /// The last activity of the step before on its stream.
    StreamBefore(ActivityId),
    /// An activity of another stream, through an event.
    Event(ActivityId),
    /// An activity of the step before on another stream, through an event.
    EventBefore(ActivityId),
}
