//! Which dimensions grow with the batch.

use std::ops::Range;

use smallvec::SmallVec;
use steptime_aten::OpSet;
use steptime_graph::TiVec;
use steptime_step::{Step, TensorId};

use super::born;
use super::links::{self, Dim, Link, Sparse};
use super::seeds::Seeds;

/// For each dimension of each tensor, whether it grows with the batch.
pub(crate) struct Labels {
    grows: TiVec<TensorId, SmallVec<[bool; 5]>>,
    batch: u64,
    /// Tensors that the step keeps and that seemed to grow.
    pub doubted: Vec<TensorId>,
}

impl Labels {
    /// Spreads from the seeds along links between dimensions, until nothing more is reached.
    pub fn spread(step: &Step, ops: &OpSet, seeds: &Seeds, batch: u64) -> Labels {
        let mut labels = Labels {
            batch,
            grows: step
                .tensors
                .iter()
                .map(|tensor| SmallVec::from_elem(false, tensor.value.shape.len()))
                .collect(),
            doubted: Vec::new(),
        };
        for &(tensor, dim) in &seeds.dims {
            labels.grows[tensor][dim] = true;
        }
        let sparse = Sparse::of(step);
        let running = step.running().into_iter();
        let links: Vec<Link> = running.flat_map(|op| links::of(step, op, ops, &sparse)).collect();
        let born = born::of(step);
        loop {
            labels.close(step, &links, seeds);
            if !labels.adopt(step, &born, seeds) {
                return labels;
            }
        }
    }

    /// Follows links until nothing more is reached.
    fn close(&mut self, step: &Step, links: &[Link], seeds: &Seeds) {
        let mut moved = true;
        while moved {
            moved = false;
            for link in links.iter().chain(links.iter().rev()) {
                moved |= self.follow(step, link, seeds);
            }
        }
    }

    /// Gives tensors that were made of nothing the labels of those around, where all of their shape have the same.
    fn adopt(&mut self, step: &Step, born: &[(TensorId, Vec<TensorId>)], seeds: &Seeds) -> bool {
        let mut moved = false;
        for (made, like) in born {
            if !like.iter().all(|other| self.grows[*other] == self.grows[like[0]]) {
                continue;
            }
            for at in 0..self.grows[*made].len() {
                moved |= self.grows[like[0]][at] && self.set(step, Dim { tensor: *made, at }, seeds);
            }
        }
        moved
    }

    /// Which dimensions of a tensor grow.
    pub fn of(&self, tensor: TensorId) -> &[bool] {
        &self.grows[tensor]
    }

    fn follow(&mut self, step: &Step, link: &Link, seeds: &Seeds) -> bool {
        match *link {
            Link::Same(a, b) => {
                let (one, two) = (self.has(a), self.has(b));
                (one && !two && self.set(step, b, seeds)) | (two && !one && self.set(step, a, seeds))
            }
            Link::Reshape(from, to) => {
                self.reshape(step, from, to, seeds) | self.reshape(step, to, from, seeds)
            }
        }
    }

    fn has(&self, dim: Dim) -> bool {
        self.grows[dim.tensor].get(dim.at).copied().unwrap_or(false)
    }

    /// Whether a size is a multiple of the batch; of the ends of bags, one more.
    fn fits(&self, shape: &[i64], at: usize) -> bool {
        let multiple =
            |size: i64| u64::try_from(size).is_ok_and(|size| size > 0 && size.is_multiple_of(self.batch));
        multiple(shape[at]) || (shape.len() == 1 && multiple(shape[at] - 1))
    }

    fn set(&mut self, step: &Step, dim: Dim, seeds: &Seeds) -> bool {
        if !self.fits(&step.tensors[dim.tensor].value.shape, dim.at) {
            return false;
        }
        if seeds.kept.contains(&dim.tensor) {
            if !self.doubted.contains(&dim.tensor) {
                self.doubted.push(dim.tensor);
            }
            return false;
        }
        let Some(slot) = self.grows[dim.tensor].get_mut(dim.at) else { return false };
        !std::mem::replace(slot, true)
    }

    /// Carries labels from one shape to another of as many elements, within each group of dimensions that have the same
    /// product. Elements keep their order: the dimension of the same size and stride grows, else the first, or the last, that
    /// is a multiple of the batch, of those whose steps through memory overlap with the growing one's.
    fn reshape(&mut self, step: &Step, from: TensorId, to: TensorId, seeds: &Seeds) -> bool {
        let (a, b) = (&step.tensors[from].value.shape, &step.tensors[to].value.shape);
        let mut moved = false;
        for (ours, theirs) in groups(a, b) {
            let labelled = ours.clone().filter(|&at| self.grows[from][at]);
            let labelled: Vec<Range<i64>> = labelled.map(|at| reach(a, &ours, at)).collect();
            if labelled.is_empty() || theirs.clone().any(|at| self.grows[to][at]) {
                continue;
            }
            let outermost = ours.clone().find(|&at| a[at] > 1).unwrap_or(ours.start);
            let first = labelled[0] == reach(a, &ours, outermost);
            let same = theirs.clone().find(|&at| labelled.contains(&reach(b, &theirs, at)));
            let at = same.or_else(|| {
                let overlaps = |at: usize| {
                    let theirs = reach(b, &theirs, at);
                    labelled.iter().any(|ours| ours.start < theirs.end && theirs.start < ours.end)
                };
                let mut fitting = theirs.clone().filter(|&at| b[at] > 1 && self.fits(b, at) && overlaps(at));
                if first { fitting.next() } else { fitting.next_back() }
            });
            if let Some(at) = at {
                moved |= self.set(step, Dim { tensor: to, at }, seeds);
            }
        }
        moved
    }
}

/// From how many elements on to below how many a dimension of a group steps, if the group were contiguous.
fn reach(shape: &[i64], group: &Range<usize>, at: usize) -> Range<i64> {
    let stride = shape[at + 1..group.end].iter().product();
    stride..shape[at].saturating_mul(stride)
}

/// Groups of consecutive dimensions of two shapes that have the same product.
fn groups(a: &[i64], b: &[i64]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut groups = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let (from, to) = (i, j);
        let (mut left, mut right) = (a[i], b[j]);
        (i, j) = (i + 1, j + 1);
        while left != right {
            if left < right && i < a.len() {
                left = left.saturating_mul(a[i]);
                i += 1;
            } else if right < left && j < b.len() {
                right = right.saturating_mul(b[j]);
                j += 1;
            } else {
                return groups;
            }
        }
        groups.push((from..i, to..j));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::{groups, reach};

    #[test]
    fn heads_are_not_the_batch() {
        // 64 samples of 6 heads of 64 columns: the batch is in the 384, and not the other 64.
        let batch = reach(&[196, 64, 384], &(1..3), 1);
        assert_eq!(batch, 384..24_576);
        assert_eq!(reach(&[196, 384, 64], &(1..3), 1), 64..24_576);
        assert!(reach(&[196, 384, 64], &(1..3), 2).end <= batch.start);
    }

    #[test]
    fn shapes_fall_into_groups_of_the_same_product() {
        assert_eq!(groups(&[8, 3, 4], &[24, 4]), [(0..2, 0..1), (2..3, 1..2)]);
        assert_eq!(groups(&[24, 4], &[8, 3, 2, 2]), [(0..1, 0..2), (1..2, 2..4)]);
        assert_eq!(groups(&[8, 1, 4], &[8, 4]), [(0..1, 0..1), (1..3, 1..2)]);
        assert_eq!(groups(&[5], &[7]), []);
    }
}
