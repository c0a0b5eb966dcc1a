//! Three ranks, each late once for a different cause: the named rank, its cause, and the waiting time. Times are in microseconds.

use std::fmt::Write as _;
use std::path::Path;

use steptime_predict::{LateCause, RankSet, Straggler};
use steptime_trace::Nanos;

/// Extra time of a rank over the others, by part of its step.
#[derive(Debug, Clone, Copy, Default)]
struct ExtraTime {
    input: f64,
    host: f64,
    kernel: f64,
    copy: f64,
}

/// The trace of a rank being written.
struct Trace {
    events: String,
    correlation: u64,
    begin: f64,
}

impl Trace {
    fn event(&mut self, category: &str, name: &str, [pid, tid]: [u32; 2], [from, to]: [f64; 2], args: &str) {
        let (at, took) = (self.begin + from, to - from);
        let _ = write!(
            self.events,
            r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {tid}, "ts": {at:.3}, "dur": {took:.3}, "args": {{{args}}}}},"#
        );
    }

    fn op(&mut self, name: &str, during: [f64; 2]) {
        self.event("cpu_op", name, [1, 1], during, "");
    }

    fn call(&mut self, api: &str, during: [f64; 2]) -> u64 {
        self.correlation += 1;
        self.event("cuda_runtime", api, [1, 1], during, &format!(r#""correlation": {}"#, self.correlation));
        self.correlation
    }

    fn runs(&mut self, call: u64, [category, name]: [&str; 2], during: [f64; 2], more: &str) {
        let args = format!(r#""correlation": {call}, "device": 0, "stream": 7, "bytes": 4096{more}"#);
        self.event(category, name, [0, 7], during, &args);
    }

    fn sum(&mut self, call: u64, during: [f64; 2]) {
        let more = r#", "Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "Float", "Group size": 3, "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2]""#;
        self.runs(call, ["kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"], during, more);
    }
}

/// Three steps of 2 ms. The batch is fetched and copied, then the host works and a first sum is launched; a kernel follows, and a second
/// sum; the host waits, copies, and launches a third. `met` are the times at which the last rank arrives at each.
fn trace(rank: u32, longer: ExtraTime, met: [f64; 3]) -> String {
    let mut trace = Trace { events: String::new(), correlation: 0, begin: 0.0 };
    for step in 0..3 {
        trace.begin = 1000.0 + 2000.0 * f64::from(step);
        trace.event("user_annotation", &format!("ProfilerStep#{step}"), [1, 1], [0.0, 2000.0], "");
        let mut now = 50.0 + longer.input;
        trace.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", [5.0, now]);
        trace.op("aten::to", [now + 2.0, now + 70.0]);
        let call = trace.call("cudaMemcpyAsync", [now + 5.0, now + 60.0]);
        let copy = ["gpu_memcpy", "Memcpy HtoD (Pageable -> Device)"];
        trace.runs(call, copy, [now + 20.0, now + 58.0], "");
        now += 80.0;
        trace.op("aten::linear", [now, now + 100.0 + longer.host]);
        now += 110.0 + longer.host;
        let call = trace.call("cudaLaunchKernel", [now, now + 5.0]);
        trace.sum(call, [now + 7.0, met[0] + 20.0]);
        let call = trace.call("cudaLaunchKernel", [now + 10.0, now + 15.0]);
        let kernel = met[0] + 21.0;
        trace.runs(call, ["kernel", "gemm"], [kernel, kernel + 100.0 + longer.kernel], "");
        let call = trace.call("cudaLaunchKernel", [now + 20.0, now + 25.0]);
        trace.sum(call, [kernel + 101.0 + longer.kernel, met[1] + 20.0]);
        let done = met[1] + 25.0;
        trace.call("cudaDeviceSynchronize", [now + 30.0, done]);
        trace.op("aten::copy_", [done + 2.0, done + 160.0 + longer.copy]);
        let call = trace.call("cudaMemcpyAsync", [done + 5.0, done + 150.0 + longer.copy]);
        trace.runs(call, copy, [done + 20.0, done + 148.0 + longer.copy], "");
        now = done + 165.0 + longer.copy;
        let call = trace.call("cudaLaunchKernel", [now, now + 5.0]);
        trace.sum(call, [now + 7.0, met[2] + 20.0]);
        trace.call("cudaDeviceSynchronize", [now + 10.0, met[2] + 25.0]);
    }
    trace.events.pop();
    format!(
        r#"{{"schemaVersion": 1, "distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": 3}}, "deviceProperties": [{{"id": 0, "name": "NVIDIA H200"}}], "traceEvents": [{}]}}"#,
        trace.events
    )
}

/// Stragglers of a job whose ranks take this much longer.
fn stragglers(folder: &Path, ranks: [ExtraTime; 3]) -> Vec<Straggler> {
    let latest = |of: &dyn Fn(&ExtraTime) -> f64| ranks.iter().map(of).fold(0.0, f64::max);
    let first = 247.0 + latest(&|longer| longer.input + longer.host);
    let second = first + 122.0 + latest(&|longer| longer.kernel);
    let third = second + 197.0 + latest(&|longer| longer.copy);
    for (rank, longer) in ranks.into_iter().enumerate() {
        let text = trace(rank as u32, longer, [first, second, third]);
        std::fs::write(folder.join(format!("rank{rank}.json")), text).expect("a file");
    }
    let ranks = RankSet::open(folder).expect("a job");
    ranks.crew().recorded().expect("three steps").stragglers
}

fn us(time: f64) -> Nanos {
    Nanos::from_micros_f64(time)
}

#[test]
fn each_is_named_with_its_cause() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = ExtraTime::default();
    let ranks = [
        ExtraTime { host: 250.0, ..none },
        ExtraTime { kernel: 200.0, ..none },
        ExtraTime { copy: 150.0, ..none },
    ];
    let found = stragglers(folder.path(), ranks);
    let named: Vec<_> = found.iter().map(|one| (one.rank, one.cause, one.keeps_waiting)).collect();
    assert_eq!(
        named,
        [
            (0, LateCause::Host, us(250.0)),
            (1, LateCause::Kernels, us(200.0)),
            (2, LateCause::Copies, us(150.0))
        ]
    );
    let whats: Vec<&str> = found.iter().map(|one| one.reasons[0].what.as_str()).collect();
    assert_eq!(whats, ["aten::linear", "gemm", "Memcpy HtoD (Pageable -> Device)"]);
    for (one, longer) in found.iter().zip([250.0, 200.0, 150.0]) {
        assert_eq!(one.last, 1.0 / 3.0);
        assert_eq!((one.reasons.len(), one.reasons[0].longer), (1, us(longer)), "{one:?}");
        assert_eq!(one.busy - one.others_busy, us(longer), "{one:?}");
    }
    // The host launched late, except on the rank whose device was busy: a copy blocks its host.
    assert_eq!(found.iter().map(|one| one.by_host).collect::<Vec<f64>>(), [1.0, 0.0, 1.0]);
}

#[test]
fn loading_the_batch_is_told_from_the_rest_of_the_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = ExtraTime::default();
    let found = stragglers(folder.path(), [none, ExtraTime { input: 300.0, ..none }, none]);
    let [one] = &found[..] else { panic!("one straggler: {found:?}") };
    assert_eq!((one.rank, one.cause, one.keeps_waiting), (1, LateCause::Input, us(300.0)));
    assert!(one.reasons[0].what.starts_with("enumerate(DataLoader)"), "{one:?}");
}

#[test]
fn ranks_that_come_together_keep_nobody_waiting() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(stragglers(folder.path(), [ExtraTime::default(); 3]), []);
}
