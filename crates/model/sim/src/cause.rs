//! Why a mark was passed, or an activity began, when it did.

use steptime_graph::ActivityId;

/// What decided when a mark was passed.
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

/// What decided when a device activity began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityCause {
    /// Its launch.
    Launch,
    /// The activity before it on its stream.
    Stream(ActivityId),
    /// The last activity on its stream of the step before.
    StreamBefore(ActivityId),
    /// An activity of another stream, through an event.
    Event(ActivityId),
    /// The same of the step before.
    EventBefore(ActivityId),
}
