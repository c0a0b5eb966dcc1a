//! First plans: the largest tables first, each in the way with the least load over all GPUs that keeps its GPU below the average; or
//! all tables in one manner, if memory has room for that.

use steptime_trace::{Bytes, Nanos};

use crate::memory::{DoesNotFit, ScarceMemory};
use crate::problem::{Cut, Load, Problem, TablePlacement, Way};
use crate::state::State;

pub(crate) fn place(problem: &Problem) -> Result<State, DoesNotFit> {
    let mut state = State::new(problem);
    let mut order = largest_first(problem);
    let target = average(problem);
    if !order.iter().all(|&table| lay_best(problem, &mut state, table, target)) {
        // The largest in memory first, so that the remaining ones are small.
        state = State::new(problem);
        order.sort_by_key(|&table| {
            let least = problem.tables[table].ways.iter().map(|way| total(problem, way).memory).min();
            std::cmp::Reverse(least.unwrap_or(Bytes(0)))
        });
        for &table in &order {
            if !lay_best(problem, &mut state, table, target) {
                return Err(too_large(problem, &state, table));
            }
        }
    }
    Ok(state)
}

/// Places all tables in one manner (a cut, with or without a cache) if they have such a way and it fits; the other tables as in
/// [`place`]. `None` if they do not fit.
///
/// Moves of single tables do not lead from one manner to another if each table alone costs the same in both.
pub(crate) fn place_as(problem: &Problem, manner: (Cut, bool)) -> Option<State> {
    let mut state = State::new(problem);
    let target = average(problem);
    for table in largest_first(problem) {
        let ways = &problem.tables[table].ways;
        let own = ways.iter().position(|way| way.manner() == manner);
        match own.and_then(|way| Some((way, state.best(problem, &ways[way])?))) {
            Some((way, (gpus, _))) => state.place(problem, table, TablePlacement { way, gpus }),
            None if lay_best(problem, &mut state, table, target) => {}
            None => return None,
        }
    }
    Some(state)
}

/// Returns the tables by the load of their cheapest way, largest first: by time, then by memory.
fn largest_first(problem: &Problem) -> Vec<usize> {
    let mut order: Vec<usize> = (0..problem.tables.len()).collect();
    order.sort_by_cached_key(|&table| {
        let least = problem.tables[table].ways.iter().map(|way| weight(problem, way)).min();
        std::cmp::Reverse(least.unwrap_or_default())
    });
    order
}

/// Returns the average busy time of the GPUs, with each table in its cheapest way.
fn average(problem: &Problem) -> Nanos {
    let least = |table: &crate::Table| table.ways.iter().map(|way| weight(problem, way).0).min();
    let sum: Nanos = problem.tables.iter().filter_map(least).sum();
    problem.time(&problem.base) + sum / i64::from(problem.gpus.max(1))
}

/// Places a table in the way with the least load over all GPUs, among those that keep every GPU below the target; if there is none, in the
/// way that keeps the busiest GPU least busy.
fn lay_best(problem: &Problem, state: &mut State, table: usize, target: Nanos) -> bool {
    let ways = problem.tables[table].ways.iter().enumerate();
    let found = ways.filter_map(|(at, way)| {
        let (gpus, worst) = state.best(problem, way)?;
        Some((worst.max(target), weight(problem, way), at, gpus))
    });
    let Some((_, _, way, gpus)) = found.min_by_key(|(worst, weight, at, _)| (*worst, *weight, *at)) else {
        return false;
    };
    state.place(problem, table, TablePlacement { way, gpus });
    true
}

/// Returns the load of a way, summed over all GPUs.
fn total(problem: &Problem, way: &Way) -> Load {
    let each = (0..problem.gpus).map(|_| way.each).sum::<Load>();
    way.parts.iter().copied().sum::<Load>() + each
}

/// Returns the time of a way over all GPUs, then its memory.
fn weight(problem: &Problem, way: &Way) -> (Nanos, Bytes) {
    let load = total(problem, way);
    (problem.time(&load), load.memory)
}

/// Returns the reason why a table does not fit: its smallest part is too large for a GPU, or its part in host memory is too large for the host.
fn too_large(problem: &Problem, state: &State, table: usize) -> DoesNotFit {
    let ways = &problem.tables[table].ways;
    let smallest = |way: &Way| way.parts.iter().map(|part| part.memory).max().unwrap_or(way.each.memory);
    let taken = state.loads.iter().map(|load| load.memory.0).min().unwrap_or(0);
    let left = Bytes(problem.memory.0.saturating_sub(taken));
    // If a cache of its rows fits on a GPU, the memory of the host is too small.
    let cached = ways.iter().filter(|way| way.cached.is_some() && smallest(way) <= left);
    if let Some(way) = cached.min_by_key(|way| host_memory(problem, way)) {
        let taken = problem.hosts(&state.loads).into_iter().min().unwrap_or_default();
        let left = Bytes(problem.host_memory.0.saturating_sub(taken.0));
        let (cut, needs) = (way.cut.to_string(), host_memory(problem, way));
        return DoesNotFit { table, cut, on: ScarceMemory::Host, needs, left, of: problem.host_memory };
    }
    let Some(way) = ways.iter().min_by_key(|way| smallest(way)) else {
        let needs = Bytes(0);
        return DoesNotFit {
            table,
            cut: Cut::Whole.to_string(),
            on: ScarceMemory::Gpu,
            needs,
            left,
            of: problem.memory,
        };
    };
    let on = match way.cached {
        Some(_) => ScarceMemory::Cache,
        None if problem.host_memory.0 > 0 => ScarceMemory::Uncached,
        None => ScarceMemory::Gpu,
    };
    DoesNotFit { table, cut: way.cut.to_string(), on, needs: smallest(way), left, of: problem.memory }
}

/// Returns the memory that a way needs on the host of a node, with its parts divided evenly among nodes.
fn host_memory(problem: &Problem, way: &Way) -> Bytes {
    let node = problem.on_a_host();
    let nodes = problem.gpus.max(1).div_ceil(node) as usize;
    let together = match way.cut {
        // Parts of a group are on the same node.
        Cut::Grid(groups) => (groups as usize).div_ceil(nodes) * node as usize,
        _ => way.parts.len().div_ceil(nodes),
    };
    let largest = way.parts.iter().map(|part| part.host_memory.0).max().unwrap_or(0);
    Bytes(largest * together as u64 + way.each.host_memory.0 * u64::from(node))
}
