//! Context of all ops: the GPU, its copy rate, the settings, and the rows so far.

use std::time::Duration;

use steptime_cuda::geometry::Geometry;
use steptime_cuda::{Buffer, Device, Stream, median_time, nvrtc_version, randomize, replay_time};

use super::draw::Draw;
use super::report::{Measurement, Report, Row};
use crate::Error;
use crate::sizes::check_room;

/// Number of timed calls.
const CALLS: usize = 30;

/// Number of calls in a graph, and of its replays.
const REPLAYS: [usize; 2] = [8, 15];

/// Floats of each of the two buffers of a copy: a GiB.
const COPIED: usize = 1 << 28;

/// A run of the benchmark.
pub struct Context {
    /// Stream of all work.
    pub stream: Stream,
    verify: bool,
    /// Rate of a copy; present if times are measured.
    copy_tb_s: Option<f64>,
    draw: Option<Draw>,
    rows: Vec<Row>,
}

/// A measured case.
pub struct Case {
    /// The op.
    pub op: &'static str,
    /// Source of the size, or the order.
    pub name: String,
    /// The size.
    pub shape: String,
    /// Distribution of the indices.
    pub indices: String,
    /// Distinct rows divided by lookups; 1 without lookups.
    pub distinct: f64,
    /// Bytes that must move: each distinct row once, or twice where it changes, everything else once.
    pub bytes: u64,
    /// Floating-point operations, where they dominate the time; otherwise 0.
    pub flops: u64,
    /// Launch geometry of the kernels.
    pub geometry: Vec<Geometry>,
}

/// Difference of a result from its reference, and its tolerance.
#[derive(Debug, Clone, Copy)]
pub struct Verification {
    largest_error: f64,
    tolerance: f64,
}

impl Context {
    /// A context without measurements, except the copy rate if times are measured.
    pub fn new(device: &Device, draw: Option<Draw>, verify: bool, time: bool) -> Result<Context, Error> {
        let stream = device.stream()?;
        let copy_tb_s = if time { Some(copy_rate(&stream)?) } else { None };
        Ok(Context { stream, verify, copy_tb_s, draw, rows: Vec::new() })
    }

    /// The GPU.
    pub fn device(&self) -> &Device {
        self.stream.device()
    }

    /// Distributions of the indices: the given one, or else the default ones.
    pub fn draws(&self, usual: &'static [Draw]) -> Vec<Draw> {
        self.draw.map_or_else(|| usual.to_vec(), |draw| vec![draw])
    }

    /// Fails unless this many floats, given as the factors of several products, fit into the GPU's memory.
    pub fn check_memory(&self, operands: &[&[usize]]) -> Result<(), Error> {
        let (free, _) = self.device().memory()?;
        check_room(operands, free as u64)
    }

    /// Returns the largest error that the check finds, with the tolerance, if results are verified.
    pub fn verify(
        &self,
        tolerance: f64,
        check: impl FnOnce(&Stream) -> Result<f64, Error>,
    ) -> Result<Option<Verification>, Error> {
        let verified = |largest_error| Verification { largest_error, tolerance };
        if self.verify { check(&self.stream).map(verified).map(Some) } else { Ok(None) }
    }

    /// Times calls one by one and within a graph, if times are measured, and adds the row.
    pub fn add(
        &mut self,
        case: Case,
        verified: Option<Verification>,
        work: impl FnMut(&Stream, usize) -> Result<(), steptime_cuda::Error>,
    ) -> Result<(), Error> {
        let measured = self.copy_tb_s.map(|copy| measure(&self.stream, &case, copy, work)).transpose()?;
        self.rows.push(Row {
            op: case.op,
            name: case.name,
            shape: case.shape,
            indices: case.indices,
            distinct: case.distinct,
            bytes: case.bytes,
            measured,
            busy_lanes: case.geometry.iter().map(|of| of.busy).fold(1.0, f64::min),
            geometry: case.geometry.iter().map(Geometry::to_string).collect::<Vec<_>>().join("\n"),
            largest_error: verified.map(|verified| verified.largest_error),
            tolerance: verified.map(|verified| verified.tolerance),
        });
        Ok(())
    }

    /// All rows.
    pub fn finish(self) -> Report {
        let compiler = nvrtc_version().map_or(String::new(), |(major, minor)| format!("{major}.{minor}"));
        let device = self.device().name().to_owned();
        Report { device, compiler, copy_tb_s: self.copy_tb_s, cases: self.rows }
    }
}

/// Bytes read and written by a copy, 10^12 per second.
fn copy_rate(stream: &Stream) -> Result<f64, Error> {
    let mut from = Buffer::<f32>::uninit(stream.device(), COPIED)?;
    let mut to = Buffer::<f32>::uninit(stream.device(), COPIED)?;
    randomize(stream, &mut from.as_mut(), 1)?;
    let time = median_time(stream, CALLS, |stream, _| to.as_mut().copy(stream, from.as_ref()))?;
    Ok(8.0 * COPIED as f64 / time.as_secs_f64() / 1e12)
}

/// Times a case, and relates it to a copy's rate.
fn measure(
    stream: &Stream,
    case: &Case,
    copy_tb_s: f64,
    mut work: impl FnMut(&Stream, usize) -> Result<(), steptime_cuda::Error>,
) -> Result<Measurement, Error> {
    let call = median_time(stream, CALLS, &mut work)?;
    let [calls, replays] = REPLAYS;
    let replay = replay_time(stream, calls, replays, &mut work)?;
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let tb_s = case.bytes as f64 / us(call) / 1e6;
    Ok(Measurement {
        call_us: us(call),
        replay_us: us(replay),
        tb_s,
        copy_share: tb_s / copy_tb_s,
        tflop_s: (case.flops > 0).then(|| case.flops as f64 / us(call) / 1e6),
    })
}
