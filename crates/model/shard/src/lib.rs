//! Placement of embedding tables on GPUs: a search over measured or predicted loads.
//!
//! ```text
//! Problem: tables, each with ways to place it ──search──> Plan: a way and GPUs for each table
//!                                             ──bound───> lower bound of the cost of all plans
//! ```
//!
//! A [`Problem`] has the load of each way of each table: host time, device time, memory, columns to exchange. In some ways the rows of a
//! table are in the memory of its node's host, and its GPU caches some of them. The [`cost`](Problem::cost)
//! of a plan is that of its busiest GPU. [`search`] is greedy, then local; [`bound`] relaxes: tables may be split into any fractions; [`neighbours`]
//! returns plans that differ by one change, for callers with a better cost than the sum of loads. The crate has no models of GPUs or kernels.
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

mod greedy;
mod local_search;
mod lower_bound;
mod memory;
mod neighbours;
mod problem;
mod state;

pub use lower_bound::bound;
pub use memory::{DoesNotFit, ScarceMemory};
pub use neighbours::neighbours;
pub use problem::{Cut, Load, Plan, Problem, Table, TablePlacement, Way};
use state::State;

/// Places all tables: the largest first, each where it keeps the busiest GPU least busy, then by moves that make the busiest GPU less
/// busy until none does. Repeats this from plans in which all tables are placed in the same manner; returns the best plan.
///
/// # Errors
/// If memory does not hold the tables, in any of their ways.
pub fn search(problem: &Problem) -> Result<Plan, DoesNotFit> {
    let first = greedy::place(problem)?;
    let alike = problem.manners().into_iter().filter_map(|manner| greedy::place_as(problem, manner));
    let improved = std::iter::once(first).chain(alike).map(|mut state| {
        local_search::improve(problem, &mut state);
        state
    });
    let best = improved.min_by_key(|state| state.busiest(problem).1);
    Ok(best.map_or_else(Plan::default, State::plan))
}
