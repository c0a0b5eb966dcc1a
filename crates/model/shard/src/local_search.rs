//! Local search: moves a table, exchanges two tables or changes the way of a table, as long as that makes the busiest
//! GPU less busy.

use steptime_trace::Nanos;

use crate::problem::{Problem, TablePlacement};
use crate::state::State;

/// Maximum number of changes, per table.
const MOST_ROUNDS: usize = 20;
/// Number of exchange partners tried for a table, on each other GPU.
const PARTNERS: usize = 8;

/// Changes a plan until no change makes it better.
pub(crate) fn improve(problem: &Problem, state: &mut State) {
    let most = MOST_ROUNDS.saturating_mul(problem.tables.len().max(8));
    for _ in 0..most {
        if !better(problem, state) {
            break;
        }
    }
}

/// Returns the score of a state: the time of the busiest GPU, then the number of GPUs that are as busy. Less is better.
fn score(problem: &Problem, state: &State) -> (Nanos, usize) {
    let worst = state.busiest(problem).1;
    (worst, state.loads.iter().filter(|load| problem.time(load) == worst).count())
}

/// Applies one change that makes the plan better; `false` if there is none.
fn better(problem: &Problem, state: &mut State) -> bool {
    let before = score(problem, state);
    let (gpu, _) = state.busiest(problem);
    let own = state.on(gpu);
    own.iter().any(|&table| moved(problem, state, table, before))
        || own.iter().any(|&table| exchanged(problem, state, gpu, table, before))
}

/// Moves a table to other GPUs or to another way, if that is better.
fn moved(problem: &Problem, state: &mut State, table: usize, before: (Nanos, usize)) -> bool {
    let Some(old) = state.lift(problem, table) else { return false };
    let ways = problem.tables[table].ways.iter().enumerate();
    let found = ways.filter_map(|(way, row)| {
        let (gpus, worst) = state.best(problem, row)?;
        Some((worst, TablePlacement { way, gpus }))
    });
    if let Some((_, placed)) = found.min_by_key(|(worst, placed)| (*worst, placed.way)) {
        state.place(problem, table, placed);
        if score(problem, state) < before {
            return true;
        }
        state.lift(problem, table);
    }
    state.place(problem, table, old);
    false
}

/// Exchanges a table of the busiest GPU with a table of another GPU, if that is better; both have one part.
fn exchanged(problem: &Problem, state: &mut State, gpu: usize, table: usize, before: (Nanos, usize)) -> bool {
    let is_one = |state: &State, table: usize| {
        state.placed[table].as_ref().is_some_and(|placed| placed.gpus.len() == 1)
    };
    if !is_one(state, table) {
        return false;
    }
    let own = part(problem, state, table);
    for other in (0..state.loads.len()).filter(|&other| other != gpu) {
        // Those just below it in time change the load of the other GPU least.
        let mut partners: Vec<usize> = state.on(other).into_iter().filter(|&at| is_one(state, at)).collect();
        partners.retain(|&at| part(problem, state, at) < own);
        partners.sort_by_key(|&at| std::cmp::Reverse(part(problem, state, at)));
        for partner in partners.into_iter().take(PARTNERS) {
            let (Some(a), Some(b)) = (state.lift(problem, table), state.lift(problem, partner)) else {
                return false;
            };
            state.place(problem, table, TablePlacement { gpus: b.gpus.clone(), ..a });
            state.place(problem, partner, TablePlacement { gpus: a.gpus.clone(), ..b });
            if problem.holds(&state.loads) && score(problem, state) < before {
                return true;
            }
            state.lift(problem, table);
            state.lift(problem, partner);
            state.place(problem, table, a);
            state.place(problem, partner, b);
        }
    }
    false
}

/// Returns the time of a table with one part.
fn part(problem: &Problem, state: &State, table: usize) -> Nanos {
    let Some(placed) = &state.placed[table] else { return Nanos::ZERO };
    problem.tables[table].ways[placed.way]
        .parts
        .first()
        .map_or(Nanos::ZERO, |part| part.host.max(part.device))
}
