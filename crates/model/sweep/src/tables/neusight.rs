//! NeuSight's tables (ASPLOS 2025; `sitar-lab/NeuSight`, MIT): one PyTorch op per row, float32, many GPUs.
//!
//! A time is in milliseconds between two events around a call from Python, the best of many. If it is short, it is the host's time.

use std::path::Path;

use serde::Deserialize;

use super::texts::{Input, dense, row};
use super::{ByDevice, OF_CALLS};
use crate::error::Error;
use crate::read::Sweep;
use crate::row::Row;

/// Shorter calls measure the host's launch time, µs: one launch takes 20 to 40 µs.
const HOST_US: f64 = 100.0;

/// Columns that are read. The others describe the grid of the kernel.
#[derive(Deserialize)]
struct Record {
    #[serde(rename = "OPName")]
    op: String,
    #[serde(rename = "Latency")]
    ms: f64,
    #[serde(rename = "Device")]
    device: String,
    #[serde(rename = "Kernel Name", default)]
    kernel: String,
    #[serde(rename = "B")]
    b: u64,
    #[serde(rename = "M")]
    m: Option<u64>,
    #[serde(rename = "N")]
    n: Option<u64>,
    #[serde(rename = "K")]
    k: Option<u64>,
    #[serde(rename = "H")]
    h: Option<u64>,
    #[serde(rename = "Input_Channel")]
    channels_in: Option<u64>,
    #[serde(rename = "Output_Channel")]
    channels_out: Option<u64>,
    #[serde(rename = "Kernel_Szie", alias = "Kernel_Size")]
    window: Option<u64>,
    #[serde(rename = "Input_Size")]
    size: Option<u64>,
    #[serde(rename = "Stride")]
    stride: Option<u64>,
    #[serde(rename = "Padding")]
    padding: Option<u64>,
}

/// Longest table that is read, in bytes.
const LONGEST: u64 = 256 << 20;

/// Reads one file.
pub(super) fn read(path: &Path) -> Result<Vec<Sweep>, Error> {
    let table = |what: String| Error::Table { path: path.to_owned(), what };
    let bytes = steptime_trace::read_regular(path, LONGEST).map_err(|error| table(error.to_string()))?;
    let mut reader = csv::Reader::from_reader(&bytes[..]);
    let headers = reader.headers().map_err(|error| table(error.to_string()))?.clone();
    if let Some(missing) =
        ["OPName", "Latency", "Device", "B"].iter().find(|name| !headers.iter().any(|h| h == **name))
    {
        return Err(table(format!("it has no column {missing}")));
    }
    let mut found = ByDevice::default();
    for (at, record) in reader.deserialize::<Record>().enumerate() {
        let record = record.map_err(|error| table(error.to_string()))?;
        let us = 1e3 * record.ms;
        let refused =
            |what: String| Error::Row { path: path.to_owned(), row: at, op: record.op.clone(), what };
        if !(us.is_finite() && us > 0.0) {
            return Err(refused(format!("a time of {} ms", record.ms)));
        }
        let Some(row) = op(&record, us as f32) else {
            return Err(refused("unknown op, or sizes are missing".into()));
        };
        if us < HOST_US {
            found.leave_out(&record.device);
        } else {
            found.push(&record.device, Row { kernels: one(&record.kernel), ..row });
        }
    }
    let mut sweeps = found.sweeps(path, "NeuSight", "shorter than 100 us, which is the host's time")?;
    for sweep in &mut sweeps {
        sweep.meta.entries.insert(OF_CALLS.to_owned(), "true".to_owned());
    }
    Ok(sweeps)
}

/// Returns the names of a row's kernels, as JSON: a table has one name, or none.
fn one(kernel: &str) -> String {
    let names: Vec<&str> = Some(kernel).filter(|name| !name.is_empty()).into_iter().collect();
    serde_json::json!(names).to_string()
}

/// Returns the op of a row.
fn op(record: &Record, us: f32) -> Option<Row> {
    const F32: &str = "float";
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let b = record.b;
    let found = match record.op.as_str() {
        "bmm" => {
            let (m, n, k) = (record.m?, record.n?, record.k?);
            let (a_shape, b_shape) = ([b, m, n], [b, n, k]);
            let inputs = [dense(&a_shape, &mut first, F32), dense(&b_shape, &mut second, F32)];
            row("bmm", "aten::bmm", &inputs, us)
        }
        "linear" => {
            let (m, n, k) = (record.m?, record.n?, record.k?);
            let rows = [b.saturating_mul(m), n];
            let inputs = [
                Input::Tensor(&[k], &[1], F32),
                dense(&rows, &mut first, F32),
                Input::Tensor(&[n, k], &[1, n], F32),
                Input::Scalar("1"),
                Input::Scalar("1"),
            ];
            row("linear", "aten::addmm", &inputs, us)
        }
        "conv" => {
            let (c, out, window, size) =
                (record.channels_in?, record.channels_out?, record.window?, record.size?);
            let (stride, padding) = (record.stride?, record.padding?);
            let (image, filter) = ([b, c, size, size], [out, c, window, window]);
            let pair = |value: u64| format!("[{value}, {value}]");
            let (padding, stride, dilation) = (pair(padding), pair(stride), pair(1));
            let inputs = [
                dense(&image, &mut first, F32),
                dense(&filter, &mut second, F32),
                Input::List(&padding),
                Input::List(&stride),
                Input::List(&dilation),
                Input::Scalar("1"),
                Input::Scalar("True"),
                Input::Scalar("False"),
                Input::Scalar("False"),
            ];
            row("conv", "aten::cudnn_convolution", &inputs, us)
        }
        name => {
            let shape = [b, record.h?];
            let x = dense(&shape, &mut first, F32);
            match name {
                "ln" => {
                    let (width, list) = ([shape[1]], format!("[{}]", shape[1]));
                    let weights = || Input::Tensor(&width, &[1], F32);
                    let inputs = [x, Input::List(&list), weights(), weights(), Input::Scalar("1e-05")];
                    row("ln", "aten::native_layer_norm", &inputs, us)
                }
                "softmax" => {
                    row("softmax", "aten::_softmax", &[x, Input::Scalar("1"), Input::Scalar("False")], us)
                }
                "relu" => row("elementwise", "aten::clamp_min", &[x, Input::Scalar("0")], us),
                "gelu" => row("elementwise", "aten::gelu", &[x, Input::None], us),
                "tanh" => row("elementwise", "aten::tanh", &[x], us),
                _ => pointwise(name, x, dense(&shape, &mut second, F32), us)?,
            }
        }
    };
    Some(found)
}

/// Returns the row of an op of two tensors, or of a tensor and a number; the name of the latter ends in `u`.
fn pointwise(name: &str, x: Input<'_>, y: Input<'_>, us: f32) -> Option<Row> {
    let (name, y) = match name.strip_suffix('u') {
        Some("pow") => ("pow", Input::Scalar("0.5")),
        // PyTorch wraps a number as a tensor without dimensions.
        Some(name) => (name, Input::Tensor(&[], &[], "double")),
        None => (name, y),
    };
    Some(match name {
        "add" => row("elementwise", "aten::add", &[x, y, Input::Scalar("1")], us),
        "mul" => row("elementwise", "aten::mul", &[x, y], us),
        "div" => row("elementwise", "aten::div", &[x, y], us),
        "pow" => row("elementwise", "aten::pow", &[x, y], us),
        _ => return None,
    })
}
