//! Collectives: their kernels, with the exchanged elements and bytes.

use rustc_hash::FxHashMap;
use steptime_aten::Dtype;
use steptime_trace::{Carrier, Collective, NameId, Nanos, Stream, Trace};

use super::device::Device;
use super::nest::Nest;
use super::step_of_time::Windows;

/// One collective on one rank.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CollectiveRow {
    /// Number of the step; `None` outside of steps.
    pub step: Option<u32>,
    /// Operation, `allreduce`; `None` if the trace does not have it.
    pub op: Option<NameId>,
    /// Kernel; `None` if only the host's side is in the trace.
    pub kernel: Option<NameId>,
    /// Stream that it ran on.
    pub stream: Option<Stream>,
    /// Beginning of its kernel, or of the host's op if there is no kernel.
    pub start: Nanos,
    /// Duration of its kernel.
    pub dur: Option<Nanos>,
    /// Part of that duration in which the device ran only collectives.
    pub exposed: Option<Nanos>,
    /// Time of its launch on the host.
    pub launched: Option<Nanos>,
    /// Name of the process group.
    pub group: Option<NameId>,
    /// Description of the group's purpose.
    pub group_description: Option<NameId>,
    /// Number of ranks in the group.
    pub group_size: Option<u32>,
    /// Sequence number in its group, as recorded.
    pub sequence: Option<i64>,
    /// Number among those of its group and operation in the step, from 0.
    pub nth: u32,
    /// Element type, as recorded.
    pub dtype: Option<NameId>,
    /// Number of elements sent.
    pub in_elements: Option<u64>,
    /// Number of elements received.
    pub out_elements: Option<u64>,
    /// Bytes sent; `None` if the type is not known.
    pub in_bytes: Option<u64>,
    /// Bytes received.
    pub out_bytes: Option<u64>,
}

/// Returns the rows, by their beginning.
pub(super) fn rows(trace: &Trace, windows: &Windows, nest: &Nest, device: &Device) -> Vec<CollectiveRow> {
    let mut of_activities: FxHashMap<u32, &Collective> = FxHashMap::default();
    let mut of_ops: FxHashMap<u32, &Collective> = FxHashMap::default();
    for collective in &trace.collectives {
        match collective.carrier {
            Carrier::Activity(at) => of_activities.insert(at, collective),
            Carrier::Op(op) => of_ops.insert(op, collective),
            Carrier::Node(_) => None,
        };
    }
    let mut with_kernel: Vec<u32> = Vec::new();
    let mut rows = Vec::new();
    for &at in &device.order {
        let own = of_activities.get(&at).copied();
        if own.is_none() && !device.collective[at as usize] {
            continue;
        }
        let innermost = device.ops[at as usize].map(|op| op as usize);
        let carrier = nest.outwards(innermost).find(|op| of_ops.contains_key(&(*op as u32)));
        with_kernel.extend(carrier.map(|op| op as u32));
        let host = carrier.and_then(|op| of_ops.get(&(op as u32)).copied());
        rows.push(kernel_row(trace, device, at as usize, own.or(host), host));
    }
    with_kernel.sort_unstable();
    for (&op, collective) in &of_ops {
        if with_kernel.binary_search(&op).is_err() {
            let start = trace.ops.start[op as usize];
            let step = windows.number(windows.at(start));
            rows.push(CollectiveRow { step, ..recorded_facts(trace, Some(collective), None, start) });
        }
    }
    rows.sort_by_key(|row| (row.start, row.kernel, row.op));
    number(&mut rows);
    rows
}

/// Returns the row of a collective with a kernel. Facts missing on the kernel come from the op around its launch.
fn kernel_row(
    trace: &Trace,
    device: &Device,
    at: usize,
    collective: Option<&Collective>,
    host: Option<&Collective>,
) -> CollectiveRow {
    let activities = &trace.activities;
    let (start, dur) = (activities.start[at], activities.dur[at]);
    let stream = trace.streams[activities.stream[at].index()];
    let beside = device.computing(stream.device, start, start + dur);
    CollectiveRow {
        step: device.steps[at],
        kernel: Some(activities.name[at]),
        stream: Some(stream),
        dur: Some(dur),
        exposed: Some(dur - beside),
        launched: device.calls[at].map(|call| trace.calls.start[call as usize]),
        ..recorded_facts(trace, collective, host, start)
    }
}

/// Returns the recorded facts of a collective, from the first or else the second record.
fn recorded_facts(
    trace: &Trace,
    first: Option<&Collective>,
    second: Option<&Collective>,
    start: Nanos,
) -> CollectiveRow {
    let any = |of: fn(&Collective) -> Option<NameId>| first.and_then(of).or_else(|| second.and_then(of));
    let dtype = any(|collective| collective.dtype);
    let size = dtype.and_then(|dtype| size(trace.name(dtype)));
    let (sent, received) = (first.map(|one| one.in_elements), first.map(|one| one.out_elements));
    let bytes = |elements: Option<u64>| elements?.checked_mul(size?);
    CollectiveRow {
        step: None,
        op: any(|collective| Some(collective.name)).filter(|&name| !trace.name(name).is_empty()),
        kernel: None,
        stream: None,
        start,
        dur: None,
        exposed: None,
        launched: None,
        group: any(|collective| collective.group_name),
        group_description: any(|collective| collective.group_description),
        group_size: first.and_then(|one| one.group_size).or(second.and_then(|one| one.group_size)),
        sequence: first.and_then(|one| one.sequence).or(second.and_then(|one| one.sequence)),
        nth: 0,
        dtype,
        in_elements: sent,
        out_elements: received,
        in_bytes: bytes(sent),
        out_bytes: bytes(received),
    }
}

/// Returns the bytes of an element, by the type as NCCL's hooks write it (`Float`, `BFloat16`, `Long`, `Byte`).
fn size(dtype: &str) -> Option<u64> {
    if dtype == "Byte" {
        return Some(1);
    }
    Dtype::parse(dtype).or_else(|| Dtype::parse(&dtype.to_ascii_lowercase())).map(Dtype::size)
}

/// Numbers the collectives of each group and operation within each step.
fn number(rows: &mut [CollectiveRow]) {
    /// Step, group and operation.
    type Key = (Option<u32>, Option<NameId>, Option<NameId>);
    let mut counts: FxHashMap<Key, u32> = FxHashMap::default();
    for row in rows {
        // Without an operation the kernel's name is used.
        let count = counts.entry((row.step, row.group, row.op.or(row.kernel))).or_default();
        row.nth = *count;
        *count += 1;
    }
}
