//! The timeline: threads and streams as lanes, their ops and activities as slices, predicted beside measured.

mod lanes;
mod sides;

use serde::Serialize;

use crate::columns::Column;
use crate::levels::Level;

pub(crate) use self::lanes::phase;
pub(crate) use self::sides::{measured, predicted};

/// A step in time: as predicted, or one as measured. Times are ticks from the first event on.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Side {
    /// `predicted`, `measured`, ...
    pub name: String,
    /// Duration of a tick, nanoseconds.
    pub tick_ns: u32,
    /// Time from the first event to the last, ticks.
    pub ticks: u32,
    /// Time from one step to the next, ticks, if known.
    pub period: Option<u32>,
    /// Number of slices.
    pub slices: usize,
    /// Number of rows of the graph without a time: calls or ops of which the step has no sample.
    pub without_time: usize,
    /// Threads, then streams.
    pub lanes: Vec<Lane>,
    /// Idle times of the device, with causes.
    pub waits: Option<Waits>,
    /// The critical path, in order of time.
    pub path: Option<Path>,
}

/// A thread or a stream.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Lane {
    /// Display name.
    pub name: String,
    /// `thread` or `stream`.
    pub kind: &'static str,
    /// Rows of slices; a slice inside another one is a row lower.
    pub rows: Vec<Row>,
}

/// Slices that do not overlap, in order.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    /// Beginnings.
    pub start: Column,
    /// Durations.
    pub length: Column,
    /// Names, texts.
    pub name: Column,
    /// 0 op, 1 annotation, 2 call, 3 kernel, 4 copy, 5 memset.
    pub kind: Column,
    /// Phases of the step.
    pub phase: Column,
    /// One more than the op of the slice, or around it; 0 outside of ops.
    pub op: Column,
    /// Coarser levels of detail.
    pub levels: Vec<Level>,
}

/// Times in which the device idles.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Waits {
    /// Beginnings.
    pub start: Column,
    /// Durations.
    pub length: Column,
    /// Part of each duration by cause, in the order of causes.
    pub causes: Vec<Column>,
}

/// The stretches of the critical path.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Path {
    /// Beginnings.
    pub start: Column,
    /// Durations.
    pub length: Column,
    /// 0 host, 1 device, 2 launch, 3 return.
    pub place: Column,
    /// Lanes.
    pub lane: Column,
    /// Names of ops, kernels or calls, texts.
    pub name: Column,
}
