//! aiconfigurator's tables of matrix products (`ai-dynamo/aiconfigurator`, Apache-2.0): one product per row, as run by an inference engine.
//!
//! A time is in milliseconds: a sixth of a CUDA graph that runs six such products of one input, each with its own weights.
//! So a product finds its input in the cache, and five other products ran since its weights were used. Rows of types that PyTorch does not
//! multiply in training are left out.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};

use super::ByDevice;
use super::texts::{Input, dense, row};
use crate::catch_panic::guarded;
use crate::error::Error;
use crate::parquet_file;
use crate::read::Sweep;
use crate::row::{Row, State};

/// Gap between two nodes of a graph, µs: the excess of an H200's rows over its own sweep.
const BETWEEN_US: f64 = 0.6;

/// Products in a graph.
const COPIES: u64 = 6;

/// Shortest possible kernel, µs: rows with shorter times timed nothing.
const SHORTEST_US: f64 = 1.0;

const COLUMNS: [&str; 6] = ["device", "gemm_dtype", "m", "n", "k", "latency"];

/// Whether a Parquet file has these columns.
pub(super) fn is_one(path: &Path) -> bool {
    let columns = || {
        let (builder, _) =
            parquet_file::open(path, |what| Error::Table { path: path.to_owned(), what }).ok()?;
        Some(COLUMNS.iter().all(|name| builder.schema().column_with_name(name).is_some()))
    };
    guarded(columns).ok().flatten().unwrap_or(false)
}

/// Reads one file.
pub(super) fn read(path: &Path) -> Result<Vec<Sweep>, Error> {
    let table = |what: String| Error::Table { path: path.to_owned(), what };
    guarded(|| rows(path)).unwrap_or_else(|panic| Err(table(format!("its reader failed ({panic})"))))
}

fn rows(path: &Path) -> Result<Vec<Sweep>, Error> {
    let table = |what: String| Error::Table { path: path.to_owned(), what };
    let (builder, _) = parquet_file::open(path, table)?;
    let reader = builder.build().map_err(|error| table(error.to_string()))?;
    let mut found = ByDevice::default();
    let mut first = 0;
    for batch in reader {
        let batch = batch.map_err(|error| table(error.to_string()))?;
        take(path, &batch, first, &mut found)?;
        first += batch.num_rows();
    }
    found.sweeps(path, "aiconfigurator", "of types that are not read, or shorter than a kernel can be")
}

fn take(path: &Path, batch: &RecordBatch, first: usize, found: &mut ByDevice) -> Result<(), Error> {
    let wrong = |name: &str| Error::Table {
        path: path.to_owned(),
        what: format!("column {name} is of another type"),
    };
    let text = |name: &str| {
        batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>()).ok_or_else(|| wrong(name))
    };
    let size = |name: &str| {
        batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<Int64Type>()).ok_or_else(|| wrong(name))
    };
    let (device, dtype) = (text("device")?, text("gemm_dtype")?);
    let (m, n, k) = (size("m")?, size("n")?, size("k")?);
    let ms = batch.column_by_name("latency").and_then(|c| c.as_primitive_opt::<Float64Type>());
    let ms = ms.ok_or_else(|| wrong("latency"))?;
    for at in 0..batch.num_rows() {
        let device = if device.is_null(at) { "" } else { device.value(at) };
        let us = 1e3 * ms.value(at) - BETWEEN_US;
        if ms.is_null(at) || !us.is_finite() {
            let what = format!("a time of {} ms", ms.value(at));
            return Err(Error::Row { path: path.to_owned(), row: first + at, op: "gemm".into(), what });
        }
        let kind = match dtype.value(at) {
            "bfloat16" => "c10::BFloat16",
            "float16" => "c10::Half",
            _ => "",
        };
        let sizes = [m, n, k].map(|column| u64::try_from(column.value(at)).unwrap_or(0));
        if kind.is_empty() || us < SHORTEST_US || sizes.contains(&0) {
            found.leave_out(device);
            continue;
        }
        let [m, n, k] = sizes;
        let (shape, mut strides) = ([m, k], Vec::new());
        let inputs = [dense(&shape, &mut strides, kind), Input::Tensor(&[k, n], &[1, k], kind)];
        let others = (COPIES - 1) * 2 * n.saturating_mul(k.saturating_add(m));
        let state = State::After(others);
        found.push(device, Row { state, ..row("gemm", "aten::mm", &inputs, us as f32) });
    }
    Ok(())
}
