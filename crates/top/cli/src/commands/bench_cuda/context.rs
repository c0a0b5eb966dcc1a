//! What all ops share: the GPU, its copy rate, and the rows so far.

use std::time::Duration;

use steptime::cuda::geometry::Geometry;
use steptime::cuda::{Buffer, Device, Error, Stream, median_time, nvrtc_version, randomize, replay_time};

use super::Failure;
use super::draw::Draw;
use crate::commands::bench::sizes::check_room;
use crate::report::bench_cuda::{Answer, Row};

/// Calls that are timed.
const CALLS: usize = 30;

/// Calls in a graph, and replays of it.
const REPLAYS: [usize; 2] = [8, 15];

/// Floats of the buffers between which is copied: a GiB.
const COPIED: usize = 1 << 28;

/// A run of the benchmark.
pub struct Context {
    /// All work goes here.
    pub stream: Stream,
    copy_tb_s: f64,
    draw: Option<Draw>,
    rows: Vec<Row>,
}

/// A case, measured.
pub struct Case {
    /// The op.
    pub op: &'static str,
    /// Where the size comes from, or the order.
    pub name: String,
    /// The size.
    pub shape: String,
    /// How indices are drawn.
    pub indices: String,
    /// Different rows over lookups; 1 where there are none.
    pub distinct: f64,
    /// Bytes that must move: each distinct row once, or twice where it changes, all else once.
    pub bytes: u64,
    /// Floating-point operations, where they are what takes time; else 0.
    pub flops: u64,
    /// How its kernels are launched.
    pub geometry: Vec<Geometry>,
}

impl Context {
    /// Measures the copy rate.
    pub fn new(device: &Device, draw: Option<Draw>) -> Result<Context, Failure> {
        let stream = device.stream()?;
        let mut from = Buffer::<f32>::uninit(device, COPIED)?;
        let mut to = Buffer::<f32>::uninit(device, COPIED)?;
        randomize(&stream, &mut from.as_mut(), 1)?;
        let time = median_time(&stream, CALLS, |stream, _| to.as_mut().copy(stream, from.as_ref()))?;
        let copy_tb_s = 8.0 * COPIED as f64 / time.as_secs_f64() / 1e12;
        Ok(Context { stream, copy_tb_s, draw, rows: Vec::new() })
    }

    /// The GPU.
    pub fn device(&self) -> &Device {
        self.stream.device()
    }

    /// How indices are drawn: as typed, else as usual.
    pub fn draws(&self, usual: &'static [Draw]) -> Vec<Draw> {
        self.draw.map_or_else(|| usual.to_vec(), |draw| vec![draw])
    }

    /// Fails unless this many floats, given as factors of several products, fit into the GPU's memory.
    pub fn check_memory(&self, operands: &[&[usize]]) -> Result<(), Failure> {
        let (free, _) = self.device().memory()?;
        check_room(operands, free as u64)
    }

    /// Times calls one by one and within a graph, and adds the row.
    pub fn add(
        &mut self,
        case: Case,
        mut work: impl FnMut(&Stream, usize) -> Result<(), Error>,
    ) -> Result<(), Failure> {
        let call = median_time(&self.stream, CALLS, &mut work)?;
        let [calls, replays] = REPLAYS;
        let replay = replay_time(&self.stream, calls, replays, &mut work)?;
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let tb_s = case.bytes as f64 / us(call) / 1e6;
        self.rows.push(Row {
            op: case.op,
            name: case.name,
            shape: case.shape,
            indices: case.indices,
            distinct: case.distinct,
            bytes: case.bytes,
            call_us: us(call),
            replay_us: us(replay),
            tb_s,
            copy_share: tb_s / self.copy_tb_s,
            tflop_s: (case.flops > 0).then(|| case.flops as f64 / us(call) / 1e6),
            busy_lanes: case.geometry.iter().map(|of| of.busy).fold(1.0, f64::min),
            geometry: case.geometry.iter().map(Geometry::to_string).collect::<Vec<_>>().join("\n"),
        });
        Ok(())
    }

    /// All rows.
    pub fn finish(self) -> Answer {
        let compiler = nvrtc_version().map_or(String::new(), |(major, minor)| format!("{major}.{minor}"));
        Answer::new(self.device().name().to_owned(), compiler, self.copy_tb_s, self.rows)
    }
}
