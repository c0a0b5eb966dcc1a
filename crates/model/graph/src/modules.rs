//! Which module of the model ran which op.
//!
//! Autograd counts the functions it makes, and an op notes the count as it begins. The recorder moves the count on where a
//! module is called and where it returns: a call is a range of counts. A backward function has the number of its forward
//! op. Ops under `no_grad` note none, and belong to what holds both of their neighbours.

use std::ops::Range;

use rustc_hash::FxHashMap;
use steptime_trace::{ModuleCall, ids};
use typed_index_collections::TiVec;

use crate::graph::StepGraph;
use crate::ids::{HostThreadId, OpId};
use crate::tables::Phase;

ids! {
    /// A module of a model: a row of [`Modules::list`].
    ModuleId;
}

/// A module of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its name within those around it, `DLRM.bottom.0`.
    pub path: String,
    /// Its class, `Linear`.
    pub class: String,
    /// The innermost module around it.
    pub parent: Option<ModuleId>,
}

/// The modules that a step called, and the ops they ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modules {
    /// Those around others come first, else in the order of their first calls.
    pub list: TiVec<ModuleId, Module>,
    /// For each op the innermost module that ran it, or whose forward op it is the backward pass of.
    pub of: TiVec<OpId, Option<ModuleId>>,
}

impl Modules {
    /// The modules of a step. `sequence` tells the number that an op noted in the step in which `calls` were noted.
    #[must_use]
    pub fn of(graph: &StepGraph, sequence: impl Fn(OpId) -> Option<i64>, calls: &[ModuleCall]) -> Modules {
        let (list, ids) = listed(calls);
        if list.is_empty() {
            return Modules { list, of: vec![None; graph.ops.len()].into() };
        }
        let mut modules = Modules { list, of: vec![None; graph.ops.len()].into() };
        let stretches = Stretches::of(calls, &ids);
        let mut numbers: TiVec<OpId, Option<i64>> = graph.ops.keys().map(sequence).collect();
        // The engine's mark around a function has no number of its own.
        for op in graph.ops.keys().rev() {
            let row = &graph.ops[op];
            if let (Some(number), Some(parent)) = (numbers[op], row.parent)
                && row.phase == Phase::Backward
                && !graph.ops[parent].annotation
            {
                numbers[parent].get_or_insert(number);
            }
        }
        modules.forward(graph, &numbers, &stretches);
        modules.backward(graph, &numbers, &stretches);
        for op in graph.ops.keys() {
            if let Some(around) = inside(graph, op) {
                modules.of[op] = modules.of[around];
            }
        }
        modules
    }

    /// Ops of the forward pass that no other is around.
    fn forward(&mut self, graph: &StepGraph, numbers: &TiVec<OpId, Option<i64>>, stretches: &Stretches) {
        let ops: Vec<OpId> = graph
            .ops
            .iter_enumerated()
            .filter(|(op, row)| {
                row.thread == HostThreadId::MAIN && !row.annotation && inside(graph, *op).is_none()
            })
            .filter(|(_, row)| matches!(row.phase, Phase::Input | Phase::Forward))
            .map(|(op, _)| op)
            .collect();
        let of = |&op: &OpId| numbers[op].map(|number| stretches.module(number));
        let mut after: Vec<Option<ModuleId>> = ops
            .iter()
            .rev()
            .scan(None, |next, op| {
                *next = of(op).unwrap_or(*next);
                Some(*next)
            })
            .collect();
        after.reverse();
        let mut before = None;
        for (op, after) in ops.iter().zip(after) {
            self.of[*op] = of(op).unwrap_or_else(|| self.around_both(before, after));
            before = of(op).unwrap_or(before);
        }
    }

    /// Functions of the backward pass. One without a number adds a gradient up, right after it was made.
    fn backward(&mut self, graph: &StepGraph, numbers: &TiVec<OpId, Option<i64>>, stretches: &Stretches) {
        let mut last: FxHashMap<HostThreadId, Option<ModuleId>> = FxHashMap::default();
        for (op, row) in graph.ops.iter_enumerated() {
            if row.phase != Phase::Backward || row.annotation || inside(graph, op).is_some() {
                continue;
            }
            let last = last.entry(row.thread).or_default();
            if let Some(number) = numbers[op] {
                *last = stretches.module(number);
            }
            self.of[op] = *last;
        }
    }

    /// The innermost module that holds both.
    fn around_both(&self, one: Option<ModuleId>, other: Option<ModuleId>) -> Option<ModuleId> {
        let around = |module: Option<ModuleId>| std::iter::successors(module, |&at| self.list[at].parent);
        let others: Vec<ModuleId> = around(other).collect();
        around(one).find(|module| others.contains(module))
    }
}

/// The op around an op that is no annotation.
fn inside(graph: &StepGraph, op: OpId) -> Option<OpId> {
    graph.ops[op].parent.filter(|&parent| !graph.ops[parent].annotation)
}

/// The modules of some calls, and which module each call is of.
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

/// Which module each number belongs to: from each start to the next.
struct Stretches(Vec<(i64, Option<ModuleId>)>);

impl Stretches {
    /// Calls come in the order in which they began; others are left out. One that outlasts the call around it ends with it.
    fn of(calls: &[ModuleCall], ids: &[ModuleId]) -> Stretches {
        let mut starts: Vec<(i64, Option<ModuleId>)> = Vec::new();
        let mut open: Vec<(i64, ModuleId)> = Vec::new();
        let close =
            |open: &mut Vec<(i64, ModuleId)>, starts: &mut Vec<(i64, Option<ModuleId>)>, until: i64| {
                while let Some((end, _)) = open.pop_if(|(end, _)| *end <= until) {
                    starts.push((end, open.last().map(|(_, module)| *module)));
                }
            };
        for (call, &module) in calls.iter().zip(ids) {
            let Range { start, end } = call.sequences;
            if start >= end || starts.last().is_some_and(|&(last, _)| start < last) {
                continue;
            }
            close(&mut open, &mut starts, start);
            starts.push((start, Some(module)));
            open.push((open.last().map_or(end, |(around, _)| end.min(*around)), module));
        }
        close(&mut open, &mut starts, i64::MAX);
        starts.sort_by_key(|&(start, _)| start);
        Stretches(starts)
    }

    fn module(&self, number: i64) -> Option<ModuleId> {
        let after = self.0.partition_point(|&(start, _)| start <= number);
        self.0[..after].last().and_then(|&(_, module)| module)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(path: &str, sequences: Range<i64>) -> ModuleCall {
        ModuleCall { path: path.into(), class: "M".into(), sequences }
    }

    /// The paths of the modules of some numbers.
    fn found(calls: &[ModuleCall], numbers: Range<i64>) -> Vec<String> {
        let (list, ids) = listed(calls);
        let stretches = Stretches::of(calls, &ids);
        let path =
            |number| stretches.module(number).map_or(String::new(), |module| list[module].path.clone());
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
