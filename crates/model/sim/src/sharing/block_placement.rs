//! Placement of blocks on multiprocessors.

use steptime_cost::Demand;

/// Multiprocessors with the same blocks on them.
#[derive(Debug, Clone)]
struct Group {
    /// Number of multiprocessors: fractional while blocks come and go.
    count: f64,
    /// Free shares of the multiprocessor's resources.
    free: [f64; 4],
    /// Kernels with blocks on each of them, and the number of these blocks.
    blocks: Vec<(usize, f64)>,
}

/// The multiprocessors of a GPU, and the blocks on them.
#[derive(Debug)]
pub(super) struct Room {
    groups: Vec<Group>,
}

impl Room {
    /// Creates the room of free multiprocessors.
    pub fn new(multiprocessors: f64) -> Room {
        Room { groups: vec![Group { count: multiprocessors, free: [1.0; 4], blocks: Vec::new() }] }
    }

    /// Places up to `blocks` blocks of a kernel, each at the place with most room; returns the number of placed blocks.
    pub fn place(&mut self, kernel: usize, demand: &Demand, blocks: f64) -> f64 {
        let mut left = blocks;
        while left > 1e-6 {
            let free = |group: &Group| group.free.iter().copied().fold(1.0, f64::min);
            let fits = |group: &Group| {
                group.free.iter().zip(&demand.block).all(|(free, asked)| *free + 1e-9 >= *asked)
            };
            let candidates = (0..self.groups.len()).filter(|&at| fits(&self.groups[at]));
            let most = candidates
                .reduce(|best, at| if free(&self.groups[at]) > free(&self.groups[best]) { at } else { best });
            let Some(most) = most else { break };
            let taken = self.groups[most].count.min(left);
            if taken < self.groups[most].count - 1e-6 {
                let mut rest = self.groups[most].clone();
                rest.count -= taken;
                self.groups.push(rest);
                self.groups[most].count = taken;
            }
            self.groups[most].add(kernel, demand);
            left -= taken;
        }
        blocks - left.max(0.0)
    }

    /// Returns pairs of a number of multiprocessors and the further blocks of a kernel that fit on each.
    pub fn places(&self, demand: &Demand) -> Vec<(f64, f64)> {
        let fit = |group: &Group| {
            let each = group.free.iter().zip(&demand.block).filter(|(_, asked)| **asked > 0.0);
            each.map(|(free, asked)| ((free + 1e-9) / asked).floor()).fold(f64::INFINITY, f64::min)
        };
        self.groups.iter().map(|group| (group.count, fit(group))).filter(|(_, fit)| fit.is_finite()).collect()
    }

    /// Returns for each kernel the number of its blocks that run at full rate, with two at half rate counted as one: the multiprocessors' issue
    /// slots are shared by `warps` per block. A kernel alone has `covered` blocks on a multiprocessor, and uses `unit` of its slots.
    pub fn issued(
        &self,
        kernels: usize,
        unit: impl Fn(usize) -> f64,
        covered: impl Fn(usize) -> f64,
        warps: impl Fn(usize) -> f64,
    ) -> Vec<f64> {
        let mut run = vec![0.0; kernels];
        for group in &self.groups {
            let asked: Vec<f64> =
                group.blocks.iter().map(|&(at, blocks)| unit(at) * (blocks / covered(at)).min(1.0)).collect();
            let weights: Vec<f64> = group.blocks.iter().map(|&(at, blocks)| blocks * warps(at)).collect();
            let given = divided(&asked, &weights);
            for ((&(at, blocks), asked), given) in group.blocks.iter().zip(asked).zip(given) {
                run[at] += blocks * group.count * (given / asked);
            }
        }
        run
    }
}

impl Group {
    fn add(&mut self, kernel: usize, demand: &Demand) {
        for (free, asked) in self.free.iter_mut().zip(&demand.block) {
            *free -= asked;
        }
        match self.blocks.iter_mut().find(|(at, _)| *at == kernel) {
            Some((_, blocks)) => *blocks += 1.0,
            None => self.blocks.push((kernel, 1.0)),
        }
    }
}

/// Divides one whole: each gets its demand, or less by its weight if the demands exceed the whole. Unused shares
/// go to the others.
pub(super) fn divided(asked: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut given = vec![0.0; asked.len()];
    let mut open: Vec<usize> = (0..asked.len()).collect();
    let mut left = 1.0;
    loop {
        let all: f64 = open.iter().map(|&at| weights[at]).sum();
        let share = |at: usize| left * weights[at] / all.max(f64::MIN_POSITIVE);
        let (content, others): (Vec<usize>, Vec<usize>) =
            open.iter().partition(|&&at| asked[at] <= share(at) + 1e-12);
        if content.is_empty() {
            others.iter().for_each(|&at| given[at] = share(at));
            return given;
        }
        for at in content {
            given[at] = asked[at];
            left -= asked[at];
        }
        open = others;
    }
}

#[cfg(test)]
mod tests {
    use super::divided;

    #[test]
    fn what_one_does_not_ask_for_the_others_have() {
        assert_eq!(divided(&[0.2, 0.3], &[1.0, 1.0]), [0.2, 0.3]);
        assert_eq!(divided(&[0.2, 1.0], &[1.0, 1.0]), [0.2, 0.8]);
        assert_eq!(divided(&[1.0, 1.0], &[3.0, 1.0]), [0.75, 0.25]);
        assert_eq!(divided(&[], &[]), [0.0; 0]);
    }
}
