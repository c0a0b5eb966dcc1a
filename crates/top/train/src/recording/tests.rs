//! A recording with the times of a GPU, as the readers see it.

use std::io::Write;
use std::time::{Duration, Instant};

use steptime_predict::{Choice, Step};
use steptime_runtime::{OpTimes, Span, StepTimes};

use super::device::DeviceProperties;
use super::inputs::Inputs;
use super::scopes::Scope;
use super::writer::write;
use super::{RecordedOp, RecordedOps, RecordedStep};

/// Times of launches and of the work, in microseconds: the GPU is busy most of the time.
const LAUNCH: u64 = 6;
const WORK: u64 = 40;

fn us(time: u64) -> Duration {
    Duration::from_micros(time)
}

fn ops() -> RecordedOps {
    let names = ["aten::addmm", "steptime::linear_backward", "aten::_fused_sgd_"];
    let op = |name: &&str| RecordedOp { name: (*name).to_owned(), inputs: Inputs::default() };
    let optimizer = Scope { name: "Optimizer.step#SGD.step".to_owned(), annotation: true, first: 2, last: 2 };
    RecordedOps { ops: names.iter().map(op).collect(), scopes: vec![optimizer], input_bytes: 4096 }
}

/// A step that begins with the copy of its inputs and ends with a wait for the GPU.
fn step(number: u64, begin: Instant) -> RecordedStep {
    let at = |index: u64| {
        let host = Span { begin: us(10 * index), end: us(10 * index + LAUNCH) };
        let begin = us(5 + WORK * index).max(host.begin);
        OpTimes { host, device: Some(Span { begin, end: us(5 + WORK * (index + 1)) }) }
    };
    let end = us(5 + 4 * WORK + 10);
    let wait = Some(Span { begin: us(40), end });
    let times = StepTimes {
        loss: 0.5,
        begin,
        inputs: Some(at(0)),
        instructions: (1..4).map(at).collect(),
        wait,
        end,
    };
    RecordedStep { number, begin, waiting: Duration::ZERO, copy: [begin, begin], times }
}

#[test]
fn work_on_a_gpu_is_read_and_predicted_as_measured() {
    let device = DeviceProperties {
        id: 0,
        name: "NVIDIA H100 80GB HBM3".to_owned(),
        total_global_mem: 80 << 30,
        compute_major: 9,
        compute_minor: 0,
        num_sms: 132,
        warp_size: 32,
        l2_cache_size: 50 << 20,
    };
    let start = Instant::now();
    let period = 5 + 4 * WORK + 30;
    let steps: Vec<_> = (0..12).map(|number| step(number + 1, start + us(number * period))).collect();
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().expect("a file");
    write(&mut file, &ops(), &steps, Some(&device)).expect("written");
    file.flush().expect("written");
    let read = Step::open(file.path(), &Choice::default()).expect("a recording");
    assert!(!read.ran_on_cpu() && read.notes.is_empty(), "{:?}", read.notes);
    assert_eq!(read.graph.device.as_deref(), Some("NVIDIA H100 80GB HBM3"));
    let coverage = &read.graph.coverage;
    assert_eq!((coverage.activities, coverage.activities_linked), (48, 48));
    let predicted = read.predict().run().expect("a prediction");
    let ratio = predicted.step.as_micros() / period as f64;
    assert!((ratio - 1.0).abs() < 0.05, "{} of {period} us", predicted.step);
    let active = predicted.active.as_micros();
    assert!((active - 4.0 * WORK as f64).abs() < 2.0, "{active}");
}
