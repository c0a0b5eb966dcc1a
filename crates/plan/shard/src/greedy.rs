//! First plans: the largest tables first, each in the way that asks least of all GPUs together and keeps its GPU below the average; or
//! all in one way, where that has room.

use steptime_trace::{Bytes, Nanos};

use crate::memory::{DoesNotFit, On};
use crate::problem::{Cut, Load, Placed, Problem, Way};
use crate::state::State;

/// Places all tables.
pub(crate) fn place(problem: &Problem) -> Result<State, DoesNotFit> {
    let mut state = State::new(problem);
    let mut order = largest_first(problem);
    let target = average(problem);
    if !order.iter().all(|&table| lay_best(problem, &mut state, table, target)) {
        // What is large in memory first: what is left over is small.
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

/// Places all tables in one manner, cut so and behind caches or not, those that may lie so and find room; others as [`place`] does. `None` where that has no room.
///
/// Moves of one table do not lead from one manner to another where each table alone is as well off in either.
pub(crate) fn place_as(problem: &Problem, manner: (Cut, bool)) -> Option<State> {
    let mut state = State::new(problem);
    let target = average(problem);
    for table in largest_first(problem) {
        let ways = &problem.tables[table].ways;
        let own = ways.iter().position(|way| way.manner() == manner);
        match own.and_then(|way| Some((way, state.best(problem, &ways[way])?))) {
            Some((way, (gpus, _))) => state.lay(problem, table, Placed { way, gpus }),
            None if lay_best(problem, &mut state, table, target) => {}
            None => return None,
        }
    }
    Some(state)
}

/// Tables by what the cheapest way of each asks for: time, and where that is equal memory.
fn largest_first(problem: &Problem) -> Vec<usize> {
    let mut order: Vec<usize> = (0..problem.tables.len()).collect();
    order.sort_by_cached_key(|&table| {
        let least = problem.tables[table].ways.iter().map(|way| weight(problem, way)).min();
        std::cmp::Reverse(least.unwrap_or_default())
    });
    order
}

/// How busy each GPU would be if all were as busy, and each table lay in the way that asks least.
fn average(problem: &Problem) -> Nanos {
    let least = |table: &crate::Table| table.ways.iter().map(|way| weight(problem, way).0).min();
    let sum: Nanos = problem.tables.iter().filter_map(least).sum();
    problem.time(&problem.base) + sum / i64::from(problem.gpus.max(1))
}

/// Lays a table down: in the way that asks least of all GPUs together, of those that keep every GPU below the target; where none
/// does, so that the busiest GPU is least busy.
fn lay_best(problem: &Problem, state: &mut State, table: usize, target: Nanos) -> bool {
    let ways = problem.tables[table].ways.iter().enumerate();
    let found = ways.filter_map(|(at, way)| {
        let (gpus, worst) = state.best(problem, way)?;
        Some((worst.max(target), weight(problem, way), at, gpus))
    });
    let Some((_, _, way, gpus)) = found.min_by_key(|(worst, weight, at, _)| (*worst, *weight, *at)) else {
        return false;
    };
    state.lay(problem, table, Placed { way, gpus });
    true
}

/// What a way asks of all GPUs together.
fn total(problem: &Problem, way: &Way) -> Load {
    let each = (0..problem.gpus).map(|_| way.each).sum::<Load>();
    way.parts.iter().copied().sum::<Load>() + each
}

/// The time of that, then its memory.
fn weight(problem: &Problem, way: &Way) -> (Nanos, Bytes) {
    let load = total(problem, way);
    (problem.time(&load), load.memory)
}

/// Why a table finds no room: its smallest part is too large for a GPU, or what of it would lie in a host's memory for that.
fn too_large(problem: &Problem, state: &State, table: usize) -> DoesNotFit {
    let ways = &problem.tables[table].ways;
    let smallest = |way: &Way| way.parts.iter().map(|part| part.memory).max().unwrap_or(way.each.memory);
    let taken = state.loads.iter().map(|load| load.memory.0).min().unwrap_or(0);
    let left = Bytes(problem.memory.0.saturating_sub(taken));
    // Where a cache of its rows has room on a GPU, that of the host is what is too small.
    let cached = ways.iter().filter(|way| way.cached.is_some() && smallest(way) <= left);
    if let Some(way) = cached.min_by_key(|way| of_a_host(problem, way)) {
        let taken = problem.hosts(&state.loads).into_iter().min().unwrap_or_default();
        let left = Bytes(problem.host_memory.0.saturating_sub(taken.0));
        let (cut, needs) = (way.cut.to_string(), of_a_host(problem, way));
        return DoesNotFit { table, cut, on: On::Host, needs, left, of: problem.host_memory };
    }
    let Some(way) = ways.iter().min_by_key(|way| smallest(way)) else {
        let needs = Bytes(0);
        return DoesNotFit {
            table,
            cut: Cut::Whole.to_string(),
            on: On::Gpu,
            needs,
            left,
            of: problem.memory,
        };
    };
    let on = match way.cached {
        Some(_) => On::Cache,
        None if problem.host_memory.0 > 0 => On::Uncached,
        None => On::Gpu,
    };
    DoesNotFit { table, cut: way.cut.to_string(), on, needs: smallest(way), left, of: problem.memory }
}

/// What a way takes of the memory of a node's host, its parts dealt to nodes evenly.
fn of_a_host(problem: &Problem, way: &Way) -> Bytes {
    let node = problem.on_a_host();
    let nodes = problem.gpus.max(1).div_ceil(node) as usize;
    let together = match way.cut {
        // Parts of a group lie on a node together.
        Cut::Grid(groups) => (groups as usize).div_ceil(nodes) * node as usize,
        _ => way.parts.len().div_ceil(nodes),
    };
    let largest = way.parts.iter().map(|part| part.host_memory.0).max().unwrap_or(0);
    Bytes(largest * together as u64 + way.each.host_memory.0 * u64::from(node))
}
