//! Plans that differ from a given plan by one change.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use steptime_trace::Nanos;

use crate::problem::{Cut, Load, Plan, Problem, TablePlacement};
use crate::state::State;

/// Returns plans that differ from this one by one table on other GPUs or in another way, or by two exchanged tables; the most
/// promising first, at most `most`.
///
/// `busy` is the busy time of each GPU under this plan, from a better source than the sum of loads: measured or simulated. A change
/// adds its loads to that. Only tables of the busiest GPU change, and memory holds all returned plans. The time is quadratic in the number
/// of tables; at most `most` changes are kept at a time.
#[must_use]
pub fn neighbours(problem: &Problem, plan: &Plan, busy: &[Nanos], most: usize) -> Vec<Plan> {
    let state = State::from_plan(problem, plan);
    let own = busy.iter().enumerate().max_by_key(|&(gpu, time)| (*time, std::cmp::Reverse(gpu)));
    let Some((own, _)) = own else { return Vec::new() };
    let own = own as u32;
    let mut found = BestChanges { problem, plan, before: &state.loads, busy, most, best: BinaryHeap::new() };
    for table in state.on(own as usize) {
        let placed = &plan.tables[table];
        // Parts of a grid are on the same node.
        let moves = !matches!(problem.tables[table].ways[placed.way].cut, Cut::Grid(_));
        for gpu in (0..problem.gpus).filter(|gpu| moves && !placed.gpus.contains(gpu)) {
            let gpus: Vec<u32> = placed.gpus.iter().map(|&at| if at == own { gpu } else { at }).collect();
            found.add(&[(table, At { way: placed.way, gpus: &gpus })]);
        }
        for partner in (0..plan.tables.len()).filter(|&at| is_one(plan, at) && is_one(plan, table)) {
            let (a, b) = (placed, &plan.tables[partner]);
            let to = (table, At { way: a.way, gpus: &b.gpus });
            let from = (partner, At { way: b.way, gpus: &a.gpus });
            found.add(&if table < partner { [to, from] } else { [from, to] });
        }
        let mut lifted = state.clone();
        lifted.lift(problem, table);
        for (way, row) in problem.tables[table].ways.iter().enumerate().filter(|(way, _)| *way != placed.way)
        {
            if let Some((gpus, _)) = lifted.best(problem, row) {
                found.add(&[(table, At { way, gpus: &gpus })]);
            }
        }
    }
    found.plans()
}

/// Placement of a table: its way and its GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct At<'a> {
    way: usize,
    gpus: &'a [u32],
}

impl<'a> At<'a> {
    fn from_placed(placed: &'a TablePlacement) -> At<'a> {
        At { way: placed.way, gpus: &placed.gpus }
    }
}

/// Best changes so far.
struct BestChanges<'p> {
    problem: &'p Problem,
    plan: &'p Plan,
    /// Load of each GPU in the plan.
    before: &'p [Load],
    busy: &'p [Nanos],
    most: usize,
    /// Heap of changes, the worst on top.
    best: BinaryHeap<Change<'p>>,
}

impl BestChanges<'_> {
    /// Adds a change of the placements of some tables, given in table order.
    fn add(&mut self, changes: &[(usize, At<'_>)]) {
        if changes.iter().all(|(table, at)| At::from_placed(&self.plan.tables[*table]) == *at) {
            return;
        }
        let Some(estimate) = self.estimate(changes) else { return };
        let is_full = self.best.len() >= self.most;
        if is_full && self.best.peek().is_none_or(|worst| worst.estimate < estimate) {
            return;
        }
        let own =
            |(table, at): &(usize, At<'_>)| (*table, TablePlacement { way: at.way, gpus: at.gpus.to_vec() });
        let change = Change { plan: self.plan, estimate, tables: changes.iter().map(own).collect() };
        self.best.push(change);
        if is_full {
            self.best.pop();
        }
    }

    /// Returns the busy time of the busiest GPU, and of all GPUs together; `None` if memory does not hold the tables.
    fn estimate(&self, changes: &[(usize, At<'_>)]) -> Option<(Nanos, Nanos)> {
        let mut loads = self.before.to_vec();
        for (table, at) in changes {
            let ways = &self.problem.tables[*table].ways;
            let was = At::from_placed(&self.plan.tables[*table]);
            let (old, new) = (&ways[was.way], &ways[at.way]);
            if old.each != new.each {
                loads.iter_mut().for_each(|load| *load = *load - old.each + new.each);
            }
            for (&gpu, part) in was.gpus.iter().zip(&old.parts) {
                loads[gpu as usize] -= *part;
            }
            for (&gpu, part) in at.gpus.iter().zip(&new.parts) {
                loads[gpu as usize] += *part;
            }
        }
        if !self.problem.holds(&loads) {
            return None;
        }
        let all = loads.iter().zip(self.before).zip(self.busy);
        let times = all.map(|((load, old), busy)| *busy + self.problem.time(load) - self.problem.time(old));
        times.map(|time| (time, time)).reduce(|(most, sum), (time, _)| (most.max(time), sum + time))
    }

    /// The plans, the most promising first.
    fn plans(self) -> Vec<Plan> {
        let mut changes = self.best.into_sorted_vec();
        changes.dedup_by(|a, b| a.tables == b.tables);
        let with = |change: Change<'_>| {
            let mut plan = self.plan.clone();
            for (table, placed) in change.tables {
                plan.tables[table] = placed;
            }
            plan
        };
        changes.into_iter().map(with).collect()
    }
}

/// Changed plan: the tables with other placements, in order.
struct Change<'p> {
    plan: &'p Plan,
    estimate: (Nanos, Nanos),
    tables: Vec<(usize, TablePlacement)>,
}

impl Change<'_> {
    /// Returns the placement of a table.
    fn at(&self, table: usize) -> At<'_> {
        let own = self.tables.iter().find(|(at, _)| *at == table);
        At::from_placed(own.map_or(&self.plan.tables[table], |(_, placed)| placed))
    }
}

/// Order by estimate; of equal estimates, as if whole plans were compared table by table.
impl Ord for Change<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let mut tables: Vec<usize> =
            self.tables.iter().chain(&other.tables).map(|(table, _)| *table).collect();
        tables.sort_unstable();
        let differ = || tables.iter().map(|&table| self.at(table).cmp(&other.at(table)));
        self.estimate
            .cmp(&other.estimate)
            .then_with(|| differ().find(|order| order.is_ne()).unwrap_or(Ordering::Equal))
    }
}

impl PartialOrd for Change<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Change<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Change<'_> {}

fn is_one(plan: &Plan, table: usize) -> bool {
    plan.tables[table].gpus.len() == 1
}
