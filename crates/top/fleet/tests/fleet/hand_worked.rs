//! One small trace whose tables were computed by hand.

use std::fmt::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{RecordBatch, StringArray};
use steptime_fleet::{Rank, Table};
use steptime_trace::read_kineto;

/// Events of a trace, in microseconds.
#[derive(Default)]
struct Trace(String);

impl Trace {
    fn event(mut self, category: &str, name: &str, tid: u32, times: (f64, f64), args: &str) -> Trace {
        let (start, end) = times;
        let dur = end - start;
        let comma = if self.0.is_empty() { "" } else { ", " };
        write!(
            self.0,
            r#"{comma}{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": 0, "tid": {tid}, "ts": {start}, "dur": {dur:.3}, "args": {{{args}}}}}"#
        )
        .expect("a string takes all");
        self
    }

    fn op(self, name: &str, start: f64, end: f64) -> Trace {
        self.event("cpu_op", name, 1, (start, end), "")
    }

    /// A launch and its kernel.
    fn kernel(self, name: &str, stream: u32, launch: f64, times: (f64, f64), id: u32) -> Trace {
        let args = format!(r#""correlation": {id}"#);
        self.event("cuda_runtime", "cudaLaunchKernel", 1, (launch, launch + 1.0), &args)
            .alone(name, stream, times, id)
    }

    fn tables(self) -> [RecordBatch; 5] {
        let json = format!(r#"{{"baseTimeNanoseconds": 1000000, "traceEvents": [{}]}}"#, self.0);
        let trace = read_kineto(json.as_bytes()).expect("a trace");
        let rank = Rank::from_trace(&trace).expect("ops that nest as they do");
        Table::ALL.map(|table| table.record_batch(&rank).expect("a table"))
    }

    fn alone(self, name: &str, stream: u32, times: (f64, f64), id: u32) -> Trace {
        let args = format!(r#""device": 0, "stream": {stream}, "correlation": {id}"#);
        self.event("kernel", name, stream, times, &args)
    }
}

const COMMS: &str = r#""Collective name": "allreduce", "In msg nelems": 10, "Out msg nelems": 20, "Group size": 2,
    "dtype": "BFloat16", "Process Group Name": "0", "Process Group Description": "default_pg", "Seq": 5"#;

fn tables() -> [RecordBatch; 5] {
    Trace::default()
        .event("user_annotation", "ProfilerStep#4", 1, (0.0, 100.0), "")
        .event("user_annotation", "ProfilerStep#5", 1, (100.0, 200.0), "")
        .op("aten::a", 5.0, 20.0)
        .kernel("k1", 7, 10.0, (15.0, 25.0), 1)
        .op("aten::b", 30.0, 40.0)
        .op("aten::inner", 31.0, 35.0)
        .kernel("k2", 7, 32.0, (36.0, 46.0), 2)
        .kernel("k3", 7, 36.0, (48.0, 50.0), 3)
        .event("cuda_runtime", "cudaStreamSynchronize", 1, (41.0, 52.0), "")
        .op("aten::c", 54.0, 60.0)
        .kernel("k4", 7, 55.0, (58.0, 68.0), 4)
        .event("cpu_op", "record_param_comms", 1, (61.0, 66.0), COMMS)
        .kernel("ncclDevKernel_AllReduce", 8, 62.0, (64.0, 80.0), 5)
        .op("aten::d", 67.0, 70.0)
        .kernel("k5", 7, 67.5, (76.0, 78.0), 6)
        // Its launch is not recorded.
        .alone("k6", 7, (150.0, 151.0), 7)
        .tables()
}

fn numbers(table: &RecordBatch, column: &str) -> Vec<Option<i64>> {
    let column = table.column_by_name(column).unwrap_or_else(|| panic!("no {column}"));
    if let Some(values) = column.as_primitive_opt::<Int64Type>() {
        return values.iter().collect();
    }
    if let Some(values) = column.as_primitive_opt::<UInt32Type>() {
        return values.iter().map(|value| value.map(i64::from)).collect();
    }
    column.as_primitive::<UInt64Type>().iter().map(|value| value.map(|value| value as i64)).collect()
}

fn texts(table: &RecordBatch, column: &str) -> Vec<String> {
    let column = table.column_by_name(column).unwrap_or_else(|| panic!("no {column}"));
    if let Some(column) = column.as_string_opt::<i32>() {
        return column.iter().map(|text| text.unwrap_or("-").to_owned()).collect();
    }
    let column = column.as_dictionary::<Int32Type>();
    let texts = column.downcast_dict::<StringArray>().expect("a dictionary of text");
    texts.into_iter().map(|text| text.unwrap_or("-").to_owned()).collect()
}

fn some(values: &[i64]) -> Vec<Option<i64>> {
    values.iter().copied().map(Some).collect()
}

#[test]
fn steps() {
    let [steps, ..] = tables();
    assert_eq!(numbers(&steps, "step"), some(&[4, 5]));
    assert_eq!(texts(&steps, "found"), ["marked", "marked"]);
    assert_eq!(numbers(&steps, "start_ns"), some(&[1_000_000, 1_100_000]));
    assert_eq!(numbers(&steps, "dur_ns"), some(&[100_000, 100_000]));
    assert_eq!(numbers(&steps, "active_ns"), some(&[44_000, 1_000]));
    assert_eq!(numbers(&steps, "idle_ns"), some(&[56_000, 99_000]));
    assert_eq!(numbers(&steps, "compute_ns"), some(&[34_000, 1_000]));
    assert_eq!(numbers(&steps, "comm_ns"), some(&[16_000, 0]));
    assert_eq!(numbers(&steps, "comm_exposed_ns"), some(&[10_000, 0]));
    assert_eq!(numbers(&steps, "kernels"), some(&[6, 1]));
    assert_eq!(numbers(&steps, "calls"), some(&[7, 0]));
    assert_eq!(texts(&steps, "clock"), ["host", "host"]);
    assert_eq!(numbers(&steps, "unrecorded"), some(&[0, 0]));
}

/// The host marks a step every 10 us, the device takes 50: 30 for a product, and 20 for an exposed collective.
#[test]
fn steps_last_as_long_as_the_device_where_the_host_runs_ahead() {
    let mut events = Trace::default();
    for step in 0..5u32 {
        let (at, ran) = (f64::from(step) * 10.0, f64::from(step) * 50.0);
        let mark = format!("ProfilerStep#{step}");
        events = events
            .event("user_annotation", &mark, 1, (at, at + 10.0), "")
            .kernel("gemm", 7, at + 1.0, (ran + 5.0, ran + 35.0), 2 * step + 1)
            .kernel("ncclDevKernel_AllReduce", 8, at + 3.0, (ran + 35.0, ran + 55.0), 2 * step + 2);
    }
    let [steps, ..] = events.tables();
    assert_eq!(texts(&steps, "clock"), ["device"; 5]);
    assert_eq!(numbers(&steps, "dur_ns"), some(&[55_000, 50_000, 50_000, 50_000, 50_000]));
    assert_eq!(numbers(&steps, "idle_ns"), some(&[5_000, 0, 0, 0, 0]));
    assert_eq!(numbers(&steps, "active_ns"), some(&[50_000; 5]));
    assert_eq!(numbers(&steps, "comm_exposed_ns"), some(&[20_000; 5]));
}

/// Steps of two launches with one recorded kernel; then a step without records. Idle time is not known.
#[test]
fn what_is_not_recorded_is_not_idle() {
    let mut events = Trace::default();
    for step in 0..3u32 {
        let at = f64::from(step) * 100.0;
        let mark = format!("ProfilerStep#{step}");
        events = events.event("user_annotation", &mark, 1, (at, at + 100.0), "");
        let times = (at + 10.0, at + 30.0);
        events = events.kernel("first", 7, at + 1.0, times, 2 * step + 1);
        let launch = (at + 3.0, at + 4.0);
        let id = format!(r#""correlation": {}"#, 2 * step + 2);
        events = match step {
            0 => events.kernel("second", 7, launch.0, (at + 30.0, at + 50.0), 2),
            _ => events.event("cuda_runtime", "cudaLaunchKernel", 1, launch, &id),
        };
    }
    let [steps, .., gaps] = events.event("user_annotation", "ProfilerStep#3", 1, (300.0, 400.0), "").tables();
    assert_eq!(numbers(&steps, "unrecorded"), some(&[0, 1, 1, 0]));
    assert_eq!(numbers(&steps, "active_ns"), [Some(40_000), None, None, None]);
    assert_eq!(numbers(&steps, "idle_ns"), [Some(60_000), None, None, None]);
    assert_eq!(numbers(&gaps, "idle_ns"), [None, None]);
    assert_eq!(texts(&gaps, "cause"), ["unknown", "unknown"]);
}

#[test]
fn gaps() {
    let [.., gaps] = tables();
    let found = texts(&gaps, "cause").into_iter().zip(texts(&gaps, "after")).zip(texts(&gaps, "host_op"));
    let found: Vec<(String, String, String)> = found.map(|((cause, after), op)| (cause, after, op)).collect();
    let expected = [
        ("host", "k2", "aten::inner"),
        ("launch", "k3", "aten::b"),
        ("sync", "k4", "-"),
        ("stream", "k5", "aten::d"),
        ("unknown", "k6", "-"),
    ];
    let expected: Vec<(String, String, String)> =
        expected.iter().map(|(cause, after, op)| ((*cause).into(), (*after).into(), (*op).into())).collect();
    assert_eq!(found, expected);
    assert_eq!(numbers(&gaps, "dur_ns"), some(&[11_000, 2_000, 8_000, 8_000, 72_000]));
    assert_eq!(numbers(&gaps, "idle_ns"), some(&[11_000, 2_000, 8_000, 0, 70_000]));
    assert_eq!(numbers(&gaps, "start_ns"), some(&[1_025_000, 1_046_000, 1_050_000, 1_068_000, 1_078_000]));
    assert_eq!(numbers(&gaps, "step"), some(&[4, 4, 4, 4, 5]));
    assert_eq!(texts(&gaps, "before"), ["k1", "k2", "k3", "k4", "k5"]);
    assert_eq!(texts(&gaps, "host_call")[2], "cudaStreamSynchronize");
}

#[test]
fn collectives() {
    let [_, _, _, collectives, _] = tables();
    assert_eq!(texts(&collectives, "kernel"), ["ncclDevKernel_AllReduce"]);
    assert_eq!(texts(&collectives, "op"), ["allreduce"]);
    assert_eq!(texts(&collectives, "group_name"), ["0"]);
    for (column, value) in [
        ("step", 4),
        ("start_ns", 1_064_000),
        ("dur_ns", 16_000),
        ("exposed_ns", 10_000),
        ("launched_ns", 1_062_000),
        ("group_size", 2),
        ("sequence", 5),
        ("nth", 0),
        ("in_bytes", 20),
        ("out_bytes", 40),
    ] {
        assert_eq!(numbers(&collectives, column), some(&[value]), "{column}");
    }
}

#[test]
fn ops_have_their_own_time_and_that_of_what_they_launch() {
    let [_, ops, kernels, ..] = tables();
    let row = |name: &str| texts(&ops, "name").iter().position(|other| other == name).expect("the op");
    let at = |name: &str, column: &str| numbers(&ops, column)[row(name)];
    assert_eq!((at("aten::b", "sum_ns"), at("aten::b", "self_ns")), (Some(10_000), Some(6_000)));
    assert_eq!((at("aten::inner", "device_ns"), at("aten::b", "device_ns")), (Some(10_000), Some(2_000)));
    assert_eq!((at("aten::a", "launched"), at("aten::c", "step")), (Some(1), Some(4)));
    assert_eq!(numbers(&kernels, "count").len(), 7);
    let collective = kernels.column_by_name("collective").expect("the column").as_boolean().clone();
    let names = texts(&kernels, "name");
    assert!((0..7).all(|row| collective.value(row) == names[row].starts_with("nccl")), "{names:?}");
}
