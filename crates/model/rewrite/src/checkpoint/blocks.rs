//! The blocks of a model: stretches of the forward pass that repeat with the same shapes, each of which takes a tensor of the previous one.

use std::fmt::Write;

use rustc_hash::FxHashMap;
use steptime_aten::Arg;

use super::forward::Forward;
use super::modules;
use super::repeats::{self, Repeat};
use super::row::{self, Row};
use crate::blocks::Blocks;
use crate::error::Error;
use crate::rule::Facts;

/// Minimum number of ops of a block: fewer are a layer.
const LEAST: usize = 3;

/// The rows of blocks of a forward pass, in order. Repeated blocks are found by the modules where these are known, else by the ops.
///
/// # Errors
/// Where no module matches, or no module of the step is known.
pub(super) fn find(forward: &Forward<'_>, blocks: &Blocks, facts: &Facts<'_>) -> Result<Vec<Row>, Error> {
    let modules = facts.modules.filter(|modules| !modules.list.is_empty());
    match blocks {
        Blocks::Repeated => {
            let rows = modules.map_or_else(Vec::new, |modules| modules::find(forward, modules));
            Ok(if rows.is_empty() { repeated(forward) } else { rows })
        }
        Blocks::Whole => Ok(modules::whole(forward, modules.ok_or(Error::NoModules)?)),
        Blocks::Depth(_) | Blocks::Modules(_) => {
            let found = blocks.find(forward.step, &forward.roots, facts, Vec::new)?;
            Ok(row::from_blocks(&found.of, found.names.len()))
        }
    }
}

/// Repeated stretches of ops.
pub(super) fn repeated(forward: &Forward<'_>) -> Vec<Row> {
    let keys = keys(forward);
    let found = repeats::find(&keys, 0, LEAST, &|repeat| is_fed(forward, repeat));
    found.iter().map(|repeat| row(forward, repeat)).collect()
}

/// A key per op, equal for ops of one name with the same shapes of inputs and outputs.
fn keys(forward: &Forward<'_>) -> Vec<u32> {
    let mut known: FxHashMap<String, u32> = FxHashMap::default();
    let key = |&op: &steptime_step::OpId| {
        let mut text = forward.step.ops[op].name.clone();
        if let Some(call) = forward.step.call(op) {
            for tensor in call.inputs.iter().chain(&call.outputs).flat_map(Arg::tensors) {
                let _ = write!(text, " {:?}{:?}", tensor.shape.as_slice(), tensor.dtype);
            }
        }
        let next = known.len() as u32;
        *known.entry(text).or_insert(next)
    };
    forward.roots.iter().map(key).collect()
}

/// Whether the second stretch of a repeat takes a tensor of the first.
fn is_fed(forward: &Forward<'_>, repeat: &Repeat) -> bool {
    let [first, second] = [0, 1].map(|at| {
        let start = repeat.first + at * repeat.length;
        start..start + repeat.length
    });
    forward.is_fed(&first, &second)
}

/// The blocks of a repeat: they begin where the least memory passes from one to the next.
fn row(forward: &Forward<'_>, repeat: &Repeat) -> Row {
    let crossing = |place: usize| -> u64 {
        let crosses = forward.made.iter().filter(|(storage, (made, _))| {
            *made < place && forward.taken_last.get(storage).is_some_and(|&last| last >= place)
        });
        crosses.map(|(_, (_, bytes))| bytes).sum()
    };
    // Between the first and the second block: memory before the first may be of another kind.
    let best = (0..=repeat.rest).min_by_key(|shift| crossing(repeat.first + repeat.length + shift));
    let first = repeat.first + best.unwrap_or(0);
    let start = |at: usize| first + at * repeat.length;
    (0..repeat.count).map(|at| start(at)..start(at + 1)).collect()
}
