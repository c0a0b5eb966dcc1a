//! Blocks by the modules of a model: consecutive modules of one class.

use std::ops::Range;

use rustc_hash::FxHashSet;
use steptime_graph::{ModuleId, Modules};

use super::forward::Forward;
use super::row::Row;

/// The places of the forward pass that each module ran, including inner modules.
struct ModulePlaces<'m> {
    modules: &'m Modules,
    /// Range per module; empty where it ran no op.
    places: Vec<Range<usize>>,
    /// Modules that ran an op themselves, not only through inner modules.
    runs: FxHashSet<ModuleId>,
}

/// The rows of blocks, in order: consecutive modules of one class that hold other modules, each of which takes a tensor of the previous one. A module
/// that only calls a row is not a block.
pub(super) fn find(forward: &Forward<'_>, modules: &Modules) -> Vec<Row> {
    let called = ModulePlaces::find(forward, modules);
    let mut rows = called.rows(forward, None);
    rows.sort_by_key(|row| row[0].start);
    rows
}

/// The model as one block: all ops run by a module.
pub(super) fn whole(forward: &Forward<'_>, modules: &Modules) -> Vec<Row> {
    let called = ModulePlaces::find(forward, modules).places.into_iter().filter(|places| places.end > 0);
    let all = called.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end));
    all.into_iter().map(|all| vec![all]).collect()
}

impl<'m> ModulePlaces<'m> {
    fn find(forward: &Forward<'_>, modules: &'m Modules) -> ModulePlaces<'m> {
        let mut called =
            ModulePlaces { modules, places: vec![0..0; modules.list.len()], runs: FxHashSet::default() };
        for (place, &root) in forward.roots.iter().enumerate() {
            let recorded = forward.step.recorded(root);
            let Some(own) = recorded.and_then(|op| modules.of.get(op).copied().flatten()) else { continue };
            called.runs.insert(own);
            for module in std::iter::successors(Some(own), |&at| modules.list[at].parent) {
                let places = &mut called.places[usize::from(module)];
                let start = if places.start < places.end { places.start } else { place };
                *places = start..place + 1;
            }
        }
        called
    }

    /// Whether a module ran an op.
    fn ran(&self, module: ModuleId) -> bool {
        self.places[usize::from(module)].end > 0
    }

    fn inside(&self, around: Option<ModuleId>) -> impl Iterator<Item = ModuleId> {
        self.modules.list.keys().filter(move |&at| self.modules.list[at].parent == around)
    }

    /// The rows among the modules inside one, or among all.
    fn rows(&self, forward: &Forward<'_>, around: Option<ModuleId>) -> Vec<Row> {
        let mut inside: Vec<ModuleId> = self.inside(around).filter(|&at| self.ran(at)).collect();
        inside.sort_by_key(|&at| self.places[usize::from(at)].start);
        let mut rows = Vec::new();
        let mut rest = &inside[..];
        while !rest.is_empty() {
            let length =
                1 + rest.windows(2).take_while(|pair| self.follows(forward, pair[0], pair[1])).count();
            let (run, after) = rest.split_at(length);
            rest = after;
            let within: Vec<Vec<Row>> = run.iter().map(|&at| self.rows(forward, Some(at))).collect();
            // A module that only calls a row is not a block, but the row is.
            let calls_rows =
                run.iter().all(|at| !self.runs.contains(at)) && within.iter().any(|rows| !rows.is_empty());
            if length == 1 || calls_rows || around.is_none() {
                let alone = |(at, rows): (&ModuleId, Vec<Row>)| match rows.is_empty() && length > 1 {
                    true => vec![vec![self.places[usize::from(*at)].clone()]],
                    false => rows,
                };
                rows.extend(run.iter().zip(within).flat_map(alone));
            } else {
                rows.push(run.iter().map(|&at| self.places[usize::from(at)].clone()).collect());
            }
        }
        rows
    }

    /// Whether a module is of the same class as another, runs after it and takes a tensor of it, and both hold other modules.
    fn follows(&self, forward: &Forward<'_>, one: ModuleId, next: ModuleId) -> bool {
        let class = |at: ModuleId| &self.modules.list[at].class;
        let holds = |at: ModuleId| self.inside(Some(at)).next().is_some();
        let [first, second] = [one, next].map(|at| self.places[usize::from(at)].clone());
        class(one) == class(next)
            && holds(one)
            && holds(next)
            && first.end <= second.start
            && forward.is_fed(&first, &second)
    }
}
