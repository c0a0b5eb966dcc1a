//! Constants of a graph.

use super::graph::Initializer;
use super::{Dim, OnnxError, OnnxGraph, Value};
use crate::checkpoint::Number;

impl OnnxGraph<'_> {
    /// Adds a small constant, stored in the model itself. Its name is made from `purpose`.
    ///
    /// # Errors
    ///
    /// The shape has another number of elements.
    pub fn constant<T: Number>(
        &mut self,
        purpose: &str,
        shape: &[u64],
        numbers: &[T],
    ) -> Result<Value, OnnxError> {
        let elements = shape.iter().try_fold(1u64, |product, &size| product.checked_mul(size));
        if elements != Some(numbers.len() as u64) {
            let (name, shape) = (purpose.to_owned(), shape.to_vec());
            return Err(OnnxError::Elements { name, shape, elements: numbers.len() });
        }
        let mut bytes = vec![0; size_of_val(numbers)];
        T::write(numbers, &mut bytes);
        let mut name = format!("{purpose}_{}", self.weights.len());
        while self.take_name(&name).is_err() {
            name.push('_');
        }
        let shape = shape.iter().copied().map(Dim::Fixed).collect();
        let value = self.value(name, T::DTYPE, shape, false);
        self.weights.push((value, Initializer::Bytes(bytes)));
        Ok(value)
    }

    /// Adds integers, one dimension.
    pub(super) fn integers(&mut self, purpose: &str, numbers: &[i64]) -> Result<Value, OnnxError> {
        self.constant(purpose, &[numbers.len() as u64], numbers)
    }
}
