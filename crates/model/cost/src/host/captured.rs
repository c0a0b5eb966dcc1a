//! Captured steps: the profiler's addition to the launch of a CUDA graph and to the time between its nodes.
//!
//! The profiler hooks every node when a graph is launched, and adds time between a cleared buffer and the kernels
//! around it. Both are measured by `lab/profiler-cost/graph_nodes.py`: graphs of small nodes, replayed with and
//! without the profiler.

use serde::{Deserialize, Serialize};
use steptime_graph::{
    ActivityId, ApiKind, Blocking, Call, CallId, MarkId, StepGraph, StepId, TiSlice, median,
};
use steptime_trace::{ActivityKind, Nanos};

use super::recorded_gaps;
use super::robust::quiet_mean;

/// Costs of a graph in addition to its nodes' own time, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Captured {
    /// Host time of launching any graph.
    pub call_us: f64,
    /// Host time of launching it, per node.
    pub node_us: f64,
    /// Host time of launching any graph under the profiler.
    pub profiled_call_us: f64,
    /// Host time of launching it under the profiler, per node.
    pub profiled_node_us: f64,
    /// Time between two nodes of one stream, at most.
    pub between_us: f64,
    /// Time between a cleared buffer and its neighbours, at most.
    pub clear_us: f64,
}

impl Default for Captured {
    fn default() -> Captured {
        Captured {
            call_us: 5.0,
            node_us: 0.27,
            profiled_call_us: 2.2,
            profiled_node_us: 0.91,
            between_us: 0.15,
            clear_us: 0.5,
        }
    }
}

/// Delays of parts of captured graphs, if known better than those of other launches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CapturedDelays {
    /// Calls whose first activity begins while the call still runs, with its delay from the call's beginning.
    pub leads: Vec<(CallId, Nanos)>,
    /// Activities with their delay after the one before them on their stream.
    pub between: Vec<(ActivityId, Nanos)>,
}

/// Share of a launch after which a graph's first node begins, if no recording shows it.
const LEAD: f64 = 0.5;

/// Time from the end of a node to the beginning of one that waits for it by an edge of the graph: about 1 us on an H200, and 0.8 in a step of 70
/// nodes on an H100 (`lab/notes/cuda.md`, NVIDIA's DLRM at B 2,048 as a sequence).
const EDGE: Nanos = Nanos(800);

impl Captured {
    /// Returns its fields by name.
    pub(crate) fn numbers(&self) -> [(&'static str, f64); 6] {
        [
            ("call_us", self.call_us),
            ("node_us", self.node_us),
            ("profiled_call_us", self.profiled_call_us),
            ("profiled_node_us", self.profiled_node_us),
            ("between_us", self.between_us),
            ("clear_us", self.clear_us),
        ]
    }

    /// Returns the launch time of a graph of `nodes` nodes, µs.
    fn launch_us(&self, nodes: usize) -> f64 {
        self.call_us + self.node_us * nodes as f64
    }

    /// Returns the ratio of a launch without the profiler to one with it.
    fn ratio(&self, nodes: usize) -> f64 {
        let profiled = self.profiled_call_us + self.profiled_node_us * nodes as f64;
        if profiled > 0.0 { (self.launch_us(nodes) / profiled).min(1.0) } else { 1.0 }
    }

    /// Subtracts the profiler's cost of CUDA graphs from costs that come from a recording. The cost of a launch of many nodes
    /// is unlike that of other calls, so it starts from the recorded time of the launch.
    pub fn take_off(
        &self,
        graph: &StepGraph,
        gaps: &mut TiSlice<MarkId, Nanos>,
        delays: &mut CapturedDelays,
    ) {
        let mut column = Vec::new();
        for (at, call) in graphs(graph) {
            let ratio = self.ratio(call.activities().len());
            recorded_gaps::collect(graph, call.end, &mut column);
            if let (Blocking::Never, Some(raw)) = (call.blocking, quiet_mean(&mut column)) {
                gaps[call.end] = scale(raw, ratio).max(Nanos::ZERO);
            }
            for lead in delays.leads.iter_mut().filter(|(of, _)| *of == at) {
                lead.1 = scale(lead.1, ratio);
            }
            self.between(graph, call, &mut delays.between);
        }
    }

    /// Sets the costs of an unrecorded host.
    pub fn apply(&self, graph: &StepGraph, gaps: &mut TiSlice<MarkId, Nanos>, delays: &mut CapturedDelays) {
        for (at, call) in graphs(graph).filter(|(_, call)| call.blocking == Blocking::Never) {
            let launch = Nanos::from_micros_f64(self.launch_us(call.activities().len()));
            gaps[call.end] = launch;
            delays.leads.push((at, scale(launch, LEAD)));
            self.between(graph, call, &mut delays.between);
        }
    }

    /// Adds the times between the nodes of a graph: as recorded, up to the constants. Nodes of a graph with several streams wait by its edges.
    fn between(&self, graph: &StepGraph, call: &Call, found: &mut Vec<(ActivityId, Nanos)>) {
        let stream = graph.activities[call.first_activity].stream;
        let by_data = call.activities().any(|at| graph.activities[at].stream != stream);
        for at in call.activities().skip(1) {
            let (one, two) = (&graph.activities[at.previous()], &graph.activities[at]);
            let clears = one.kind == ActivityKind::Memset || two.kind == ActivityKind::Memset;
            let most = Nanos::from_micros_f64(if clears { self.clear_us } else { self.between_us });
            let most = if by_data { most.max(EDGE) } else { most };
            let seen = graph.queue_delays.get(at).copied().flatten().unwrap_or(most);
            found.push((at, seen.min(most)));
        }
    }
}

/// Returns the launches of graphs of several nodes.
fn graphs(graph: &StepGraph) -> impl Iterator<Item = (CallId, &Call)> {
    let calls = graph.calls.iter_enumerated();
    calls.filter(|(_, call)| call.kind == ApiKind::GraphLaunch && call.activities().len() > 1)
}

/// Returns the delay of the first node of each graph after the launch's beginning, if it began before the launch was over:
/// the median over the steps.
pub(super) fn recorded_leads(graph: &StepGraph) -> Vec<(CallId, Nanos)> {
    let samples = &graph.samples;
    let lead = |(at, call): (CallId, &Call)| {
        let in_step = |step: StepId| {
            let (begin, end) = (samples.mark(step, call.begin)?, samples.mark(step, call.end)?);
            let start = samples.activity_start(step, call.first_activity)?;
            (begin <= start && start < end).then_some(start - begin)
        };
        let mut seen: Vec<Nanos> = samples.steps().filter_map(in_step).collect();
        let often = 2 * seen.len() > samples.steps().len();
        Some((at, median(&mut seen).filter(|_| often && call.blocking == Blocking::Never)?))
    };
    graphs(graph).filter_map(lead).collect()
}

fn scale(time: Nanos, factor: f64) -> Nanos {
    Nanos((time.0 as f64 * factor).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_of_many_nodes_is_mostly_the_profiler() {
        let captured = Captured::default();
        assert!((captured.ratio(1000) - 275.0 / 912.2).abs() < 1e-9);
        assert!((captured.ratio(1) - 1.0).abs() < 1e-9, "never dearer without the profiler");
        assert_eq!(Captured { profiled_call_us: 0.0, profiled_node_us: 0.0, ..captured }.ratio(9), 1.0);
    }
}
