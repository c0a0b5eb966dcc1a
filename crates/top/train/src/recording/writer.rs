//! The contents of a recording: steps, ops with their arguments, launches and work on a GPU.

use std::io::{self, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Value, json};
use steptime_runtime::{OpTimes, Span};
use steptime_trace::{Origin, STEP_MARK};

use super::device::DeviceProperties;
use super::events::{Events, Track};
use super::inputs::Inputs;
use super::{RecordedOps, RecordedStep};

/// Name of the wait for a batch, as PyTorch's data loader has it.
const WAITING: &str = "enumerate(DataLoader)#Batches.__next__";
/// Name of the copy of a batch to the inputs.
const COPY: &str = "copy of the batch";
/// Number of the stream in recordings.
const STREAM: u32 = 0;

/// Identity and arguments of an op.
#[derive(Serialize)]
struct OpArguments<'a> {
    #[serde(rename = "External id")]
    id: u64,
    #[serde(flatten)]
    inputs: Option<&'a Inputs>,
}

/// Writes steps, one after the other; `device` is the GPU that they ran on.
///
/// # Errors
/// Where the output cannot be written.
pub fn write(
    out: &mut impl Write,
    ops: &RecordedOps,
    steps: &[RecordedStep],
    device: Option<&DeviceProperties>,
) -> io::Result<()> {
    let now = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), Instant::now());
    let zero = steps.first().map_or(now.1, |first| first.begin);
    let base = now.0.saturating_sub(now.1.duration_since(zero));
    let header = json!({
        "schemaVersion": 1,
        "program": Origin::TRAIN,
        "deviceProperties": device.into_iter().collect::<Vec<_>>(),
        "record_shapes": 1,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": u64::try_from(base.as_nanos()).unwrap_or(0),
    });
    let host = Track { pid: std::process::id(), tid: std::process::id() };
    let mut events = Events::new(out, &header)?;
    events.label("process_name", host, Origin::TRAIN)?;
    events.label("thread_name", host, "training loop")?;
    let stream = device.map(|device| Track { pid: device.id, tid: STREAM });
    if let Some((stream, device)) = stream.zip(device) {
        events.label("process_name", stream, &device.name)?;
        events.label("thread_name", stream, "stream")?;
    }
    let mut writer = Writer { events, zero, host, stream, ops, next: 1 };
    steps.iter().try_for_each(|step| writer.step(step))?;
    writer.events.end()
}

struct Writer<'w, W> {
    events: Events<'w, W>,
    /// Time of the first event.
    zero: Instant,
    host: Track,
    /// Track of the GPU.
    stream: Option<Track>,
    ops: &'w RecordedOps,
    /// Identity of the next op.
    next: u64,
}

impl<W: Write> Writer<'_, W> {
    fn step(&mut self, step: &RecordedStep) -> io::Result<()> {
        let RecordedStep { number, begin, waiting, copy, times } = step;
        let (from, end) = (self.nanos(*begin), self.nanos(times.begin + times.end));
        let whole = [from, end];
        self.host("user_annotation", &format!("{STEP_MARK}{number}"), whole)?;
        self.host("user_annotation", WAITING, [from, self.nanos(*begin + *waiting)])?;
        self.host("user_annotation", COPY, copy.map(|at| self.nanos(at)))?;
        let zero = self.nanos(times.begin);
        if let Some(inputs) = &times.inputs {
            let bytes = json!({"bytes": self.ops.input_bytes});
            let launch = Launch { call: "cudaMemcpyAsync", cat: "gpu_memcpy", args: bytes };
            self.op("aten::copy_", None, inputs, zero, "Memcpy HtoD (Pinned -> Device)", &launch)?;
        }
        let ops = self.ops;
        let mut scopes = ops.scopes.iter().peekable();
        for (at, (op, own)) in ops.ops.iter().zip(&times.instructions).enumerate() {
            while let Some(scope) = scopes.next_if(|scope| scope.first == at) {
                let span = [own.host.begin, times.instructions[scope.last].host.end];
                let cat = if scope.annotation { "user_annotation" } else { "cpu_op" };
                self.host(cat, &scope.name, span.map(|time| zero + nanos(time)))?;
            }
            let launch = Launch { call: "cudaLaunchKernel", cat: "kernel", args: json!({}) };
            self.op(&op.name, Some(&op.inputs), own, zero, &op.name, &launch)?;
        }
        if let Some(wait) = times.wait {
            let args = json!({"correlation": self.next});
            self.next += 1;
            self.events.add("cuda_runtime", "cudaStreamSynchronize", self.host, within(zero, wait), args)?;
        }
        Ok(())
    }

    /// An op, and on a GPU its launch and its work.
    fn op(
        &mut self,
        name: &str,
        inputs: Option<&Inputs>,
        times: &OpTimes,
        zero: u64,
        work: &str,
        launch: &Launch,
    ) -> io::Result<()> {
        let id = self.next;
        self.next += 1;
        let span = within(zero, times.host);
        self.events.add("cpu_op", name, self.host, span, OpArguments { id, inputs })?;
        let Some((stream, device)) = self.stream.zip(times.device) else { return Ok(()) };
        let args = json!({"External id": id, "correlation": id});
        self.events.add("cuda_runtime", launch.call, self.host, span, args)?;
        let mut args = launch.args.clone();
        args["External id"] = id.into();
        args["correlation"] = id.into();
        args["device"] = stream.pid.into();
        args["stream"] = stream.tid.into();
        self.events.add(launch.cat, work, stream, within(zero, device), args)
    }

    /// An event of the host without arguments.
    fn host(&mut self, cat: &'static str, name: &str, span: [u64; 2]) -> io::Result<()> {
        self.events.add(cat, name, self.host, span, json!({}))
    }

    fn nanos(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.zero))
    }
}

/// Call that launches work of a GPU, and the kind of the work.
struct Launch {
    call: &'static str,
    cat: &'static str,
    args: Value,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn within(zero: u64, span: Span) -> [u64; 2] {
    [zero + nanos(span.begin), zero + nanos(span.end)]
}
