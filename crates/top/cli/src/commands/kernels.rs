//! `steptime kernels predict`.

mod report;

use std::collections::BTreeMap;
use std::io::{BufRead, Read, stdin};

use clap::Subcommand;
use serde::Deserialize;
use serde_json::Value;
use steptime_answers::{KernelsReport, kernels::Kernel};
use steptime_aten::from_query::Query;
use steptime_aten::{KernelCall, Leaf, OpCall, OpSet, shape_checks};
use steptime_cost::device::{Context, Estimate};
use steptime_launch::{Indices, IndicesError};

use super::pricing::DevicePricing;
use super::{Failure, pricing};
use crate::cli::{Form, Pricing};
use crate::console::Console;

/// `steptime kernels`.
#[derive(Debug, Subcommand, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelsCommand {
    /// Predict the kernels of ops and their times: one JSON query per line on standard input, one answer per line
    #[command(after_help = r#"EXAMPLE
    echo '{"op":"aten::addmm","shapes":[[1024],[2048,512],[512,1024]],"dtype":"float"}' |
        steptime kernels predict --device h200 --json

A query; all keys but op and shapes may be left out:
    {"op":"aten::addmm","pass":"forward|backward","shapes":[[1024],[2048,512],[512,1024]],
     "strides":[...],"dtype":"float","args":[...],"cache":"cold|warm","indices":{"zipf":1.05}}"#)]
    Predict {
        /// A shipped profile's name, or a profile's folder
        #[arg(long, value_name = "NAME|FOLDER")]
        device: String,
        /// Kernel pricing.
        #[command(flatten)]
        pricing: Pricing,
        /// Allow queries to name files of indices to read
        #[arg(long)]
        files: bool,
        /// Output format.
        #[command(flatten)]
        form: Form,
    },
}

/// Maximum size of a query, in bytes.
const LONGEST: u64 = 16 << 20;

pub fn run(args: &KernelsCommand, console: &Console<'_>) -> Result<(), Failure> {
    let KernelsCommand::Predict { device, pricing, files, form } = args;
    let predictor = DevicePricing::find(device, pricing)?;
    if form.csv && !console.print_while_open(&report::csv(None).text())? {
        return Ok(());
    }
    let mut failed = 0;
    let mut input = queries(console);
    for at in 0.. {
        let Some(line) = next_line(&mut input, at + 1)? else { break };
        let line = String::from_utf8_lossy(&line);
        if line.trim().is_empty() {
            continue;
        }
        let answer = answer(&predictor, &line, *files).unwrap_or_else(|error| {
            failed += 1;
            KernelsReport::failed(id(&line), format!("line {}: {error}", at + 1))
        });
        let open = match form {
            Form { json: true, .. } => console.print_json_line(&answer)?,
            Form { csv: true, .. } => {
                console.print_while_open(&report::csv(Some((at + 1, &answer))).rows_text())?
            }
            _ => console.print_while_open(&(report::text(&answer) + "\n"))?,
        };
        if !open {
            return Ok(());
        }
    }
    match failed {
        0 => Ok(()),
        1 => Err("one query could not be answered".into()),
        many => Err(format!("{many} queries could not be answered").into()),
    }
}

/// Returns the source of queries.
fn queries<'a>(console: &Console<'a>) -> Box<dyn BufRead + 'a> {
    match console.given() {
        Some(text) => Box::new(text.as_bytes()),
        None => Box::new(stdin().lock()),
    }
}

/// Reads the next line, without its end; `None` at the end of the input.
fn next_line(input: &mut impl BufRead, number: usize) -> Result<Option<Vec<u8>>, Failure> {
    let mut line = Vec::new();
    input.take(LONGEST).read_until(b'\n', &mut line)?;
    if line.len() as u64 == LONGEST && !line.ends_with(b"\n") {
        return Err(format!(
            "line {number} of standard input is longer than {} MiB: give one query per line",
            LONGEST >> 20
        )
        .into());
    }
    Ok((!line.is_empty()).then_some(line))
}

/// One query.
#[derive(Debug, Deserialize)]
struct Line {
    op: String,
    #[serde(default)]
    pass: Option<String>,
    shapes: Vec<Value>,
    #[serde(default)]
    strides: Vec<Value>,
    #[serde(default)]
    dtype: Option<Value>,
    #[serde(default)]
    args: Option<Value>,
    #[serde(default)]
    cache: Option<String>,
    #[serde(default)]
    indices: Option<Value>,
    /// Overrides `--tf32`.
    #[serde(default)]
    tf32: Option<bool>,
    /// Returned with the answer.
    #[serde(default)]
    id: Option<Value>,
    /// Other keys; the answer notes that they were ignored.
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// Returns the `id` of a query, if it is valid JSON.
fn id(text: &str) -> Option<Value> {
    serde_json::from_str::<Value>(text).ok()?.get("id").cloned()
}

fn answer(priced: &DevicePricing, text: &str, files: bool) -> Result<KernelsReport, Failure> {
    if !text.trim_start().starts_with('{') {
        return Err("a query is an object, such as {\"op\":\"aten::relu\",\"shapes\":[[512,512]]}".into());
    }
    let line: Line = serde_json::from_str(text)?;
    let indices =
        line.indices.as_ref().map_or(Ok(priced.indices.clone()), |value| distribution(value, files))?;
    let leaves = launched(priced, &line)?;
    if let Some(Leaf { op, kernel, .. }) = leaves.iter().find(|leaf| !leaf.kernel.is_possible()) {
        let (bytes, flops) = (kernel.footprint() as f64, kernel.flops as f64);
        let name = &op.name;
        return Err(format!(
            "{name} would touch {bytes:.0e} bytes and take {flops:.0e} operations: no GPU does"
        )
        .into());
    }
    let context = |leaf: &Leaf| Ok(cache(line.cache.as_deref(), &leaf.kernel)?.with_indices(indices.clone()));
    let contexts = leaves.iter().map(context).collect::<Result<Vec<Context>, Failure>>()?;
    let calls: Vec<_> = leaves.iter().map(|leaf| &leaf.kernel).zip(&contexts).collect();
    let estimates = priced.profile.price_all(&calls, priced.models);
    let ignored = line.others.into_keys().collect();
    Ok(KernelsReport::new(
        line.id,
        ignored,
        leaves.iter().zip(&estimates).map(|(leaf, estimate)| kernel(leaf, estimate)),
    ))
}

/// Reads the state of the cache: flushed, as left by the same call, or after N bytes of other accesses.
fn cache(state: Option<&str>, call: &KernelCall) -> Result<Context, Failure> {
    match state {
        None | Some("cold") => Ok(Context::cold(call)),
        Some("warm") => Ok(Context::warm(call)),
        Some(other) => {
            let bytes = other.strip_prefix("after:").and_then(|bytes| bytes.parse().ok());
            let bytes = bytes.ok_or_else(|| format!("cache {other:?}: it is cold, warm, or after:BYTES"))?;
            Ok(Context::after(call, bytes))
        }
    }
}

/// Returns the ops that the op of a query calls in the given pass, with their kernels.
fn launched(priced: &DevicePricing, line: &Line) -> Result<Vec<Leaf>, Failure> {
    let query = Query {
        op: &line.op,
        shapes: &line.shapes,
        strides: &line.strides,
        dtype: line.dtype.as_ref(),
        args: line.args.as_ref(),
    };
    let mut settings = priced.settings;
    settings.matmul_tf32 = line.tf32.unwrap_or(settings.matmul_tf32 || asks_tf32(line.dtype.as_ref()));
    let ops = OpSet::standard();
    let call = OpCall { settings, ..query.op_call(&ops)? };
    shape_checks::check(&call)?;
    has_types(priced, &call)?;
    match line.pass.as_deref() {
        None | Some("forward") => Ok(ops.leaves(&call)),
        Some("backward") => {
            let backward = ops.backward(&call);
            if backward.is_empty() {
                return Err(format!(
                    "the backward pass of {} is not known: query its backward ops by name",
                    call.name
                )
                .into());
            }
            Ok(backward.into_iter().flat_map(|call| ops.leaves(&OpCall { settings, ..call })).collect())
        }
        Some(other) => Err(format!("pass {other:?}: it is forward or backward").into()),
    }
}

/// Checks that the device supports the types of a call.
fn has_types(priced: &DevicePricing, call: &OpCall) -> Result<(), Failure> {
    let spec = &priced.profile.spec;
    let types = call.input_tensors().map(|(_, _, tensor)| tensor.dtype);
    match types.filter_map(|dtype| spec.lacks(dtype)).chain(spec.lacks_tf32(call.settings.matmul_tf32)).next()
    {
        None => Ok(()),
        Some(lacking) => Err(format!("{}: {lacking}", call.name).into()),
    }
}

/// Whether the type of a query is TF32, which is a setting in PyTorch.
fn asks_tf32(dtype: Option<&Value>) -> bool {
    dtype.and_then(Value::as_str).is_some_and(|name| name.eq_ignore_ascii_case("tf32"))
}

/// Reads a distribution of indices. Queries are not trusted: they may name files only with `--files`.
fn distribution(value: &Value, files: bool) -> Result<Indices, Failure> {
    if let Some(text) = value.as_str() {
        if !files && matches!(text.parse::<Indices>(), Err(IndicesError::Name { .. })) {
            return Err(format!(
                "indices {text:?}: give \"uniform\" or {{\"zipf\": 1.05}}; queries may name files with --files only"
            )
            .into());
        }
        return pricing::indices(text);
    }
    match value.get("zipf").and_then(Value::as_f64) {
        Some(exponent) => Ok(Indices::zipf(exponent)?),
        None => {
            let file = if files { ", or a file's name" } else { "" };
            Err(format!("indices {value}: give \"uniform\" or {{\"zipf\": 1.05}}{file}").into())
        }
    }
}

fn kernel(leaf: &Leaf, estimate: &Estimate) -> Kernel {
    let family = leaf.kernel.kernel.family();
    Kernel::new(&leaf.op.name, family, estimate, leaf.known)
}
