//! Small recordings in the profiler's format: three equal steps, so that the gap between steps is known.

use std::fmt::Write as _;

use steptime_cost::{Coupling, HostCosts, PricedGraph, ProfilerCost};
use steptime_graph::{Options, StepGraph};

/// Delays that are easy to add up.
pub const DELAYS: Coupling = Coupling {
    launch_to_start_us: 2.0,
    queue_gap_us: 1.0,
    sync_own_us: 3.0,
    sync_return_us: 4.0,
    copy_lead_us: 85.0,
    queue_depth: 1024,
};

/// A step to record; times in microseconds from its beginning.
#[derive(Debug, Clone, Default)]
pub struct Step {
    events: Vec<(String, f64)>,
    correlation: u64,
}

impl Step {
    pub fn op(mut self, name: &str, from: f64, to: f64) -> Step {
        self.host("cpu_op", name, 1, from, to, "");
        self
    }

    /// An op of the backward thread.
    pub fn backward(mut self, name: &str, from: f64, to: f64) -> Step {
        self.host("cpu_op", &format!("autograd::engine::evaluate_function: {name}"), 2, from, to, "");
        self
    }

    /// One more activity of the last launch, as of a captured graph.
    pub fn also(mut self, stream: i64, ran: [f64; 2]) -> Step {
        let args = format!(r#""correlation": @{}, "device": 0, "stream": {stream}"#, self.correlation);
        self.event("kernel", "k", 0, stream, ran[0], ran[1], &args);
        self
    }

    /// A memset of a captured graph.
    pub fn cleared(mut self, stream: i64, ran: [f64; 2]) -> Step {
        let args =
            format!(r#""correlation": @{}, "device": 0, "stream": {stream}, "bytes": 64"#, self.correlation);
        self.event("gpu_memset", "Memset (Unknown)", 0, stream, ran[0], ran[1], &args);
        self
    }

    /// A runtime call that puts nothing on the device.
    pub fn call(mut self, name: &str, from: f64, to: f64) -> Step {
        self.correlation += 1;
        let args = format!(r#""correlation": @{}"#, self.correlation);
        self.host("cuda_runtime", name, 1, from, to, &args);
        self
    }

    /// A launch on a host thread, and its kernel on a stream.
    pub fn kernel(self, at: [f64; 2], stream: i64, ran: [f64; 2]) -> Step {
        self.activity("cudaLaunchKernel", at, "kernel", "k", stream, ran)
    }

    /// A collective of a group of two ranks, launched like a kernel.
    pub fn collective(mut self, op: &str, group: &str, at: [f64; 2], stream: i64, ran: [f64; 2]) -> Step {
        self.correlation += 1;
        let link = format!(r#""correlation": @{}"#, self.correlation);
        self.host("cuda_runtime", "cudaLaunchKernel", 1, at[0], at[1], &link);
        let args = format!(
            r#"{link}, "device": 0, "stream": {stream}, "Collective name": "{op}", "In msg nelems": 256, "Out msg nelems": 256, "dtype": "Float", "Group size": 2, "Process Group Name": "{group}", "Process Group Ranks": "[0, 1]""#
        );
        self.event("kernel", "ncclDevKernel_Generic", 0, stream, ran[0], ran[1], &args);
        self
    }

    pub fn activity(
        mut self,
        api: &str,
        at: [f64; 2],
        category: &str,
        name: &str,
        stream: i64,
        ran: [f64; 2],
    ) -> Step {
        self.correlation += 1;
        let link = format!(r#""correlation": @{}"#, self.correlation);
        self.host("cuda_runtime", api, 1, at[0], at[1], &link);
        let args = format!(r#"{link}, "device": 0, "stream": {stream}, "bytes": 4096"#);
        self.event(category, name, 0, stream, ran[0], ran[1], &args);
        self
    }

    fn host(&mut self, category: &str, name: &str, tid: i64, from: f64, to: f64, args: &str) {
        self.event(category, name, 1, tid, from, to, args);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of an event")]
    fn event(&mut self, category: &str, name: &str, pid: i64, tid: i64, from: f64, to: f64, args: &str) {
        let dur = to - from;
        let text = format!(
            r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {tid}, "dur": {dur:.3}, "args": {{{args}}}, "ts": "#
        );
        self.events.push((text, from));
    }

    /// The graph of a recording of three such steps, `period` apart.
    pub fn recorded(&self, period: f64) -> StepGraph {
        let trace = steptime_trace::read_kineto(self.json(period).as_bytes()).expect("a well-formed trace");
        StepGraph::build(&trace, &Options::default()).expect("a graph")
    }

    /// The recording of three such steps, `period` apart.
    pub fn json(&self, period: f64) -> String {
        let mut json = String::from(r#"{"schemaVersion": 1, "traceEvents": ["#);
        for step in 0..3 {
            let offset = 1000.0 + period * f64::from(step);
            let _ = write!(
                json,
                r#"{{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": {offset:.3}, "dur": {period:.3}}},"#
            );
            for (text, from) in &self.events {
                let unique = text.replace("\"correlation\": @", &format!("\"correlation\": {}0", step + 1));
                let _ = write!(json, "{unique}{:.3}}},", offset + from);
            }
        }
        json.pop();
        json.push_str("]}");
        json
    }
}

/// The graph with its own times, the profiler's cost left in, and the delays above.
pub fn priced(graph: &StepGraph) -> PricedGraph<'_> {
    let mut host = HostCosts::from_own_samples(graph, &ProfilerCost::NONE, &DELAYS);
    host.coupling = DELAYS;
    PricedGraph::measured(graph, host)
}
