//! Partial plan, with the load of each GPU.

use steptime_trace::{Bytes, Nanos};

use crate::problem::{Cut, Load, Plan, Problem, TablePlacement, Way};

/// Tables placed so far.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// Load of each GPU.
    pub(crate) loads: Vec<Load>,
    /// Placement of each table; `None` if it is not placed yet.
    pub(crate) placed: Vec<Option<TablePlacement>>,
}

impl State {
    pub(crate) fn new(problem: &Problem) -> State {
        State { loads: vec![problem.base; problem.gpus as usize], placed: vec![None; problem.tables.len()] }
    }

    /// Returns the state of an existing plan.
    pub(crate) fn from_plan(problem: &Problem, plan: &Plan) -> State {
        let mut state = State::new(problem);
        for (table, placed) in plan.tables.iter().enumerate() {
            state.place(problem, table, placed.clone());
        }
        state
    }

    /// Removes a table and returns its placement.
    pub(crate) fn lift(&mut self, problem: &Problem, table: usize) -> Option<TablePlacement> {
        let placed = self.placed[table].take()?;
        self.change(&problem.tables[table].ways[placed.way], &placed.gpus, |load, part| *load -= part);
        Some(placed)
    }

    pub(crate) fn place(&mut self, problem: &Problem, table: usize, placed: TablePlacement) {
        self.change(&problem.tables[table].ways[placed.way], &placed.gpus, |load, part| *load += part);
        self.placed[table] = Some(placed);
    }

    fn change(&mut self, way: &Way, gpus: &[u32], by: impl Fn(&mut Load, Load)) {
        if way.each != Load::default() {
            self.loads.iter_mut().for_each(|load| by(load, way.each));
        }
        for (&gpu, part) in gpus.iter().zip(&way.parts) {
            by(&mut self.loads[gpu as usize], *part);
        }
    }

    /// Returns the GPUs, a different one for each part of a way, that keep the busiest GPU least busy, and the time of the busiest
    /// of them. `None` if memory does not hold the parts.
    pub(crate) fn best(&self, problem: &Problem, way: &Way) -> Option<(Vec<u32>, Nanos)> {
        let fits = |load: &Load| load.memory <= problem.memory;
        let loads: Vec<Load> = self.loads.iter().map(|load| *load + way.each).collect();
        if way.each != Load::default() && !problem.holds(&loads) {
            return None;
        }
        // Free memory of the hosts; not computed for ways that use none.
        let mut hosts = Hosts::new(problem, way, &loads);
        let mut gpus: Vec<u32> = Vec::with_capacity(way.parts.len());
        // The load on every GPU counts as far as it makes the busiest GPU busier.
        let mut worst = match way.each == Load::default() {
            true => Nanos::ZERO,
            false => loads.iter().map(|load| problem.time(load)).max().unwrap_or_default(),
        };
        if let Cut::Grid(_) = way.cut {
            let found = self.best_nodes(problem, way, &loads, &hosts)?;
            let time = |(&gpu, part): (&u32, &Load)| problem.time(&(loads[gpu as usize] + *part));
            let own = found.iter().zip(&way.parts).map(time).max();
            return Some((found, worst.max(own.unwrap_or_default())));
        }
        for part in &way.parts {
            let free = (0..problem.gpus).filter(|gpu| !gpus.contains(gpu));
            let free = free.filter(|&gpu| hosts.hold(gpu, part));
            let with = free.map(|gpu| (gpu, loads[gpu as usize] + *part)).filter(|(_, load)| fits(load));
            let (gpu, load) = with.min_by_key(|(gpu, load)| (problem.time(load), load.memory, *gpu))?;
            hosts.take(gpu, part);
            worst = worst.max(problem.time(&load));
            gpus.push(gpu);
        }
        Some((gpus, worst))
    }

    /// Returns the GPUs of the nodes that are least busy with one group of columns each.
    fn best_nodes(&self, problem: &Problem, way: &Way, loads: &[Load], hosts: &Hosts) -> Option<Vec<u32>> {
        let node = problem.node.max(1);
        let mut found: Vec<u32> = Vec::with_capacity(way.parts.len());
        for parts in way.parts.chunks(node as usize) {
            let free = (0..problem.gpus / node).filter(|own| !found.contains(&(own * node)));
            let all: Load = parts.iter().copied().sum();
            let free = free.filter(|own| hosts.hold(own * node, &all));
            let with = free.filter_map(|own| {
                let with = |(gpu, part): (u32, &Load)| loads[gpu as usize] + *part;
                let loads: Vec<Load> = (own * node..).zip(parts).map(with).collect();
                let fits = loads.iter().all(|load| load.memory <= problem.memory);
                fits.then(|| (loads.iter().map(|load| problem.time(load)).max(), own))
            });
            let (_, own) = with.min()?;
            found.extend((own * node..).take(parts.len()));
        }
        Some(found)
    }

    /// Returns the busiest GPU and its busy time.
    pub(crate) fn busiest(&self, problem: &Problem) -> (usize, Nanos) {
        let times = self.loads.iter().map(|load| problem.time(load)).enumerate();
        times.max_by_key(|&(gpu, time)| (time, std::cmp::Reverse(gpu))).unwrap_or_default()
    }

    /// Returns the tables that have a part on a GPU.
    pub(crate) fn on(&self, gpu: usize) -> Vec<usize> {
        let has = |placed: &TablePlacement| placed.gpus.iter().any(|&own| own as usize == gpu);
        let all = self.placed.iter().enumerate();
        all.filter(|(_, placed)| placed.as_ref().is_some_and(has)).map(|(table, _)| table).collect()
    }

    /// Returns the plan; every table must be placed.
    pub(crate) fn plan(self) -> Plan {
        Plan { tables: self.placed.into_iter().flatten().collect() }
    }
}

/// Free memory of the nodes' hosts while the parts of a way are placed.
struct Hosts {
    /// Free bytes of each node's host; empty if the way uses none.
    left: Vec<u64>,
    node: u32,
}

impl Hosts {
    fn new(problem: &Problem, way: &Way, loads: &[Load]) -> Hosts {
        let takes = way.parts.iter().any(|part| part.host_memory.0 > 0);
        let left = |taken: &Bytes| problem.host_memory.0.saturating_sub(taken.0);
        let left = if takes { problem.hosts(loads).iter().map(left).collect() } else { Vec::new() };
        Hosts { left, node: problem.on_a_host() }
    }

    /// Whether the host of a GPU has room for a part on it.
    fn hold(&self, gpu: u32, part: &Load) -> bool {
        self.left.get((gpu / self.node) as usize).is_none_or(|left| part.host_memory.0 <= *left)
    }

    /// Subtracts the memory of a part on a GPU.
    fn take(&mut self, gpu: u32, part: &Load) {
        if let Some(left) = self.left.get_mut((gpu / self.node) as usize) {
            *left = left.saturating_sub(part.host_memory.0);
        }
    }
}
