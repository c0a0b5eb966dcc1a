//! What ran on the devices: launched by which call, in which step, beside what.

use steptime_aten::kernel_name::{Work, work};
use steptime_graph::launching_calls;
use steptime_trace::{ActivityKind, Nanos, Trace};

use super::nest::Nest;
use super::windows::Windows;

/// No step.
const NONE: u32 = u32::MAX;

/// Facts of device activities, by their number in the trace.
pub(super) struct Device {
    /// Activities by device, and then by their beginning.
    pub order: Vec<u32>,
    /// The calls that launched them.
    pub calls: Vec<Option<u32>>,
    /// The ops that launched them, the innermost.
    pub ops: Vec<Option<u32>>,
    /// Whether they are collectives.
    pub collective: Vec<bool>,
    /// How long the whole device had run nothing when they began.
    pub idle: Vec<Nanos>,
    /// Numbers of their steps.
    pub steps: Vec<Option<u32>>,
    /// What runs in each step, by its place.
    pub busy: Vec<Busy>,
    /// Where each device runs something else than collectives, merged, in order.
    computing: Vec<(u32, Vec<(Nanos, Nanos)>)>,
    places: Vec<u32>,
}

/// How long a step's activities run, those at once counted once; of several devices the sum.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Busy {
    pub active: Nanos,
    pub compute: Nanos,
    pub comm: Nanos,
}

/// The latest ends that a sweep over a device has seen in a step.
#[derive(Clone, Copy, Default)]
struct Ends {
    active: Option<Nanos>,
    compute: Option<Nanos>,
    comm: Option<Nanos>,
}

impl Device {
    pub(super) fn of(trace: &Trace, windows: &Windows, nest: &Nest) -> Device {
        let activities = &trace.activities;
        let calls = launching_calls(trace);
        let exchanges: Vec<bool> = trace.names.iter().map(|(_, name)| work(name) == Work::Exchange).collect();
        let is_collective = |(kind, name): (&ActivityKind, &steptime_trace::NameId)| {
            *kind == ActivityKind::Kernel && exchanges[name.index()]
        };
        let device = |at: u32| trace.streams[activities.stream[at as usize].index()].device;
        let mut order: Vec<u32> = (0..activities.len() as u32).collect();
        order.sort_by_key(|&at| (device(at), activities.start[at as usize], at));
        let place = |(call, start): (&Option<_>, &Nanos)| {
            let began =
                call.map_or(*start, |call: steptime_graph::TraceCall| trace.calls.start[call.index()]);
            windows.at(began).unwrap_or(NONE)
        };
        let places: Vec<u32> = calls.iter().zip(&activities.start).map(place).collect();
        let mut found = Device {
            order,
            ops: calls.iter().map(|call| nest.around((*call)?.index()).map(|op| op as u32)).collect(),
            calls: calls.iter().map(|call| call.map(|call| call.index() as u32)).collect(),
            collective: activities.kind.iter().zip(&activities.name).map(is_collective).collect(),
            idle: vec![Nanos::ZERO; activities.len()],
            steps: places.iter().map(|&place| windows.number(known(place))).collect(),
            busy: vec![Busy::default(); windows.all().len()],
            computing: Vec::new(),
            places,
        };
        found.sweep(trace, device);
        found
    }

    /// Goes over each device in the order of time.
    fn sweep(&mut self, trace: &Trace, device: impl Fn(u32) -> u32) {
        let activities = &trace.activities;
        let order = std::mem::take(&mut self.order);
        for of_one in order.chunk_by(|&one, &other| device(one) == device(other)) {
            let mut ends = vec![Ends::default(); self.busy.len()];
            let mut computing: Vec<(Nanos, Nanos)> = Vec::new();
            let mut latest: Option<Nanos> = None;
            for &at in of_one {
                let at = at as usize;
                let (start, end) = (activities.start[at], activities.end(at));
                self.idle[at] = latest.map_or(Nanos::ZERO, |latest| (start - latest).max(Nanos::ZERO));
                latest = Some(latest.map_or(end, |latest| latest.max(end)));
                if !self.collective[at] {
                    match computing.last_mut().filter(|last| start <= last.1) {
                        Some(last) => last.1 = last.1.max(end),
                        None => computing.push((start, end)),
                    }
                }
                if let Some(place) = self.place(at) {
                    let (busy, ends) = (&mut self.busy[place as usize], &mut ends[place as usize]);
                    cover(&mut busy.active, &mut ends.active, start, end);
                    match self.collective[at] {
                        true => cover(&mut busy.comm, &mut ends.comm, start, end),
                        false => cover(&mut busy.compute, &mut ends.compute, start, end),
                    }
                }
            }
            let Some(&first) = of_one.first() else { continue };
            self.computing.push((device(first), computing));
        }
        self.order = order;
    }

    /// The place of an activity's step.
    pub(super) fn place(&self, at: usize) -> Option<u32> {
        known(self.places[at])
    }

    /// How much of a time a device runs something else than collectives.
    pub(super) fn computing(&self, device: u32, start: Nanos, end: Nanos) -> Nanos {
        let Some((_, busy)) = self.computing.iter().find(|(other, _)| *other == device) else {
            return Nanos::ZERO;
        };
        let first = busy.partition_point(|&(_, ended)| ended <= start);
        let within = busy[first..].iter().take_while(|&&(began, _)| began < end);
        within.map(|&(began, ended)| ended.min(end) - began.max(start)).sum()
    }
}

/// Adds what an interval adds to a union whose latest end is known.
fn cover(total: &mut Nanos, latest: &mut Option<Nanos>, start: Nanos, end: Nanos) {
    let from = latest.map_or(start, |latest| latest.max(start));
    *total += (end - from).max(Nanos::ZERO);
    *latest = Some(latest.map_or(end, |latest| latest.max(end)));
}

fn known(place: u32) -> Option<u32> {
    (place != NONE).then_some(place)
}
