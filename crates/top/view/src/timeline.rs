//! The timeline: threads and streams as lanes, what ran on each as slices, predicted beside measured.

mod lanes;
mod sides;

use serde::Serialize;

use crate::columns::Column;
use crate::levels::Level;

pub(crate) use self::lanes::phase;
pub(crate) use self::sides::{measured, predicted};

/// A step in time: as it was predicted, or as it was measured once. Times are ticks from `zero` on.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Side {
    /// `predicted`, `measured`, ...
    pub name: String,
    /// How long a tick is, nanoseconds.
    pub tick_ns: u32,
    /// From the first thing to the last, ticks.
    pub ticks: u32,
    /// From one step to the next, ticks, where known.
    pub period: Option<u32>,
    /// How many slices there are.
    pub slices: usize,
    /// Rows of the graph that have no time here: calls or ops of which the step has no sample.
    pub without_time: usize,
    /// Threads, then streams.
    pub lanes: Vec<Lane>,
    /// When the device idles, and why.
    pub waits: Option<Waits>,
    /// The critical path, in order of time.
    pub path: Option<Path>,
}

/// A thread or a stream.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Lane {
    /// What to call it.
    pub name: String,
    /// `thread` or `stream`.
    pub kind: &'static str,
    /// What is inside something else lies a row lower.
    pub rows: Vec<Row>,
}

/// Slices that do not overlap, in order.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    /// When each begins.
    pub start: Column,
    /// How long it is.
    pub length: Column,
    /// Its name, a text.
    pub name: Column,
    /// 0 op, 1 annotation, 2 call, 3 kernel, 4 copy, 5 memset.
    pub kind: Column,
    /// The part of the step.
    pub phase: Column,
    /// One more than the op that it is, or is in; 0 outside of ops.
    pub op: Column,
    /// The same in fewer groups.
    pub levels: Vec<Level>,
}

/// Times in which the device idles.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Waits {
    /// When each begins.
    pub start: Column,
    /// How long it is.
    pub length: Column,
    /// For each cause, in the order of causes, how long of it.
    pub causes: Vec<Column>,
}

/// The stretches of the critical path.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Path {
    /// When each begins.
    pub start: Column,
    /// How long it is.
    pub length: Column,
    /// 0 host, 1 device, 2 launch, 3 return.
    pub place: Column,
    /// The lane that it runs on.
    pub lane: Column,
    /// What runs, a text.
    pub name: Column,
}
