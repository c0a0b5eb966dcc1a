//! Groups of rows that are too similar to be on both sides of a test.

use std::hash::{BuildHasher, Hash, Hasher};

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use steptime_aten::KernelCall;

use crate::device::observation::Observation;

/// Largest share of all cases in a group of cases that share a kernel: small kernels that many cases launch would join
/// all cases into one.
const LARGEST: f64 = 0.02;
/// Size up to which groups may always form.
const SMALL: usize = 8;

/// Hash of the kernel of a call with all sizes, and its type. Equal for equal ones.
fn signature(call: &KernelCall) -> u64 {
    let mut state = FxBuildHasher.build_hasher();
    call.kernel.hash(&mut state);
    call.dtype.hash(&mut state);
    state.finish()
}

/// Returns the group of every row, to be held out together: the rows of one case, and those of all cases that run the same
/// kernel at the same sizes. A kernel that too many cases run is a group of its own.
pub fn groups(observations: &[&Observation]) -> Vec<u32> {
    let mut cases: FxHashMap<u32, usize> = FxHashMap::default();
    let mut cases_of: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
    let mut rows = Vec::with_capacity(observations.len());
    for row in observations {
        let next = cases.len();
        let case = *cases.entry(row.case).or_insert(next);
        let signature = signature(&row.call);
        let having = cases_of.entry(signature).or_default();
        if having.last() != Some(&case) {
            having.push(case);
        }
        rows.push((case, signature));
    }
    let most = ((cases.len() as f64 * LARGEST) as usize).max(SMALL);
    let mut sets = Sets::new(cases.len());
    // Rare kernels first: their connections are the most informative.
    let mut ties: Vec<(usize, u64)> =
        cases_of.iter().map(|(&signature, cases)| (cases.len(), signature)).collect();
    ties.sort_unstable();
    let mut apart: FxHashMap<u64, u32> = FxHashMap::default();
    for (_, signature) in ties {
        if !sets.join(&cases_of[&signature], most) {
            let next = (cases.len() + apart.len()) as u32;
            apart.insert(signature, next);
        }
    }
    let group = |&(case, signature): &(usize, u64)| {
        apart.get(&signature).copied().unwrap_or_else(|| sets.root(case) as u32)
    };
    rows.iter().map(group).collect()
}

/// Returns the observations without the kernels of the given calls at their sizes.
///
/// The test calls of a profile must not be in its fit. Kernels without significant sizes, of a single thread block
/// or less, are not left out: they have nothing to memorise.
#[must_use]
pub fn without<'a>(
    observations: Vec<Observation>,
    scored: impl Iterator<Item = &'a KernelCall>,
) -> Vec<Observation> {
    let scored: FxHashSet<u64> = scored.filter(|call| call.footprint() > TRIVIAL).map(signature).collect();
    observations.into_iter().filter(|row| !scored.contains(&signature(&row.call))).collect()
}

/// Bytes touched by a kernel too small to be memorised.
const TRIVIAL: u64 = 16 << 10;

/// Disjoint sets, with their sizes.
struct Sets {
    parent: Vec<usize>,
    size: Vec<usize>,
}

impl Sets {
    fn new(count: usize) -> Sets {
        Sets { parent: (0..count).collect(), size: vec![1; count] }
    }

    fn root(&self, mut at: usize) -> usize {
        while self.parent[at] != at {
            at = self.parent[at];
        }
        at
    }

    /// Joins all of them, unless more than `most` would come together. Returns whether they are now together.
    fn join(&mut self, members: &[usize], most: usize) -> bool {
        let mut roots: Vec<usize> = members.iter().map(|&member| self.root(member)).collect();
        roots.sort_unstable();
        roots.dedup();
        let total: usize = roots.iter().map(|&root| self.size[root]).sum();
        if roots.len() > 1 && total > most {
            return false;
        }
        let Some(&into) = roots.iter().max_by_key(|&&root| self.size[root]) else { return true };
        for root in roots {
            self.parent[root] = into;
        }
        self.size[into] = total;
        true
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;
    use steptime_aten::kernel::{Loss, Pass};
    use steptime_aten::{Dtype, Kernel, Operand, Role, Slot};
    use steptime_trace::Nanos;

    use super::*;
    use crate::device::context::Context;

    fn row(case: u32, rows: u64) -> Observation {
        let kernel = Kernel::Loss(Loss { pass: Pass::Forward, rows, classes: 7, spatial: 1 });
        let operands = smallvec![Operand { slot: Slot::Scratch, role: Role::Read, bytes: rows * 28 }];
        let call = KernelCall { kernel, dtype: Dtype::F32, operands, flops: 0, launches: 1 };
        let ctx = Context::cold(&call);
        Observation { case, op: "aten::nll_loss_forward".into(), call, ctx, time: Nanos(1_000) }
    }

    #[test]
    fn twins_of_other_cases_are_held_out_together() {
        let all: Vec<Observation> = [(0, 64), (0, 128), (1, 256), (2, 128), (3, 512), (4, 1024)]
            .map(|(case, rows)| row(case, rows))
            .into();
        let groups = groups(&all.iter().collect::<Vec<_>>());
        assert_eq!(groups[0], groups[1], "one case");
        assert_eq!(groups[1], groups[3], "one kernel");
        assert_ne!(groups[0], groups[2]);
        assert_ne!(groups[4], groups[5]);
    }

    #[test]
    fn a_kernel_of_all_cases_ties_nothing_but_itself() {
        let all: Vec<Observation> =
            (0..100).flat_map(|case| [row(case, 64), row(case, 1000 + u64::from(case))]).collect();
        let groups = groups(&all.iter().collect::<Vec<_>>());
        let first: Vec<u32> = groups.iter().copied().step_by(2).collect();
        assert!(first.iter().all(|group| *group == first[0]), "equal kernels are in one group");
        let mut others: Vec<u32> = groups.iter().copied().skip(1).step_by(2).collect();
        others.sort_unstable();
        others.dedup();
        assert_eq!(others.len(), 100, "and tie no cases");
    }

    #[test]
    fn scored_kernels_are_left_out_and_trivial_ones_are_not() {
        let scored = [row(9, 4096), row(9, 2)];
        let kept = without(vec![row(0, 4096), row(1, 4097), row(2, 2)], scored.iter().map(|row| &row.call));
        assert_eq!(kept.iter().map(|row| row.case).collect::<Vec<_>>(), [1, 2]);
    }
}
