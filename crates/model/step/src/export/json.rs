//! A step as JSON, for scripts.
//!
//! The file is one object, with one op or tensor per line:
//!
//! | key | value |
//! |---|---|
//! | `format`, `schema`, `name` | `steptime-step`, [`SCHEMA`], name of the step |
//! | `threads` | for each host thread its `role`, and its outermost `ops` in order |
//! | `ops` | ops that run, thread by thread, each before those inside it |
//! | `tensors` | tensors that these ops take or return |
//! | `edges` | `data` (`from`, `to`, `tensor`), `hand_off` and `stream` (`from`, `to`, `wraps`: the awaited op is of the previous step) |
//!
//! Ops, tensors and threads are identified by `id`. A recorded op has the same `id` before and after any change, and so has its tensor. Arguments are
//! numbers, texts, truth values, lists of numbers, `null` where absent, `{"tensor": ID}`, `{"tensors": [ID, ...]}`, and `{"float": "-inf"}` for
//! numbers that JSON does not have. Shapes and strides count elements; a sparse tensor has no `strides`. `origin.kind` is `recorded`, `changed` or
//! `inserted`, the latter two with a `rule`.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};
use steptime_aten::{Arg, Device};
use steptime_graph::{Role, TiVec};

use super::Export;
use super::edges::{self, Data, Wait};
use crate::call::Call;
use crate::ids::{OpId, TensorId};
use crate::step::{Origin, StepIr};
use crate::uses::Uses;

/// The version of the layout.
pub const SCHEMA: u32 = 1;

/// Writes a step.
///
/// # Errors
/// Where the output cannot be written.
pub fn write(out: &mut dyn Write, export: &Export<'_>) -> io::Result<()> {
    let (step, uses) = (export.step, Uses::find(export.step));
    let running = step.running();
    let name = serde_json::to_string(export.name)?;
    write!(out, "{{\"format\": \"steptime-step\", \"schema\": {SCHEMA}, \"name\": {name},\n\"threads\": ")?;
    lines(out, step.threads.iter_enumerated().map(|(at, ops)| thread(export, at, ops)))?;
    write!(out, ",\n\"ops\": ")?;
    lines(out, running.iter().map(|&at| op(step, at)))?;
    write!(out, ",\n\"tensors\": ")?;
    lines(out, used(step, &running).into_iter().map(|at| tensor(step, &uses, at)))?;
    write!(out, ",\n\"edges\": {{\"data\": ")?;
    lines(out, edges::data(step, &uses).into_iter().map(data))?;
    write!(out, ",\n\"hand_off\": ")?;
    lines(out, edges::hand_offs(export).into_iter().map(wait))?;
    write!(out, ",\n\"stream\": ")?;
    lines(out, edges::stream_waits(export).into_iter().map(wait))?;
    out.write_all(b"}}\n")
}

/// A list with one item per line.
fn lines(out: &mut dyn Write, items: impl Iterator<Item = Value>) -> io::Result<()> {
    out.write_all(b"[")?;
    for (at, item) in items.enumerate() {
        out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &item)?;
    }
    out.write_all(b"]")
}

fn thread(export: &Export<'_>, at: steptime_graph::HostThreadId, ops: &[OpId]) -> Value {
    let role = export.scheduled.graph.threads.get(at).map(|row| match row.role {
        Role::Main => "main",
        Role::Autograd => "autograd",
        Role::Other => "other",
    });
    json!({ "id": at.0, "role": role, "ops": ids(ops.iter().map(|op| op.0)) })
}

fn ids(ids: impl Iterator<Item = u32>) -> Vec<u32> {
    ids.collect()
}

/// One op. Fields with their default values are left out.
#[derive(Serialize)]
struct Op<'s> {
    id: u32,
    name: &'s str,
    kind: &'static str,
    thread: u32,
    parent: Option<u32>,
    children: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<i64>,
    origin: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    again: Option<u32>,
    #[serde(skip_serializing_if = "is_default")]
    round: u32,
    #[serde(skip_serializing_if = "is_default")]
    script: f64,
    #[serde(skip_serializing_if = "is_default")]
    captured: bool,
    #[serde(skip_serializing_if = "is_default")]
    ahead: bool,
    #[serde(skip_serializing_if = "is_default")]
    stream: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<Value>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn op(step: &StepIr, at: OpId) -> Value {
    let row = &step.ops[at];
    let call = row.arguments();
    let args =
        |of: fn(&Call) -> &Vec<Arg<TensorId>>| call.map(|call| of(call).iter().map(argument).collect());
    let kind = match (call, row.annotation) {
        (_, true) => "annotation",
        (Some(_), _) => "op",
        (None, _) => "function",
    };
    let origin = match row.origin {
        Origin::Recorded(op) => json!({ "kind": "recorded", "op": op.0 }),
        Origin::Changed(op, rule) => json!({ "kind": "changed", "op": op.0, "rule": rule }),
        Origin::Inserted(rule) => json!({ "kind": "inserted", "rule": rule }),
    };
    let op = Op {
        id: at.0,
        name: &row.name,
        kind,
        thread: row.thread.0,
        parent: row.parent.map(|parent| parent.0),
        children: ids(row.children.iter().map(|op| op.0)),
        inputs: args(|call| &call.inputs),
        outputs: args(|call| &call.outputs),
        sequence: row.sequence,
        origin,
        again: row.again.map(|again| again.0),
        round: row.round,
        script: row.script,
        captured: row.captured,
        ahead: row.ahead,
        stream: row.stream,
        waits: row.waits.map(|waits| json!({ "waiting": waits.waiting, "awaited": waits.awaited })),
    };
    json!(op)
}

fn argument(arg: &Arg<TensorId>) -> Value {
    match arg {
        Arg::None => Value::Null,
        Arg::Tensor(id) => json!({ "tensor": id.0 }),
        Arg::Tensors(list) => json!({ "tensors": ids(list.iter().map(|id| id.0)) }),
        Arg::Bool(value) => json!(value),
        Arg::Int(value) => json!(value),
        Arg::Float(value) => float(*value),
        Arg::Ints(list) => json!(list.as_slice()),
        Arg::Floats(list) => list.iter().map(|&value| float(value)).collect(),
        Arg::Text(text) => json!(text),
    }
}

fn float(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!({ "float": value.to_string() }) }
}

/// Tensors that running ops take or return, by their ids.
pub(super) fn used(step: &StepIr, running: &[OpId]) -> Vec<TensorId> {
    let mut used: TiVec<TensorId, bool> = vec![false; step.tensors.len()].into();
    for call in running.iter().filter_map(|&op| step.ops[op].call.as_ref()) {
        call.takes().chain(call.gives()).for_each(|tensor| used[tensor] = true);
    }
    used.iter_enumerated().filter(|(_, used)| **used).map(|(tensor, _)| tensor).collect()
}

fn tensor(step: &StepIr, uses: &Uses, at: TensorId) -> Value {
    let row = &step.tensors[at];
    let device = match row.value.device {
        Device::Cuda => "cuda",
        Device::Cpu => "cpu",
        Device::Pinned => "cpu:pinned",
        Device::Unknown => "unknown",
    };
    json!({
        "id": at.0,
        "shape": row.value.shape.as_slice(),
        "strides": (!row.value.is_sparse()).then_some(row.value.strides.as_slice()),
        "dtype": row.value.dtype.name(),
        "device": device,
        "offset": row.value.offset,
        "storage": row.storage.map(|storage| storage.0),
        "producer": uses.producer(at).map(|op| op.0),
        "consumers": ids(uses.consumers(at).iter().map(|op| op.0)),
    })
}

fn data(edge: Data) -> Value {
    json!({ "from": edge.from.0, "to": edge.to.0, "tensor": edge.tensor.0 })
}

fn wait(edge: Wait) -> Value {
    json!({ "from": edge.from.0, "to": edge.to.0, "wraps": edge.wraps })
}
