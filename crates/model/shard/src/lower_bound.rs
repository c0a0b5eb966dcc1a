//! Lower bound of the cost of all plans: tables may be split into any fractions of their ways, over fractions of GPUs.

use microlp::{ComparisonOp, OptimizationDirection, Problem as Linear, SolveOutcome, Variable};
use steptime_trace::{Bytes, Nanos};

use crate::problem::{Load, Problem};

/// Returns the minimum of the linear relaxation, over all GPUs together; `None` if the solver finds none, for example because memory does not hold
/// the tables.
///
/// No plan costs less: the busiest GPU of a plan costs at least the average over GPUs, and each table is placed in some way, whose largest
/// part is on some GPU.
#[must_use]
pub fn bound(problem: &Problem) -> Option<Nanos> {
    let gpus = f64::from(problem.gpus.max(1));
    let mut linear = Linear::new(OptimizationDirection::Minimize);
    let us = |time: Nanos| time.0 as f64 / 1e3;
    let step = linear.add_var(1.0, (us(problem.time(&problem.base)), f64::INFINITY));
    let exchange = us(problem.exchange);
    let gib = |bytes: Bytes| bytes.0 as f64 / f64::from(1 << 30);
    // Sums over all GPUs: of host and exchange time, of device and exchange time, of GPU memory, of host memory.
    let mut sums: [Vec<(Variable, f64)>; 4] =
        [vec![(step, -gpus)], vec![(step, -gpus)], Vec::new(), Vec::new()];
    for table in &problem.tables {
        let mut chosen = Vec::with_capacity(table.ways.len());
        let mut largest = vec![(step, -1.0)];
        for way in &table.ways {
            let share = linear.add_var(0.0, (0.0, 1.0));
            chosen.push((share, 1.0));
            let parts: Load = way.parts.iter().copied().sum();
            let of = |part: fn(&Load) -> f64| part(&parts) + gpus * part(&way.each);
            let moved = exchange * of(|load| load.columns as f64);
            sums[0].push((share, of(|load| load.host.0 as f64 / 1e3) + moved));
            sums[1].push((share, of(|load| load.device.0 as f64 / 1e3) + moved));
            sums[2].push((share, of(|load| load.memory.0 as f64 / f64::from(1 << 20))));
            if way.cached.is_some() {
                sums[3].push((share, gib(parts.host_memory) + gpus * gib(way.each.host_memory)));
            }
            let alone = way.parts.iter().map(|part| problem.time(&(*part + way.each + problem.base))).max();
            largest.push((share, us(alone.unwrap_or_default())));
        }
        linear.add_constraint(chosen, ComparisonOp::Eq, 1.0);
        linear.add_constraint(largest, ComparisonOp::Le, 0.0);
    }
    let base = problem.base;
    let fixed = exchange * base.columns as f64;
    let [host, device, memory, of_hosts] = sums;
    linear.add_constraint(host, ComparisonOp::Le, -gpus * (us(base.host) + fixed));
    linear.add_constraint(device, ComparisonOp::Le, -gpus * (us(base.device) + fixed));
    let left = problem.memory.0.saturating_sub(base.memory.0) as f64 / f64::from(1 << 20);
    if !memory.is_empty() {
        linear.add_constraint(memory, ComparisonOp::Le, gpus * left);
    }
    if !of_hosts.is_empty() {
        let nodes = f64::from(problem.gpus.max(1).div_ceil(problem.on_a_host()));
        linear.add_constraint(of_hosts, ComparisonOp::Le, nodes * gib(problem.host_memory));
    }
    match linear.solve().ok()? {
        SolveOutcome::Solution(best) => Some(Nanos::from_micros_f64(best.objective())),
        SolveOutcome::Interrupted(_) => None,
    }
}
