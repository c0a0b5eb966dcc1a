//! Device activities: their launching calls and ops, their steps, and concurrent work.

use steptime_aten::kernel_name::{Work, work};
use steptime_graph::{Launch, kernel_launches, launching_calls};
use steptime_trace::{ActivityKind, Nanos, Trace};

use super::busy_times::BusyIntervals;
use super::nest::Nest;
use super::step_of_time::Windows;

const NONE: u32 = u32::MAX;

/// Facts of device activities, by their number in the trace.
pub(super) struct Device {
    /// Activities by device, and then by their beginning.
    pub order: Vec<u32>,
    /// Calls that launched them.
    pub calls: Vec<Option<u32>>,
    /// Innermost ops that launched them.
    pub ops: Vec<Option<u32>>,
    /// Whether they are collectives.
    pub collective: Vec<bool>,
    /// Idle time of the whole device before their beginning.
    pub idle: Vec<Nanos>,
    /// Numbers of their steps.
    pub steps: Vec<Option<u32>>,
    /// Activities of each step, by its place.
    pub launched: Vec<StepLaunches>,
    /// Busy intervals of each device.
    pub running: Vec<BusyIntervals>,
    places: Vec<u32>,
}

/// Activities that a step launched, on any device.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StepLaunches {
    /// Active time, with concurrent activities counted once; summed over devices.
    pub active: Nanos,
    /// End of the last activity.
    pub end: Option<Nanos>,
    /// Number of kernels.
    pub kernels: u64,
    /// Number of calls that launch a kernel without a device record.
    pub unrecorded: u64,
}

/// Largest share of launches without a device record at which device times count as known.
const MOST_UNRECORDED: f64 = 0.05;

impl StepLaunches {
    /// Whether all launches, or nearly all, have a device record.
    pub(super) fn is_recorded(&self) -> bool {
        self.unrecorded as f64 <= MOST_UNRECORDED * (self.kernels + self.unrecorded) as f64
    }
}

impl Device {
    pub(super) fn build(trace: &Trace, windows: &Windows, nest: &Nest) -> Device {
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
            launched: vec![StepLaunches::default(); windows.all().len()],
            running: Vec::new(),
            places,
        };
        found.sweep(trace, device);
        for (launch, &start) in kernel_launches(trace, &calls).iter().zip(&trace.calls.start) {
            if let (Some(Launch::Lost), Some(place)) = (launch, windows.at(start)) {
                found.launched[place as usize].unrecorded += 1;
            }
        }
        found
    }

    /// Whether the launches of the steps from one activity to another have device records.
    pub(super) fn is_recorded(&self, from: Option<usize>, to: usize) -> bool {
        let Some(last) = self.place(to) else { return true };
        let first = from.and_then(|from| self.place(from)).unwrap_or(last).min(last);
        self.launched[first as usize..=last as usize].iter().all(StepLaunches::is_recorded)
    }

    /// Visits each device's activities in the order of time.
    fn sweep(&mut self, trace: &Trace, device: impl Fn(u32) -> u32) {
        let activities = &trace.activities;
        let order = std::mem::take(&mut self.order);
        for of_one in order.chunk_by(|&one, &other| device(one) == device(other)) {
            let Some(&first) = of_one.first() else { continue };
            let mut running = BusyIntervals::new(device(first));
            let mut ends: Vec<Option<Nanos>> = vec![None; self.launched.len()];
            for &at in of_one {
                let at = at as usize;
                let (start, end) = (activities.start[at], activities.end(at));
                let latest = running.all.end();
                self.idle[at] = latest.map_or(Nanos::ZERO, |latest| (start - latest).max(Nanos::ZERO));
                running.add(start, end, self.collective[at]);
                if let Some(place) = self.place(at) {
                    let (launched, latest) = (&mut self.launched[place as usize], &mut ends[place as usize]);
                    let from = latest.map_or(start, |latest| latest.max(start));
                    launched.kernels += u64::from(activities.kind[at] == ActivityKind::Kernel);
                    launched.active += (end - from).max(Nanos::ZERO);
                    launched.end = launched.end.max(Some(end));
                    *latest = Some(latest.map_or(end, |latest| latest.max(end)));
                }
            }
            self.running.push(running);
        }
        self.order = order;
    }

    /// Returns the place of an activity's step.
    pub(super) fn place(&self, at: usize) -> Option<u32> {
        known(self.places[at])
    }

    /// Returns the part of a time in which a device runs anything but collectives.
    pub(super) fn computing(&self, device: u32, start: Nanos, end: Nanos) -> Nanos {
        let running = self.running.iter().find(|running| running.device == device);
        running.map_or(Nanos::ZERO, |running| running.compute.within(start, end))
    }
}

fn known(place: u32) -> Option<u32> {
    (place != NONE).then_some(place)
}
