//! Buckets of gradients that are averaged together.

use std::collections::BTreeMap;

use steptime_aten::{Dtype, ddp};

use crate::tensor::Tensor;

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
        let bytes = |&parameter: &usize| (elements(parameter) * Dtype::F32.size() as i64) as u64;
        for own in ddp::buckets(self.order.iter().map(bytes), None) {
            let mut bucket = Bucket { parameters: Vec::new(), memory: None, elements: 0 };
            for parameter in own.into_iter().map(|at| self.order[at]) {
                self.places.insert(parameter, (self.buckets.len(), bucket.elements));
                bucket.parameters.push(parameter);
                bucket.elements += elements(parameter);
            }
            self.buckets.push(bucket);
        }
        self.filled = vec![0; self.buckets.len()];
    }
}
