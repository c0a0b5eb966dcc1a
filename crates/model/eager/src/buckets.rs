//! Buckets of gradients that are averaged together.

use std::collections::BTreeMap;

use steptime_aten::{Dtype, ddp};

use crate::tensor::Tensor;

/// The buckets of a rank.
#[derive(Debug, Default)]
pub(crate) struct Reducer {
    /// Parameters in the order in which their gradients arrived.
    pub(crate) order: Vec<usize>,
    /// Empty in the first step.
    pub(crate) buckets: Vec<Bucket>,
    /// For each parameter its bucket, and its first element there.
    pub(crate) places: BTreeMap<usize, (usize, i64)>,
    /// Number of arrived gradients of each bucket.
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
    /// Resets for another step: after the first one, buckets are filled in the order of arrival.
    pub(crate) fn restart(&mut self) {
        self.filled = vec![0; self.buckets.len()];
    }

    /// Assigns parameters to buckets, given the number of elements of each.
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
