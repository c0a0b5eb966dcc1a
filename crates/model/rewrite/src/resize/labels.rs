//! Which dimensions grow, and by how much.

use std::ops::Range;

use smallvec::SmallVec;
use steptime_aten::OpSet;
use steptime_graph::TiVec;
use steptime_step::{Step, TensorId};

use super::born;
use super::links::{self, Dim, Link, Sparse};
use super::seeds::Seeds;

/// For each dimension of each tensor, how often what grows is in it: 0 for one that stays as it is.
#[derive(Debug, Default)]
pub(super) struct Labels {
    times: TiVec<TensorId, SmallVec<[i64; 5]>>,
    /// The size that grows.
    from: i64,
    /// Tensors that the step keeps and that seemed to grow.
    pub doubted: Vec<TensorId>,
}

impl Labels {
    /// Spreads from the seeds along links between dimensions, until nothing more is reached.
    pub fn spread(step: &Step, ops: &OpSet, seeds: &Seeds, from: u64) -> Labels {
        let mut labels = Labels {
            from: i64::try_from(from).unwrap_or(i64::MAX),
            times: step
                .tensors
                .iter()
                .map(|tensor| SmallVec::from_elem(0, tensor.value.shape.len()))
                .collect(),
            doubted: Vec::new(),
        };
        for &(tensor, at) in &seeds.dims {
            labels.times[tensor][at] = labels.multiple(&step.tensors[tensor].value.shape, at).unwrap_or(0);
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
            if !like.iter().all(|other| self.times[*other] == self.times[like[0]]) {
                continue;
            }
            for at in 0..self.times[*made].len() {
                let times = self.times[like[0]][at];
                moved |= self.set(step, Dim { tensor: *made, at }, times, seeds);
            }
        }
        moved
    }

    /// How often each dimension of a tensor has what grows.
    pub fn of(&self, tensor: TensorId) -> &[i64] {
        &self.times[tensor]
    }

    fn follow(&mut self, step: &Step, link: &Link, seeds: &Seeds) -> bool {
        match link {
            Link::Same(a, b) => self.copy(step, *a, *b, seeds) | self.copy(step, *b, *a, seeds),
            Link::Reshape(from, to) => {
                self.reshape(step, *from, *to, seeds) | self.reshape(step, *to, *from, seeds)
            }
            Link::Joined(parts, whole) => {
                let sum = parts.iter().map(|&part| self.at(part)).sum();
                self.set(step, *whole, sum, seeds) | self.part(step, parts, *whole, seeds)
            }
        }
    }

    /// One dimension is another: of the same size, or both are multiples of what grows.
    fn copy(&mut self, step: &Step, from: Dim, to: Dim, seeds: &Seeds) -> bool {
        let times = self.at(from);
        let size = |dim: Dim| step.tensors[dim.tensor].value.shape.get(dim.at).copied();
        let times = match () {
            () if times == 0 => 0,
            () if size(from) == size(to) => times,
            () => self.multiple(&step.tensors[to.tensor].value.shape, to.at).unwrap_or(0),
        };
        self.set(step, to, times, seeds)
    }

    /// What is joined grows where the whole does, if all of it does.
    fn part(&mut self, step: &Step, parts: &[Dim], whole: Dim, seeds: &Seeds) -> bool {
        let multiples =
            parts.iter().map(|part| self.multiple(&step.tensors[part.tensor].value.shape, part.at));
        let Some(each) = multiples.collect::<Option<Vec<i64>>>() else { return false };
        if self.at(whole) == 0 || each.iter().sum::<i64>() != self.at(whole) {
            return false;
        }
        let mut moved = false;
        for (&part, times) in parts.iter().zip(each) {
            moved |= self.set(step, part, times, seeds);
        }
        moved
    }

    fn at(&self, dim: Dim) -> i64 {
        self.times[dim.tensor].get(dim.at).copied().unwrap_or(0)
    }

    /// How often a size has what grows; of the ends of bags, one less. `None` where it is no multiple.
    fn multiple(&self, shape: &[i64], at: usize) -> Option<i64> {
        let times = |size: i64| (size > 0 && size % self.from == 0).then(|| size / self.from);
        let ends = || if shape.len() == 1 { times(shape[at] - 1) } else { None };
        times(*shape.get(at)?).or_else(ends)
    }

    fn set(&mut self, step: &Step, dim: Dim, times: i64, seeds: &Seeds) -> bool {
        let size = step.tensors[dim.tensor].value.shape.get(dim.at).copied().unwrap_or(0);
        if times <= self.at(dim) || times.saturating_mul(self.from) > size {
            return false;
        }
        if seeds.kept.contains(&dim.tensor) {
            if !self.doubted.contains(&dim.tensor) {
                self.doubted.push(dim.tensor);
            }
            return false;
        }
        let Some(slot) = self.times[dim.tensor].get_mut(dim.at) else { return false };
        *slot = times;
        true
    }

    /// Carries labels from one shape to another of as many elements, within each group of dimensions that have the same
    /// product. Elements keep their order: the dimension of the same size and stride grows, else the first, or the last, that
    /// is a multiple of what grows, of those whose steps through memory overlap with the growing one's.
    fn reshape(&mut self, step: &Step, from: TensorId, to: TensorId, seeds: &Seeds) -> bool {
        let (a, b) = (&step.tensors[from].value.shape, &step.tensors[to].value.shape);
        let mut moved = false;
        for (ours, theirs) in groups(a, b) {
            let labelled: Vec<(Range<i64>, i64)> = (ours.clone())
                .filter(|&at| self.times[from][at] > 0)
                .map(|at| (reach(a, &ours, at), self.times[from][at]))
                .collect();
            if labelled.is_empty() {
                continue;
            }
            for at in theirs.clone() {
                let same = labelled.iter().find(|(ours, _)| *ours == reach(b, &theirs, at));
                if let Some(&(_, times)) = same {
                    moved |= self.set(step, Dim { tensor: to, at }, times, seeds);
                }
            }
            moved |= self.merge(step, (from, &ours), (to, &theirs), seeds);
            if theirs.clone().any(|at| self.times[to][at] > 0) {
                continue;
            }
            let outermost = ours.clone().find(|&at| a[at] > 1).unwrap_or(ours.start);
            let first = labelled[0].0 == reach(a, &ours, outermost);
            let overlaps = |at: usize| {
                let theirs = reach(b, &theirs, at);
                labelled.iter().any(|(ours, _)| ours.start < theirs.end && theirs.start < ours.end)
            };
            let fits = |at: &usize| b[*at] > 1 && self.multiple(b, *at).is_some() && overlaps(*at);
            let mut fitting = theirs.clone().filter(fits);
            let found = if first { fitting.next() } else { fitting.next_back() };
            if let Some(at) = found {
                let times = self.multiple(b, at).unwrap_or(0);
                moved |= self.set(step, Dim { tensor: to, at }, times, seeds);
            }
        }
        moved
    }
}

impl Labels {
    /// Dimensions that become one grow by as much as their product.
    fn merge(
        &mut self,
        step: &Step,
        (from, ours): (TensorId, &Range<usize>),
        (to, theirs): (TensorId, &Range<usize>),
        seeds: &Seeds,
    ) -> bool {
        let (a, b) = (&step.tensors[from].value.shape, &step.tensors[to].value.shape);
        let mut large = theirs.clone().filter(|&at| b[at] > 1);
        let mut labelled = ours.clone().filter(|&at| self.times[from][at] > 0);
        let (Some(one), None, Some(at), None) =
            (large.next(), large.next(), labelled.next(), labelled.next())
        else {
            return false;
        };
        let times = self.times[from][at].saturating_mul(b[one] / a[at]);
        self.set(step, Dim { tensor: to, at: one }, times, seeds)
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
