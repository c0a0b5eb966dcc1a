//! Columns of steps, collectives and gaps.

use steptime_trace::Trace;

use super::columns::Columns;
use crate::rank::{CollectiveRow, GapRow, StepRow};

/// Returns the columns of `steps`.
pub(super) fn steps<'a>(rows: &'a [StepRow], trace: &'a Trace) -> Columns<'a, StepRow> {
    Columns::new(rows, trace)
        .maybe_number("step", |row| Some(row.step))
        .word("found", |row| row.found)
        .word("clock", |row| row.clock)
        .moment("start_ns", |row| row.start)
        .time("dur_ns", |row| row.dur)
        .maybe_time("active_ns", |row| row.busy.map(|busy| busy.active))
        .maybe_time("idle_ns", |row| row.busy.map(|busy| busy.idle))
        .maybe_time("compute_ns", |row| row.busy.map(|busy| busy.compute))
        .maybe_time("comm_ns", |row| row.busy.map(|busy| busy.comm))
        .maybe_time("comm_exposed_ns", |row| row.busy.map(|busy| busy.comm_exposed))
        .count("ops", |row| row.ops)
        .count("calls", |row| row.calls)
        .count("kernels", |row| row.kernels)
        .count("copies", |row| row.copies)
        .count("unrecorded", |row| row.unrecorded)
        .count("repairs", |row| row.repairs)
}

/// Returns the columns of `collectives`.
pub(super) fn collectives<'a>(rows: &'a [CollectiveRow], trace: &'a Trace) -> Columns<'a, CollectiveRow> {
    Columns::new(rows, trace)
        .maybe_number("step", |row| row.step)
        .maybe_name("op", |row| row.op)
        .maybe_name("kernel", |row| row.kernel)
        .maybe_number("device", |row| row.stream.map(|stream| stream.device))
        .maybe_integer("stream", |row| row.stream.map(|stream| stream.stream))
        .moment("start_ns", |row| row.start)
        .maybe_time("dur_ns", |row| row.dur)
        .maybe_time("exposed_ns", |row| row.exposed)
        .maybe_moment("launched_ns", |row| row.launched)
        .maybe_name("group_name", |row| row.group)
        .maybe_name("group_description", |row| row.group_description)
        .maybe_number("group_size", |row| row.group_size)
        .maybe_integer("sequence", |row| row.sequence)
        .maybe_number("nth", |row| Some(row.nth))
        .maybe_name("dtype", |row| row.dtype)
        .maybe_count("in_elements", |row| row.in_elements)
        .maybe_count("out_elements", |row| row.out_elements)
        .maybe_count("in_bytes", |row| row.in_bytes)
        .maybe_count("out_bytes", |row| row.out_bytes)
}

/// Returns the columns of `gaps`.
pub(super) fn gaps<'a>(rows: &'a [GapRow], trace: &'a Trace) -> Columns<'a, GapRow> {
    Columns::new(rows, trace)
        .maybe_number("step", |row| row.step)
        .maybe_number("device", |row| Some(row.stream.device))
        .maybe_integer("stream", |row| Some(row.stream.stream))
        .moment("start_ns", |row| row.start)
        .time("dur_ns", |row| row.dur)
        .maybe_time("idle_ns", |row| row.idle)
        .word("cause", |row| row.cause.word())
        .maybe_name("before", |row| row.before)
        .name("after", |row| row.after)
        .maybe_name("host_op", |row| row.host_op)
        .maybe_name("host_call", |row| row.host_call)
}
