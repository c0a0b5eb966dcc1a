//! Independent branches: chains of ops that one op joins, and that share no other op on the way to it.

use std::cmp::Reverse;

use super::units::{LAUNCH, Units};

/// Minimum saving of a join that is worth its waits, in units of a launch.
const LEAST: f64 = 6.0;

/// Ops that run in sequence, parallel to those of other branches.
#[derive(Debug, Clone)]
pub(super) struct Branch {
    /// Places of its units.
    pub units: Vec<usize>,
    /// Its stream; 0 for the main stream.
    pub stream: u32,
}

/// Branches that meet in one unit, each with a stream, and the time saved by running them in parallel.
struct Join {
    branches: Vec<Branch>,
    saves: f64,
}

/// The branches of all joins that are worth it, on at most `streams` streams; a unit is in at most one of them.
pub(super) fn find(units: &Units<'_>, streams: usize) -> Vec<Branch> {
    let above = Ancestors::find(units);
    let joins = (0..units.passes.forward.len()).filter(|&at| units.needs[at].len() > 1);
    let mut joins: Vec<Join> = joins.filter_map(|at| join(units, &above, at, streams)).collect();
    // The largest saving first; of equal ones the first.
    joins.sort_by(|one, other| other.saves.total_cmp(&one.saves));
    let mut taken = vec![false; units.passes.forward.len()];
    let mut found = Vec::new();
    for join in joins {
        let all = || join.branches.iter().flat_map(|branch| &branch.units);
        if all().any(|&unit| taken[unit]) {
            continue;
        }
        all().for_each(|&unit| taken[unit] = true);
        found.extend(join.branches);
    }
    found
}

/// The branches that meet in a unit; `None` where they save too little.
fn join(units: &Units<'_>, above: &Ancestors, at: usize, streams: usize) -> Option<Join> {
    let needs = &units.needs[at];
    let mut reached = vec![0_u32; at];
    for &need in needs {
        above.each(need, |unit| reached[unit] += 1);
    }
    let mut weighed: Vec<(f64, Vec<usize>)> = Vec::new();
    for &need in needs {
        let mut own = Vec::new();
        above.each(need, |unit| {
            if reached[unit] == 1 && !above.stays[unit] {
                own.push(unit);
            }
        });
        let weight: f64 = own.iter().filter_map(|&unit| units.weights[unit]).sum();
        if weight > 0.0 {
            weighed.push((weight, own));
        }
    }
    weighed.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut loads = vec![0.0; streams];
    let mut branches = Vec::with_capacity(weighed.len());
    for (weight, units) in weighed {
        let least = (0..streams).min_by(|&one, &other| f64::total_cmp(&loads[one], &loads[other]))?;
        loads[least] += weight;
        branches.push(Branch { units, stream: least as u32 });
    }
    let saves = loads.iter().sum::<f64>() - loads.iter().copied().fold(0.0, f64::max);
    branches.sort_by_key(|branch| (branch.stream, Reverse(branch.units.len())));
    (saves >= LEAST * LAUNCH).then_some(Join { branches, saves })
}

/// For each unit, the set of all units that it depends on, directly or not, and itself: as bits.
struct Ancestors {
    rows: Vec<Vec<u64>>,
    /// Units that stay on the main stream: copies between host and device, and their dependencies.
    stays: Vec<bool>,
}

impl Ancestors {
    fn find(units: &Units<'_>) -> Ancestors {
        let mut rows: Vec<Vec<u64>> = Vec::with_capacity(units.passes.forward.len());
        for (at, needs) in units.needs.iter().enumerate() {
            let mut row = vec![0; at / 64 + 1];
            row[at / 64] |= 1 << (at % 64);
            for &need in needs {
                row.iter_mut().zip(&rows[need]).for_each(|(row, above)| *row |= above);
            }
            rows.push(row);
        }
        let mut above = Ancestors { rows, stays: vec![false; units.passes.forward.len()] };
        let mut stays = vec![false; units.passes.forward.len()];
        for at in (0..units.passes.forward.len()).filter(|&at| units.weights[at].is_none()) {
            above.each(at, |unit| stays[unit] = true);
        }
        above.stays = stays;
        above
    }

    fn each(&self, at: usize, mut unit: impl FnMut(usize)) {
        for (word, bits) in self.rows[at].iter().enumerate() {
            let mut left = *bits;
            while left != 0 {
                unit(word * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }
}
