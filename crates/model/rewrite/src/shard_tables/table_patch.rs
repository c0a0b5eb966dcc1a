//! Tables of one rank: those of other ranks are removed, and results of lookups are exchanged.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_graph::CollectiveKind;
use steptime_step::{OpId, Patch, Place, StepIr, TensorId, Uses};

use super::ShardTables;
use super::exchanges::Exchange;
use super::tables::Table;
use crate::counted::counted;
use crate::error::Error;
use crate::operators::index_origin;
use crate::operators::lookups::described;
use crate::updates::{self, without};

/// The change, and the gradients that stay on their rank.
pub(super) struct TablePatch {
    pub patch: Patch,
    /// Functions that accumulate gradients of tables that are not averaged.
    pub apart: FxHashSet<OpId>,
}

/// A table that is placed on some ranks.
struct Spread<'t> {
    /// Index of the table.
    at: usize,
    table: &'t Table,
    /// Whether this rank has a part of it.
    own: bool,
    /// Whether its rows are cut: sums are then reduced over ranks instead of exchanged.
    by_rows: bool,
}

pub(super) fn patch(step: &StepIr, rule: &ShardTables, tables: &[Table]) -> Result<TablePatch, Error> {
    let uses = Uses::find(step);
    let spread: Vec<Spread<'_>> = tables
        .iter()
        .zip(&rule.homes)
        .enumerate()
        .filter(|(_, (_, home))| **home != super::TableHome::Everywhere)
        .map(|(at, (table, home))| Spread {
            at,
            table,
            own: home.on(rule.rank).is_some(),
            by_rows: home.is_by_rows(),
        })
        .collect();
    let Some(first) = spread.first() else {
        return Err(Error::NothingToDo { reason: "every table is on all ranks".to_owned() });
    };
    let result = &step.tensors[first.table.lookup.result].value;
    let (samples, dtype) = (result.size(0), result.dtype);
    if let Some(other) = spread.iter().find(|other| {
        let value = &step.tensors[other.table.lookup.result].value;
        value.size(0) != samples || value.dtype != dtype
    }) {
        return Err(Error::NothingToDo {
            reason: format!(
                "lookups in {} have another number of samples, or another type, than those in {}",
                described(step, other.table.lookup.table),
                described(step, first.table.lookup.table),
            ),
        });
    }
    let mut patch = Patch::new("shard-tables");
    let removed = remove(step, &uses, &spread, tables, &mut patch);
    let mut replaced: FxHashMap<TensorId, TensorId> = FxHashMap::default();
    let running: FxHashMap<OpId, usize> =
        step.running().into_iter().enumerate().map(|(at, op)| (op, at)).collect();
    let last = spread.iter().map(|one| one.table.lookup.op).max_by_key(|op| running.get(op));
    let last = last.unwrap_or(first.table.lookup.op);
    let forward = forward(step, &mut patch, rule, &spread, (samples, dtype), &mut replaced);
    patch.insert.extend(forward.into_iter().rev().map(|op| (Place::After(last), op)));
    let mut gradients: FxHashMap<TensorId, TensorId> = FxHashMap::default();
    let functions = spread.iter().filter_map(|one| Some(one.table.trained.as_ref()?.function()));
    if let Some(early) = functions.min_by_key(|op| running.get(op)) {
        let place = running[&early];
        let late = spread.iter().find(|one| {
            let gradient = one.table.trained.as_ref().map(|trained| trained.gradient);
            let maker = gradient.and_then(|gradient| uses.producer(gradient));
            maker.is_some_and(|maker| running[&maker] > place)
        });
        if let Some(late) = late {
            return Err(Error::NothingToDo {
                reason: format!(
                    "the gradient of {} is computed after the exchange of another table's gradient: which tables share an exchange is not known",
                    described(step, late.table.lookup.table)
                ),
            });
        }
        let backward = backward(step, &mut patch, rule, &spread, (samples, dtype), &mut gradients);
        patch.insert.extend(backward.into_iter().map(|op| (Place::Before(early), op)));
    }
    change(step, &spread, &removed, [&replaced, &gradients], &mut patch);
    let own = spread.iter().filter(|one| one.own).count();
    patch.why = format!(
        "rank {} of {} has {} of {}; {} exchanged",
        rule.rank,
        rule.dense.ranks,
        own,
        counted(tables.len(), "table", "tables"),
        if spread.len() == tables.len() {
            "vectors are".to_owned()
        } else {
            format!("vectors of {} are", counted(spread.len(), "table", "tables"))
        },
    );
    let adds_up = |table: &Table| table.trained.as_ref()?.roots.get(1).copied();
    let copies = tables
        .iter()
        .zip(&rule.homes)
        .filter(|(_, home)| rule.copies_apart && **home == super::TableHome::Everywhere);
    let apart = spread
        .iter()
        .map(|one| one.table)
        .chain(copies.map(|(table, _)| table))
        .filter_map(adds_up)
        .collect();
    Ok(TablePatch { patch, apart })
}

/// Removes ops for tables of other ranks, except those that other ops need.
fn remove(
    step: &StepIr,
    uses: &Uses,
    spread: &[Spread<'_>],
    tables: &[Table],
    patch: &mut Patch,
) -> FxHashSet<OpId> {
    let foreign: Vec<&Spread<'_>> = spread.iter().filter(|one| !one.own).collect();
    let mut gone: Vec<OpId> = foreign.iter().flat_map(|one| one.table.roots()).collect();
    let inputs: Vec<TensorId> = foreign.iter().flat_map(|one| one.table.inputs()).collect();
    gone.extend(index_origin::unused(step, uses, &inputs, &gone, &[]));
    let sets = tables.iter().map(|table| {
        let own = table.trained.as_ref().map(|trained| trained.own.clone());
        own.unwrap_or_else(|| std::iter::once(table.lookup.table).collect())
    });
    let updates = updates::find(step, sets.collect());
    for one in &foreign {
        gone.extend(updates.alone[one.at].iter().copied());
    }
    for (op, places) in &updates.lists {
        let places: Vec<usize> = foreign.iter().filter_map(|one| places[one.at]).collect();
        let Some(call) = step.ops[*op].call.as_deref().filter(|_| !places.is_empty()) else { continue };
        let left = without(call, &places);
        if left.inputs.iter().all(|arg| arg.tensors().is_empty()) {
            gone.push(*op);
        } else {
            patch.change.push((*op, left));
        }
    }
    gone.sort_unstable();
    gone.dedup();
    patch.remove.clone_from(&gone);
    gone.into_iter().flat_map(|root| step.subtree(root)).collect()
}

/// Vectors of every table for this rank's samples.
fn forward(
    step: &StepIr,
    patch: &mut Patch,
    rule: &ShardTables,
    spread: &[Spread<'_>],
    (samples, dtype): (i64, steptime_aten::Dtype),
    replaced: &mut FxHashMap<TensorId, TensorId>,
) -> Vec<steptime_step::NewOp> {
    let mut exchange = Exchange { step, patch, ranks: rule.dense.ranks, samples, dtype, ops: Vec::new() };
    for (by_rows, kind) in [(false, CollectiveKind::AllToAll), (true, CollectiveKind::ReduceScatter)] {
        let all: Vec<&Spread<'_>> = in_order(rule, spread, by_rows);
        if all.is_empty() {
            continue;
        }
        let own: Vec<TensorId> =
            all.iter().filter(|one| one.own).map(|one| one.table.lookup.result).collect();
        let sent = exchange.side_by_side(&own);
        let columns = all.iter().map(|one| width(step, one.table.lookup.result, samples)).sum();
        let whole = exchange.exchanged(kind, sent, columns);
        let mut start = 0;
        for one in &all {
            let result = one.table.lookup.result;
            replaced.insert(result, exchange.columns(whole, start, result));
            start += width(step, result, samples);
        }
    }
    exchange.ops
}

/// Gradients of this rank's tables for all samples.
fn backward(
    step: &StepIr,
    patch: &mut Patch,
    rule: &ShardTables,
    spread: &[Spread<'_>],
    (samples, dtype): (i64, steptime_aten::Dtype),
    gradients: &mut FxHashMap<TensorId, TensorId>,
) -> Vec<steptime_step::NewOp> {
    let mut exchange = Exchange { step, patch, ranks: rule.dense.ranks, samples, dtype, ops: Vec::new() };
    for (by_rows, kind) in [(false, CollectiveKind::AllToAll), (true, CollectiveKind::AllGather)] {
        let trained = |one: &&Spread<'_>| one.table.trained.is_some();
        let all: Vec<&Spread<'_>> = in_order(rule, spread, by_rows).into_iter().filter(trained).collect();
        if all.is_empty() {
            continue;
        }
        let gradient = |one: &&Spread<'_>| Some(one.table.trained.as_ref()?.gradient);
        let sent: Vec<TensorId> = all.iter().filter_map(gradient).collect();
        let sent = exchange.side_by_side(&sent);
        let own: Vec<TensorId> = all.iter().filter(|one| one.own).filter_map(gradient).collect();
        let columns = own.iter().map(|&gradient| width(step, gradient, samples)).sum();
        let whole = exchange.exchanged(kind, sent, columns);
        let mut start = 0;
        for gradient in own {
            gradients.insert(gradient, exchange.columns(whole, start, gradient));
            start += width(step, gradient, samples);
        }
    }
    exchange.ops
}

/// Tables in the order in which their vectors are received: rank by rank.
fn in_order<'a, 't>(rule: &ShardTables, spread: &'a [Spread<'t>], by_rows: bool) -> Vec<&'a Spread<'t>> {
    let mut all: Vec<&Spread<'t>> = spread.iter().filter(|one| one.by_rows == by_rows).collect();
    all.sort_by_key(|one| (rule.homes[one.at].ranks().min(), one.at));
    all
}

/// Columns per sample of a tensor.
fn width(step: &StepIr, tensor: TensorId, samples: i64) -> i64 {
    step.tensors[tensor].value.numel() as i64 / samples.max(1)
}

/// Replaces vectors by received ones in their consumers, and gradients of own tables by received ones.
fn change(
    step: &StepIr,
    spread: &[Spread<'_>],
    removed: &FxHashSet<OpId>,
    [replaced, gradients]: [&FxHashMap<TensorId, TensorId>; 2],
    patch: &mut Patch,
) {
    let own: FxHashSet<OpId> =
        spread.iter().flat_map(|one| one.table.roots()).flat_map(|root| step.subtree(root)).collect();
    let already: FxHashMap<OpId, usize> =
        patch.change.iter().enumerate().map(|(at, (op, _))| (*op, at)).collect();
    for op in step.running() {
        if removed.contains(&op) {
            continue;
        }
        let map = if own.contains(&op) { gradients } else { replaced };
        let call = match already.get(&op) {
            Some(&at) => Some(&patch.change[at].1),
            None => step.ops[op].call.as_deref(),
        };
        let Some(call) = call.filter(|call| call.takes().any(|taken| map.contains_key(&taken))) else {
            continue;
        };
        let now = call.with(&mut |tensor| map.get(&tensor).copied().unwrap_or(tensor));
        match already.get(&op) {
            Some(&at) => patch.change[at].1 = now,
            None => patch.change.push((op, now)),
        }
    }
}
