//! Small recordings, in the profiler's format. Times in microseconds.

use steptime_graph::{Error, Options, StepGraph};
use steptime_trace::Nanos;

/// Thread on which the steps are marked.
pub const MAIN: i64 = 1;

/// Microseconds.
pub fn us(time: f64) -> Nanos {
    Nanos::from_micros_f64(time)
}

/// Events of a recording, in any order.
#[derive(Default)]
pub struct Recording {
    events: Vec<String>,
    correlation: u64,
}

impl Recording {
    /// Returns three marked steps, numbered from 5 and 100 us apart, each written by `step` from its beginning on.
    pub fn three_steps(mut step: impl FnMut(&mut Recording, f64)) -> Recording {
        Recording::steps(3, |recording, _, at| step(recording, at))
    }

    /// Returns marked steps, numbered from 5 and 100 us apart, each written by `step` from its index and beginning.
    pub fn steps(count: u32, mut step: impl FnMut(&mut Recording, u32, f64)) -> Recording {
        let mut recording = Recording::default();
        for index in 0..count {
            let at = 1000.0 + 100.0 * f64::from(index);
            recording.step_mark(5 + index, at, at + 100.0);
            step(&mut recording, index, at);
        }
        recording
    }

    pub fn step_mark(&mut self, number: u32, from: f64, to: f64) {
        self.annotation(&format!("ProfilerStep#{number}"), MAIN, from, to);
    }

    pub fn annotation(&mut self, name: &str, thread: i64, from: f64, to: f64) {
        self.event("user_annotation", name, (7, thread), [from, to], "");
    }

    pub fn op(&mut self, name: &str, thread: i64, from: f64, to: f64) {
        self.event("cpu_op", name, (7, thread), [from, to], "");
    }

    /// Adds a call of the main thread.
    pub fn call(&mut self, api: &str, from: f64, to: f64) {
        self.correlation += 1;
        let args = format!(r#""correlation": {}"#, self.correlation);
        self.event("cuda_runtime", api, (7, MAIN), [from, to], &args);
    }

    /// Adds a device activity of the last call.
    pub fn ran(&mut self, category: &str, name: &str, stream: i64, from: f64, to: f64) {
        let args = format!(r#""correlation": {}, "device": 0, "stream": {stream}"#, self.correlation);
        self.event(category, name, (0, stream), [from, to], &args);
    }

    /// Adds a launch on the main thread and its kernel.
    pub fn kernel(&mut self, at: [f64; 2], stream: i64, ran: [f64; 2]) {
        self.call("cudaLaunchKernel", at[0], at[1]);
        self.ran("kernel", "k", stream, ran[0], ran[1]);
    }

    /// Adds a pageable copy to the device.
    pub fn copy(&mut self, at: [f64; 2], ran: [f64; 2]) {
        self.call("cudaMemcpyAsync", at[0], at[1]);
        self.ran("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 7, ran[0], ran[1]);
    }

    /// Adds a record that the last call waited for a stream.
    pub fn stream_sync(&mut self, stream: i64, from: f64, to: f64) {
        let args = format!(
            r#""correlation": {}, "device": 0, "stream": {stream}, "cuda_sync_kind": "Stream Synchronize""#,
            self.correlation
        );
        self.event("cuda_sync", "Stream Synchronize", (0, stream), [from, to], &args);
    }

    /// Adds the events of another recording.
    pub fn append(&mut self, mut other: Recording) {
        self.events.append(&mut other.events);
    }

    fn event(&mut self, category: &str, name: &str, (pid, tid): (i64, i64), span: [f64; 2], args: &str) {
        let [from, to] = span;
        let dur = to - from;
        self.events.push(format!(
            r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {tid}, "ts": {from:.3}, "dur": {dur:.3}, "args": {{{args}}}}}"#
        ));
    }

    pub fn build(&self, options: &Options) -> Result<StepGraph, Error> {
        let json = format!(r#"{{"schemaVersion": 1, "traceEvents": [{}]}}"#, self.events.join(","));
        let trace = steptime_trace::read_kineto(json.as_bytes()).expect("a well-formed trace");
        StepGraph::build(&trace, options)
    }

    pub fn graph(&self) -> StepGraph {
        self.build(&Options::default()).expect("a graph")
    }
}

/// Returns the names of the template's ops, in order.
pub fn ops(graph: &StepGraph) -> Vec<&str> {
    graph.ops.keys().map(|op| graph.op_name(op)).collect()
}
