//! Collectives that only the arguments of their note describe: schemas before 1.1.0 have no attributes for them.

use std::collections::BTreeMap;

use steptime_trace::{Bytes, ExecutionTrace, Value};

use super::{Collective, Group};
use crate::ids::NodeId;
use crate::names::{COLLECTIVE_NOTE, CollectiveKind};

/// Operation of notes that wait.
const WAIT: &str = "wait";

/// Returns the collectives of notes without attributes, by the node of the note. Waiting for a collective does not count as one.
pub(crate) fn find(trace: &ExecutionTrace) -> Vec<(NodeId, Collective)> {
    let Some(note) = trace.names.find(COLLECTIVE_NOTE) else { return Vec::new() };
    let mut groups = Groups { trace, seen: BTreeMap::new() };
    let notes = (0..trace.nodes.len()).filter(|&row| trace.nodes.name[row] == note);
    notes.filter_map(|row| Some((NodeId::at(row), groups.collective(row)?))).collect()
}

/// Returns the notes that wait for a collective, by the note of the collective: both have the same sequence number.
pub(crate) fn awaited(trace: &ExecutionTrace) -> BTreeMap<NodeId, NodeId> {
    let Some(note) = trace.names.find(COLLECTIVE_NOTE) else { return BTreeMap::new() };
    let mut under_way: BTreeMap<i64, NodeId> = BTreeMap::new();
    let mut awaited = BTreeMap::new();
    for row in (0..trace.nodes.len()).filter(|&row| trace.nodes.name[row] == note) {
        let inputs = trace.inputs(row);
        let Some(at) = inputs.iter().position(|value| matches!(value, Value::Str(_))) else { continue };
        let Value::Str(operation) = inputs[at] else { continue };
        let Some(sequence) = at.checked_sub(3).and_then(|at| sequence(trace, inputs[at])) else { continue };
        if trace.name(operation) != WAIT {
            under_way.insert(sequence, NodeId::at(row));
        } else if let Some(collective) = under_way.remove(&sequence) {
            awaited.insert(collective, NodeId::at(row));
        }
    }
    awaited
}

/// Returns a sequence number: a plain number, or the first of a pair with a flag for point-to-point messages.
fn sequence(trace: &ExecutionTrace, value: Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(number),
        Value::List(range) => match trace.list(range).first() {
            Some(&Value::Int(number)) => Some(number),
            _ => None,
        },
        _ => None,
    }
}

/// The process groups of a trace.
struct Groups<'t> {
    trace: &'t ExecutionTrace,
    /// Groups known only by their address, which differs between ranks: numbered in order of first use.
    seen: BTreeMap<i64, usize>,
}

impl Groups<'_> {
    /// Returns the collective of a note. Its arguments are the sent tensors, a sequence number, the process group, the rank, the
    /// operation, the splits, and at the end the ranks of the group: in later schemas the first rank, the stride and the number of ranks.
    fn collective(&mut self, row: usize) -> Option<Collective> {
        let trace = self.trace;
        let inputs = trace.inputs(row);
        let at = inputs.iter().position(|value| matches!(value, Value::Str(_)))?;
        let Value::Str(operation) = inputs[at] else { return None };
        let kind = CollectiveKind::from_operation(trace.name(operation));
        if kind == CollectiveKind::Other {
            return None;
        }
        let group = self.group(at.checked_sub(2).map(|at| inputs[at]), &inputs[at + 1..]);
        let sent = bytes(trace, &inputs[..at]);
        let first = inputs[..at].iter().flat_map(|&value| trace.tensors(value)).next();
        let split = inputs.get(at + 1).map_or_else(Vec::new, |&split| whole_numbers(trace, split));
        let rows = first.map(|tensor| (trace.shape(tensor).first().copied(), sent.0));
        let of_rows = |n: i64| {
            let (rows, bytes) = rows?;
            let share = bytes.checked_div(u64::try_from(rows?).ok()?)?;
            Some(Bytes(u64::try_from(n).ok()?.saturating_mul(share)))
        };
        Some(Collective {
            kind,
            sent,
            received: bytes(trace, trace.outputs(row)),
            group,
            sequence: None,
            between: None,
            sent_to: split.into_iter().map(of_rows).collect::<Option<_>>().unwrap_or_default(),
        })
    }

    /// Returns the group, from its name or address and from the arguments after the operation.
    fn group(&mut self, group: Option<Value>, after: &[Value]) -> Group {
        let trace = self.trace;
        let name = match group {
            Some(Value::List(range)) => match trace.list(range).first() {
                Some(&Value::Str(name)) => trace.name(name).to_owned(),
                _ => String::new(),
            },
            Some(Value::Int(address)) => {
                let next = self.seen.len();
                self.seen.entry(address).or_insert(next).to_string()
            }
            _ => String::new(),
        };
        let mut last: Vec<i64> = after
            .iter()
            .map_while(|value| match value {
                Value::List(_) => Some(None),
                Value::Int(number) => Some(Some(*number)),
                _ => None,
            })
            .flatten()
            .collect();
        let size = last.pop().and_then(|size| u32::try_from(size).ok()).filter(|&size| size > 0);
        let listed = trace.process_groups.iter().find(|known| known.name == name);
        let ranks = match (listed, &last[..], size) {
            (Some(known), ..) if !known.ranks.is_empty() => known.ranks.clone(),
            (_, &[first, stride], Some(size)) => strided(first, stride, size),
            _ => Vec::new(),
        };
        Group { name, ranks, size: size.or(listed.and_then(|known| known.size)) }
    }
}

/// Returns the ranks of a group from the first rank and the stride.
fn strided(first: i64, stride: i64, size: u32) -> Vec<u32> {
    /// Largest group whose ranks are listed.
    const MOST: u32 = 1 << 16;
    let size = if stride > 0 && first >= 0 { size.min(MOST) } else { 0 };
    let rank = |at: u32| u32::try_from(first.checked_add(stride.checked_mul(i64::from(at))?)?).ok();
    (0..size).map(rank).collect::<Option<_>>().unwrap_or_default()
}

/// Returns the bytes of all tensors among some values.
fn bytes(trace: &ExecutionTrace, values: &[Value]) -> Bytes {
    let tensors = values.iter().flat_map(|&value| trace.tensors(value));
    Bytes(
        tensors.fold(0, |sum, tensor| {
            sum.saturating_add(tensor.numel.saturating_mul(u64::from(tensor.itemsize)))
        }),
    )
}

/// Returns the numbers of a list; empty if it contains anything else.
fn whole_numbers(trace: &ExecutionTrace, list: Value) -> Vec<i64> {
    let Value::List(range) = list else { return Vec::new() };
    let number = |value: &Value| match value {
        Value::Int(number) => Some(*number),
        _ => None,
    };
    trace.list(range).iter().map(number).collect::<Option<_>>().unwrap_or_default()
}
