//! Buckets of gradients that are averaged together.

use std::collections::BTreeMap;

use steptime_aten::Dtype;

use crate::tensor::Tensor;

/// A bucket is full from so many bytes on: the first, ...
const FIRST: i64 = 1 << 20;
/// ... and the others (`bucket_cap_mb`).
const OTHERS: i64 = 25 << 20;

/// The buckets of a rank.
#[derive(Debug, Default)]
pub(crate) struct Reducer {
    /// Parameters in the order in which their gradients came.
    pub(crate) order: Vec<usize>,
    /// Empty in the first step.
    pub(crate) buckets: Vec<Bucket>,
    /// The place of each parameter: its bucket, and the element it begins at there.
    pub(crate) places: BTreeMap<usize, (usize, i64)>,
    /// How many gradients of each bucket have come.
    pub(crate) filled: Vec<usize>,
}

/// Gradients that are averaged together.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) parameters: Vec<usize>,
    pub(crate) memory: Option<Tensor>,
    pub(crate) elements: i64,
}

impl Reducer {
    /// Another step begins: after the first, buckets are filled as gradients came.
    pub(crate) fn restart(&mut self) {
        self.filled = vec![0; self.buckets.len()];
    }

    /// Deals parameters out to buckets, given how many elements each has.
    pub(crate) fn deal(&mut self, elements: impl Fn(usize) -> i64) {
        let mut open = Bucket { parameters: Vec::new(), memory: None, elements: 0 };
        for &parameter in &self.order {
            self.places.insert(parameter, (self.buckets.len(), open.elements));
            open.parameters.push(parameter);
            open.elements += elements(parameter);
            let full = if self.buckets.is_empty() { FIRST } else { OTHERS };
            if open.elements * Dtype::F32.size() as i64 >= full {
                self.buckets.push(open);
                open = Bucket { parameters: Vec::new(), memory: None, elements: 0 };
            }
        }
        if !open.parameters.is_empty() {
            self.buckets.push(open);
        }
        self.filled = vec![0; self.buckets.len()];
    }
}
