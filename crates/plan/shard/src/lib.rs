//! Which part of which table lies on which GPU: a search over loads that others measured or predicted.
//!
//! ```text
//! Problem: tables, each with ways to lie ──search──> Plan: a way and GPUs for each table
//!                                        ──bound───> what no plan can be better than
//! ```
//!
//! A [`Problem`] says what each way of each table costs: host time, device time, memory, columns to exchange. In some ways the rows of a
//! table lie in the memory of its node's host, and its GPU holds some of them. The [`cost`](Problem::cost)
//! of a plan is that of its busiest GPU. [`search`] is greedy, then local; [`bound`] relaxes: tables may lie in any fractions; [`near`]
//! gives plans a change away, for whoever judges plans better than by loads. It knows neither models nor GPUs, and prices nothing.
//!
//! ```
//! use steptime_shard::{Load, Problem, Table, Way, bound, search};
//! use steptime_trace::{Bytes, Nanos};
//! let table = |us: i64| Table { ways: vec![Way::whole(Load { device: Nanos(1000 * us), ..Load::default() })] };
//! let problem = Problem {
//!     gpus: 2,
//!     memory: Bytes(1 << 30),
//!     tables: [5, 4, 3, 2].map(table).into(),
//!     ..Problem::default()
//! };
//! let plan = search(&problem)?;
//! assert_eq!(problem.cost(&plan), Nanos(7000));
//! assert!(bound(&problem).is_some_and(|bound| bound <= Nanos(7000)));
//! # Ok::<(), steptime_shard::DoesNotFit>(())
//! ```
#![forbid(unsafe_code)]

mod bound;
mod greedy;
mod local;
mod memory;
mod near;
mod problem;
mod state;

pub use bound::bound;
pub use memory::{DoesNotFit, On};
pub use near::near;
pub use problem::{Cut, Load, Placed, Plan, Problem, Table, Way};
use state::State;

/// Places all tables: the largest first, each where it makes the busiest GPU least busy, then by moves that make the busiest GPU less
/// busy until none does. The same is done from plans in which all tables lie in one manner; the best of these is the plan.
///
/// # Errors
/// Where memory does not hold the tables, in whatever way they lie.
pub fn search(problem: &Problem) -> Result<Plan, DoesNotFit> {
    let first = greedy::place(problem)?;
    let alike = problem.manners().into_iter().filter_map(|manner| greedy::place_as(problem, manner));
    let improved = std::iter::once(first).chain(alike).map(|mut state| {
        local::improve(problem, &mut state);
        state
    });
    let best = improved.min_by_key(|state| state.busiest(problem).1);
    Ok(best.map_or_else(Plan::default, State::plan))
}
