//! Plans that are a change away from another.

use steptime_trace::Nanos;

use crate::problem::{Cut, Load, Placed, Plan, Problem};
use crate::state::State;

/// Plans that differ from this one by a table that lies elsewhere or in another way, or by two tables that change places; the most
/// promising first.
///
/// `busy` is how long each GPU is busy with the plan, as somebody knows better than the sum of loads: measured, or simulated. A change
/// adds its loads to that. Tables are taken from the busiest GPU, and memory holds all plans.
#[must_use]
pub fn near(problem: &Problem, plan: &Plan, busy: &[Nanos]) -> Vec<Plan> {
    let state = State::of(problem, plan);
    let own = busy.iter().enumerate().max_by_key(|&(gpu, time)| (*time, std::cmp::Reverse(gpu)));
    let Some((own, _)) = own else { return Vec::new() };
    let own = own as u32;
    let mut found: Vec<((Nanos, Nanos), Plan)> = Vec::new();
    let mut add = |changed: Plan| {
        if changed != *plan
            && let Some(estimate) = estimate(problem, &state.loads, busy, &changed)
        {
            found.push((estimate, changed));
        }
    };
    for table in state.on(own as usize) {
        let placed = &plan.tables[table];
        // Parts of a grid lie on a node together.
        let moves = !matches!(problem.tables[table].ways[placed.way].cut, Cut::Grid(_));
        for gpu in (0..problem.gpus).filter(|gpu| moves && !placed.gpus.contains(gpu)) {
            let gpus = placed.gpus.iter().map(|&at| if at == own { gpu } else { at }).collect();
            add(with(plan, [(table, Placed { gpus, ..placed.clone() })]));
        }
        for partner in (0..plan.tables.len()).filter(|&at| is_one(plan, at) && is_one(plan, table)) {
            let (a, b) = (placed, &plan.tables[partner]);
            add(with(
                plan,
                [
                    (table, Placed { way: a.way, gpus: b.gpus.clone() }),
                    (partner, Placed { way: b.way, gpus: a.gpus.clone() }),
                ],
            ));
        }
        let mut lifted = state.clone();
        lifted.lift(problem, table);
        for (way, row) in problem.tables[table].ways.iter().enumerate().filter(|(way, _)| *way != placed.way)
        {
            if let Some((gpus, _)) = lifted.best(problem, row) {
                add(with(plan, [(table, Placed { way, gpus })]));
            }
        }
    }
    found.sort_by(|(a, plan), (b, other)| a.cmp(b).then_with(|| key(plan).cmp(&key(other))));
    found.dedup_by(|(_, plan), (_, other)| plan == other);
    found.into_iter().map(|(_, plan)| plan).collect()
}

/// The plan with other places for some tables.
fn with<const N: usize>(plan: &Plan, changes: [(usize, Placed); N]) -> Plan {
    let mut plan = plan.clone();
    for (table, placed) in changes {
        plan.tables[table] = placed;
    }
    plan
}

/// Whether a table lies on one GPU.
fn is_one(plan: &Plan, table: usize) -> bool {
    plan.tables[table].gpus.len() == 1
}

/// What tells plans apart, to have an order.
fn key(plan: &Plan) -> Vec<(usize, &[u32])> {
    plan.tables.iter().map(|placed| (placed.way, &placed.gpus[..])).collect()
}

/// How long the busiest GPU would be busy, and all together; `None` where memory does not hold the tables.
fn estimate(problem: &Problem, before: &[Load], busy: &[Nanos], plan: &Plan) -> Option<(Nanos, Nanos)> {
    let loads = problem.loads(plan);
    if !problem.holds(&loads) {
        return None;
    }
    let all = loads.iter().zip(before).zip(busy);
    let times: Vec<Nanos> =
        all.map(|((load, old), busy)| *busy + problem.time(load) - problem.time(old)).collect();
    Some((times.iter().copied().max()?, times.iter().copied().sum()))
}
