//! Sizes of tensors that are merged into one.

use steptime_aten::Tensor;
use steptime_step::{StepIr, TensorId};

use super::bags::Bag;

/// Sizes that add up over the bags: rows of their tables, their indices, the bags themselves.
#[derive(Debug, Clone)]
pub(super) struct Grow {
    /// The size for each bag, and the sum.
    sums: Vec<(Vec<i64>, i64)>,
}

impl Grow {
    /// The sizes of some bags.
    pub fn new(step: &StepIr, bags: &[Bag]) -> Grow {
        let all = |size: &dyn Fn(&Bag) -> i64| bags.iter().map(size).collect::<Vec<_>>();
        let first = |tensor: TensorId| step.tensors[tensor].value.shape.first().copied().unwrap_or(0);
        let sum = |sizes: Vec<i64>| {
            let sum = sizes.iter().fold(0, |sum: i64, &size| sum.saturating_add(size));
            (sizes, sum)
        };
        let rows = sum(all(&|bag| first(bag.table)));
        let indices = sum(all(&|bag| first(bag.inputs[0])));
        let count = sum(all(&|bag| bag.kind.bags));
        // Only the last of all bags has its end among the offsets.
        let ends = (all(&|bag| bag.kind.bags + 1), count.1 + 1);
        let mut sums = vec![rows, indices, count];
        sums.extend(bags.iter().all(|bag| bag.kind.has_end).then_some(ends));
        Grow { sums }
    }

    /// The merged size, given the size for each bag; `None` where it does not change.
    pub fn size(&self, each: &[i64]) -> Option<i64> {
        self.sums.iter().find(|(sizes, _)| sizes == each).map(|(_, sum)| *sum)
    }

    /// The merged sizes, given those for each bag: the first dimension that adds up changes, and no other.
    pub fn sizes(&self, each: &[&[i64]]) -> Option<Vec<i64>> {
        let first = *each.first()?;
        let alike = each.iter().all(|sizes| sizes.len() == first.len());
        let at = |dim: usize| each.iter().map(|sizes| sizes[dim]).collect::<Vec<_>>();
        let mut grown = first.to_vec();
        let (dim, size) =
            (0..first.len()).filter(|_| alike).find_map(|dim| Some((dim, self.size(&at(dim))?)))?;
        grown[dim] = size;
        Some(grown)
    }

    /// The merged tensor, given one for each bag; `None` where it does not change.
    pub fn tensor(&self, each: &[&Tensor]) -> Option<Tensor> {
        let shapes: Vec<&[i64]> = each.iter().map(|tensor| &tensor.shape[..]).collect();
        let shape = self.sizes(&shapes)?;
        let first = *each.first()?;
        let mut strides = first.strides.clone();
        // A single row of indices: its stride spans the row.
        if let ([1, was], [_, now], [outer, _]) = (&first.shape[..], &shape[..], &mut strides[..])
            && *outer == *was
        {
            *outer = *now;
        }
        Some(Tensor { shape: shape.into_iter().collect(), strides, ..first.clone() })
    }
}
