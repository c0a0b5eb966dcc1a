//! Making a plan better: one table is moved, or changes places with another, or lies in another way, as long as that makes the busiest
//! GPU less busy.

use steptime_trace::Nanos;

use crate::problem::{Placed, Problem};
use crate::state::State;

/// The most changes tried, times the tables.
const MOST_ROUNDS: usize = 20;
/// Tables of other GPUs that one is tried to change places with, of each GPU.
const PARTNERS: usize = 8;

/// Changes a plan until nothing makes it better.
pub(crate) fn improve(problem: &Problem, state: &mut State) {
    let most = MOST_ROUNDS.saturating_mul(problem.tables.len().max(8));
    for _ in 0..most {
        if !better(problem, state) {
            break;
        }
    }
}

/// How good a state is: the busiest GPU first, then how many are as busy.
fn score(problem: &Problem, state: &State) -> (Nanos, usize) {
    let worst = state.busiest(problem).1;
    (worst, state.loads.iter().filter(|load| problem.time(load) == worst).count())
}

/// One change that makes it better; `false` where there is none.
fn better(problem: &Problem, state: &mut State) -> bool {
    let before = score(problem, state);
    let (gpu, _) = state.busiest(problem);
    let own = state.on(gpu);
    own.iter().any(|&table| moved(problem, state, table, before))
        || own.iter().any(|&table| exchanged(problem, state, gpu, table, before))
}

/// A table elsewhere, or in another way.
fn moved(problem: &Problem, state: &mut State, table: usize, before: (Nanos, usize)) -> bool {
    let Some(old) = state.lift(problem, table) else { return false };
    let ways = problem.tables[table].ways.iter().enumerate();
    let found = ways.filter_map(|(way, row)| {
        let (gpus, worst) = state.best(problem, row)?;
        Some((worst, Placed { way, gpus }))
    });
    if let Some((_, placed)) = found.min_by_key(|(worst, placed)| (*worst, placed.way)) {
        state.lay(problem, table, placed);
        if score(problem, state) < before {
            return true;
        }
        state.lift(problem, table);
    }
    state.lay(problem, table, old);
    false
}

/// A table of the busiest GPU and one of another change places, both of one part.
fn exchanged(problem: &Problem, state: &mut State, gpu: usize, table: usize, before: (Nanos, usize)) -> bool {
    let is_one = |state: &State, table: usize| {
        state.placed[table].as_ref().is_some_and(|placed| placed.gpus.len() == 1)
    };
    if !is_one(state, table) {
        return false;
    }
    let own = part(problem, state, table);
    for other in (0..state.loads.len()).filter(|&other| other != gpu) {
        // Those nearest below it in time: they make the least difference to the other GPU.
        let mut partners: Vec<usize> = state.on(other).into_iter().filter(|&at| is_one(state, at)).collect();
        partners.retain(|&at| part(problem, state, at) < own);
        partners.sort_by_key(|&at| std::cmp::Reverse(part(problem, state, at)));
        for partner in partners.into_iter().take(PARTNERS) {
            let (Some(a), Some(b)) = (state.lift(problem, table), state.lift(problem, partner)) else {
                return false;
            };
            state.lay(problem, table, Placed { gpus: b.gpus.clone(), ..a });
            state.lay(problem, partner, Placed { gpus: a.gpus.clone(), ..b });
            if problem.holds(&state.loads) && score(problem, state) < before {
                return true;
            }
            state.lift(problem, table);
            state.lift(problem, partner);
            state.lay(problem, table, a);
            state.lay(problem, partner, b);
        }
    }
    false
}

/// The time of a table of one part.
fn part(problem: &Problem, state: &State, table: usize) -> Nanos {
    let Some(placed) = &state.placed[table] else { return Nanos::ZERO };
    problem.tables[table].ways[placed.way]
        .parts
        .first()
        .map_or(Nanos::ZERO, |part| part.host.max(part.device))
}
