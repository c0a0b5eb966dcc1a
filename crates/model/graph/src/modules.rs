//! Modules of the model, and the ops that each ran.
//!
//! Autograd counts the functions it makes, and an op records the count when it begins. The recorder increments the count at the call
//! and at the return of a module: a call is a range of counts. A backward function has the number of its forward
//! op. Ops under `no_grad` record none, and belong to the call between their neighbours, or to the call around it.

use std::ops::Range;

use rustc_hash::FxHashMap;
use steptime_trace::{ModuleCall, ids};
use typed_index_collections::TiVec;

use crate::graph::StepGraph;
use crate::ids::{HostThreadId, OpId};
use crate::tables::Phase;

ids! {
    /// Module of a model: a row of [`Modules::list`].
    ModuleId;
}

/// Module of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Qualified name, for example `DLRM.bottom.0`.
    pub path: String,
    /// Class name, for example `Linear`.
    pub class: String,
    /// Innermost module around it.
    pub parent: Option<ModuleId>,
}

/// Modules that a step called, and the ops they ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modules {
    /// Modules, outer ones before those inside them, otherwise in the order of their first calls.
    pub list: TiVec<ModuleId, Module>,
    /// Innermost module of each op: the module that ran it, or that ran the forward op of which it is the backward pass.
    pub of: TiVec<OpId, Option<ModuleId>>,
}

impl Modules {
    /// Builds the modules of a step. `sequence` returns the number that an op recorded in the step in which `calls` were recorded.
    #[must_use]
    pub fn build(graph: &StepGraph, sequence: impl Fn(OpId) -> Option<i64>, calls: &[ModuleCall]) -> Modules {
        let (list, ids) = listed(calls);
        let mut modules = Modules { list, of: vec![None; graph.ops.len()].into() };
        if modules.list.is_empty() {
            return modules;
        }
        let stretches = Stretches::from_calls(calls);
        let mut numbers: TiVec<OpId, Option<i64>> = graph.ops.keys().map(sequence).collect();
        // The engine's event around a function has no number of its own.
        for op in graph.ops.keys().rev() {
            let row = &graph.ops[op];
            if let (Some(number), Some(parent)) = (numbers[op], row.parent)
                && row.phase == Phase::Backward
                && !graph.ops[parent].annotation
            {
                numbers[parent].get_or_insert(number);
            }
        }
        let mut of: TiVec<OpId, Option<usize>> = vec![None; graph.ops.len()].into();
        forward(graph, &numbers, &stretches, &mut of);
        backward(graph, &numbers, &stretches, &mut of);
        for op in graph.ops.keys() {
            let call = inside(graph, op).map_or(of[op], |around| of[around]);
            of[op] = call;
            modules.of[op] = call.map(|call| ids[call]);
        }
        modules
    }

    /// Returns for each module whether an op is known to belong to it, or to a module in it.
    #[must_use]
    pub fn ran(&self) -> TiVec<ModuleId, bool> {
        let mut ran: TiVec<ModuleId, bool> = vec![false; self.list.len()].into();
        for module in self.of.iter().flatten() {
            std::iter::successors(Some(*module), |&at| self.list[at].parent).for_each(|at| ran[at] = true);
        }
        ran
    }
}

/// Assigns the outermost ops of the forward pass.
fn forward(
    graph: &StepGraph,
    numbers: &TiVec<OpId, Option<i64>>,
    stretches: &Stretches,
    of: &mut TiVec<OpId, Option<usize>>,
) {
    let outermost = |op: &OpId| {
        let row = &graph.ops[*op];
        row.thread == HostThreadId::MAIN && !row.annotation && inside(graph, *op).is_none()
    };
    let passes = |op: &OpId| matches!(graph.ops[*op].phase, Phase::Input | Phase::Forward);
    let ops: Vec<OpId> = graph.ops.keys().filter(outermost).filter(passes).collect();
    let mut at = 0;
    let mut before = None;
    while at < ops.len() {
        let run = ops[at..].iter().take_while(|&&op| numbers[op].is_none()).count();
        let after = ops.get(at + run).and_then(|&op| numbers[op]);
        let call = if run > 0 { stretches.between(before, after) } else { None };
        ops[at..at + run].iter().for_each(|&op| of[op] = call);
        if let Some(&op) = ops.get(at + run) {
            of[op] = after.and_then(|number| stretches.call(number));
        }
        before = after;
        at += run + 1;
    }
}

/// Assigns the functions of the backward pass. A function without a number accumulates a gradient, right after it was computed.
fn backward(
    graph: &StepGraph,
    numbers: &TiVec<OpId, Option<i64>>,
    stretches: &Stretches,
    of: &mut TiVec<OpId, Option<usize>>,
) {
    let mut last: FxHashMap<HostThreadId, Option<usize>> = FxHashMap::default();
    for (op, row) in graph.ops.iter_enumerated() {
        if row.annotation || inside(graph, op).is_some() {
            continue;
        }
        let last = last.entry(row.thread).or_default();
        if row.phase != Phase::Backward {
            *last = None;
            continue;
        }
        if let Some(number) = numbers[op] {
            *last = stretches.call(number);
        }
        of[op] = *last;
    }
}

/// Returns the op around an op, unless that is an annotation.
fn inside(graph: &StepGraph, op: OpId) -> Option<OpId> {
    graph.ops[op].parent.filter(|&parent| !graph.ops[parent].annotation)
}

/// Returns the modules of some calls, and the module of each call.
fn listed(calls: &[ModuleCall]) -> (TiVec<ModuleId, Module>, Vec<ModuleId>) {
    let mut list: TiVec<ModuleId, Module> = TiVec::new();
    let mut known: FxHashMap<&str, ModuleId> = FxHashMap::default();
    let mut ids = Vec::with_capacity(calls.len());
    for call in calls {
        let id = *known.entry(&call.path).or_insert_with(|| {
            list.push_and_get_key(Module { path: call.path.clone(), class: call.class.clone(), parent: None })
        });
        ids.push(id);
    }
    for module in &mut list {
        let ends = module.path.rmatch_indices('.').map(|(at, _)| at);
        module.parent = ends.filter_map(|end| known.get(&module.path[..end]).copied()).next();
    }
    (list, ids)
}

/// Calls by sequence number.
#[derive(Default)]
struct Stretches {
    /// Innermost call from each start to the next.
    starts: Vec<(i64, Option<usize>)>,
    /// Range of numbers of each call, and the call around it; `None` for an excluded call.
    calls: Vec<Option<(Range<i64>, Option<usize>)>>,
    /// Calls that are not excluded, by their first number.
    begun: Vec<(i64, usize)>,
}

impl Stretches {
    /// Builds the ranges. Calls must be in the order in which they began; others are excluded. A call that outlasts the call around it ends with it.
    fn from_calls(calls: &[ModuleCall]) -> Stretches {
        let mut found = Stretches::default();
        let mut open: Vec<(i64, usize)> = Vec::new();
        for (at, call) in calls.iter().enumerate() {
            let Range { start, end } = call.sequences;
            if start >= end || found.starts.last().is_some_and(|&(last, _)| start < last) {
                found.calls.push(None);
                continue;
            }
            found.close(&mut open, start);
            let end = open.last().map_or(end, |(around, _)| end.min(*around));
            found.calls.push(Some((start..end, open.last().map(|(_, around)| *around))));
            found.starts.push((start, Some(at)));
            found.begun.push((start, at));
            open.push((end, at));
        }
        found.close(&mut open, i64::MAX);
        found.starts.sort_by_key(|&(start, _)| start);
        found
    }

    fn close(&mut self, open: &mut Vec<(i64, usize)>, until: i64) {
        while let Some((end, _)) = open.pop_if(|(end, _)| *end <= until) {
            self.starts.push((end, open.last().map(|(_, call)| *call)));
        }
    }

    /// Returns the innermost call at a number.
    fn call(&self, number: i64) -> Option<usize> {
        let after = self.starts.partition_point(|&(start, _)| start <= number);
        self.starts[..after].last().and_then(|&(_, call)| call)
    }

    /// Returns the call that ran ops without a number between two ops that have one: the only call entirely between them, the innermost call around
    /// all calls between them, or otherwise the innermost call around both ends.
    fn between(&self, before: Option<i64>, after: Option<i64>) -> Option<usize> {
        let (from, to) = (before.unwrap_or(i64::MIN), after.unwrap_or(i64::MAX));
        let first = self.begun.partition_point(|&(start, _)| start <= from);
        let whole = |at: usize| {
            self.calls[at].as_ref().filter(|(numbers, _)| from < numbers.start && numbers.end <= to)
        };
        let outermost =
            |at: &usize| whole(*at).is_some_and(|(_, around)| around.is_none_or(|at| whole(at).is_none()));
        let there = self.begun[first..].iter().take_while(|&&(start, _)| start < to);
        let mut there = there.map(|&(_, at)| at).filter(outermost);
        match there.next() {
            Some(one) => there.try_fold(one, |all, next| self.around_both(Some(all), Some(next))),
            None => self.around_both(before.and_then(|at| self.call(at)), after.and_then(|at| self.call(at))),
        }
    }

    fn around_both(&self, one: Option<usize>, other: Option<usize>) -> Option<usize> {
        let around = |call: Option<usize>| {
            std::iter::successors(call, |&at| self.calls[at].as_ref().and_then(|(_, around)| *around))
        };
        let others: Vec<usize> = around(other).collect();
        around(one).find(|call| others.contains(call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(path: &str, sequences: Range<i64>) -> ModuleCall {
        ModuleCall { path: path.into(), class: "M".into(), sequences }
    }

    /// Returns the paths of the modules of some numbers.
    fn found(calls: &[ModuleCall], numbers: Range<i64>) -> Vec<String> {
        let (list, ids) = listed(calls);
        let stretches = Stretches::from_calls(calls);
        let path = |number| stretches.call(number).map_or(String::new(), |call| list[ids[call]].path.clone());
        numbers.map(path).collect()
    }

    #[test]
    fn numbers_belong_to_the_innermost_call() {
        let calls =
            [call("A", 1..7), call("A.x", 1..3), call("A.x.y", 2..3), call("A.z", 4..6), call("L", 7..8)];
        assert_eq!(found(&calls, 0..10), ["", "A.x", "A.x.y", "A", "A.z", "A.z", "A", "L", "", ""]);
        let again = [call("A", 1..3), call("A", 5..6)];
        assert_eq!(found(&again, 0..7), ["", "A", "A", "", "", "A", ""]);
    }

    #[test]
    fn what_has_no_number_is_of_the_call_in_between() {
        let calls =
            [call("A", 1..4), call("A.x", 2..3), call("T", 5..9), call("T.x", 6..8), call("A", 10..13)];
        let stretches = Stretches::from_calls(&calls);
        let between = |before, after| stretches.between(before, after).map(|call| calls[call].path.as_str());
        assert_eq!(between(Some(3), Some(10)), Some("T"));
        assert_eq!(between(None, Some(10)), None);
        assert_eq!(between(Some(1), Some(3)), Some("A.x"));
        assert_eq!(between(Some(9), Some(11)), None);
        assert_eq!(between(Some(5), None), None);
    }

    #[test]
    fn calls_that_do_not_nest_are_cut_off() {
        assert_eq!(found(&[call("A", 1..3), call("B", 2..9)], 0..5), ["", "A", "B", "", ""]);
        assert_eq!(found(&[call("A", 3..3), call("B", i64::MIN..i64::MAX)], 0..2), ["B", "B"]);
    }

    #[test]
    fn the_module_around_is_the_longest_path_that_was_called() {
        let (list, _) =
            listed(&[call("A", 0..9), call("A.x.0", 0..1), call("A.x.0.w", 0..1), call("A#2", 9..10)]);
        let around = |at: u32| list[ModuleId(at)].parent.map(|parent| list[parent].path.as_str());
        assert_eq!([0, 1, 2, 3].map(around), [None, Some("A"), Some("A.x.0"), None]);
    }
}
