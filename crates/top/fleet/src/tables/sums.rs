//! Columns of ops and kernels.

use steptime_trace::{ActivityKind, HostKind, Trace};

use super::columns::Columns;
use crate::rank::{KernelRow, OpRow};

/// Returns the columns of `ops`.
pub(super) fn ops<'a>(rows: &'a [OpRow], trace: &'a Trace) -> Columns<'a, OpRow> {
    Columns::new(rows, trace)
        .maybe_number("step", |row| row.step)
        .name("name", |row| row.name)
        .word("kind", |row| match row.kind {
            HostKind::Op => "op",
            HostKind::Annotation => "annotation",
        })
        .sketch(|row| &row.times)
        .time("self_ns", |row| row.own)
        .count("launched", |row| row.launched)
        .time("device_ns", |row| row.device)
}

/// Returns the columns of `kernels`.
pub(super) fn kernels<'a>(rows: &'a [KernelRow], trace: &'a Trace) -> Columns<'a, KernelRow> {
    Columns::new(rows, trace)
        .maybe_number("step", |row| row.step)
        .name("name", |row| row.name)
        .word("kind", |row| match row.kind {
            ActivityKind::Kernel => "kernel",
            ActivityKind::Memcpy => "copy",
            ActivityKind::Memset => "fill",
        })
        .maybe_number("device", |row| Some(row.stream.device))
        .maybe_integer("stream", |row| Some(row.stream.stream))
        .flag("collective", |row| row.collective)
        .sketch(|row| &row.times)
        .count("bytes", |row| row.bytes)
}
