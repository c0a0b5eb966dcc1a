//! Ops that move elements.

use steptime_tensor::DType;

use super::dim::elements;
use super::graph::Attribute;
use super::{Dim, OnnxError, OnnxGraph, Value};

impl OnnxGraph<'_> {
    /// Slices of `data` along an axis by integer indices: the axis becomes the dimensions of the indices.
    ///
    /// # Errors
    ///
    /// The indices are not integers; the axis exceeds the dimensions.
    pub fn gather(&mut self, data: Value, indices: Value, axis: usize) -> Result<Value, OnnxError> {
        const OP: &str = "Gather";
        let (data_info, index) = (self.info(OP, data)?, self.info(OP, indices)?);
        if !matches!(index.dtype, DType::I32 | DType::I64) {
            return Err(OnnxError::Type { op: OP, given: index.dtype, needed: "i32 or i64 as indices" });
        }
        let rank = data_info.shape.len();
        if axis >= rank {
            return Err(OnnxError::Axis { op: OP, axis, rank });
        }
        let dtype = data_info.dtype;
        let shape = [&data_info.shape[..axis], &index.shape, &data_info.shape[axis + 1..]].concat();
        Ok(self.node(OP, &[data, indices], dtype, shape, vec![("axis", Attribute::Int(axis as i64))]))
    }

    /// Values one after the other along an axis.
    ///
    /// # Errors
    ///
    /// No value is given; types differ; sizes differ apart from the axis, or one along it is a symbol; the axis exceeds
    /// the dimensions.
    pub fn concat(&mut self, values: &[Value], axis: usize) -> Result<Value, OnnxError> {
        const OP: &str = "Concat";
        let shapes = values.iter().map(|&value| Ok(self.info(OP, value)?.shape.clone()));
        let shapes = shapes.collect::<Result<Vec<_>, OnnxError>>()?;
        let Some(mut shape) = shapes.first().cloned() else {
            return Err(OnnxError::Shapes { op: OP, shapes, reason: "at least one value is needed" });
        };
        if axis >= shape.len() {
            return Err(OnnxError::Axis { op: OP, axis, rank: shape.len() });
        }
        let mut size = 0u64;
        for (&value, other) in values.iter().zip(&shapes) {
            self.alike(OP, values[0], value)?;
            let same =
                other.len() == shape.len() && (0..shape.len()).all(|i| i == axis || other[i] == shape[i]);
            let more = match other.get(axis) {
                Some(Dim::Fixed(more)) if same => size.checked_add(*more),
                _ => None,
            };
            let Some(sum) = more else {
                let reason = "sizes must be equal apart from the axis, and known along it";
                return Err(OnnxError::Shapes { op: OP, shapes, reason });
            };
            size = sum;
        }
        shape[axis] = Dim::Fixed(size);
        let dtype = self.info(OP, values[0])?.dtype;
        Ok(self.node(OP, values, dtype, shape, vec![("axis", Attribute::Int(axis as i64))]))
    }

    /// Dimensions in another order.
    ///
    /// # Errors
    ///
    /// The order is not one of the dimensions.
    pub fn transpose(&mut self, x: Value, order: &[usize]) -> Result<Value, OnnxError> {
        const OP: &str = "Transpose";
        let info = self.info(OP, x)?;
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..info.shape.len()) {
            let reason = "the order must name each dimension once";
            return Err(OnnxError::Shapes { op: OP, shapes: vec![info.shape.clone()], reason });
        }
        let shape = order.iter().map(|&axis| info.shape[axis].clone()).collect();
        let dtype = info.dtype;
        let order = Attribute::Ints(order.iter().map(|&axis| axis as i64).collect());
        Ok(self.node(OP, &[x], dtype, shape, vec![("perm", order)]))
    }

    /// The same elements in another shape. At most one symbol may change its place.
    ///
    /// # Errors
    ///
    /// The numbers of elements differ, are 0, or more than one symbol changes its place.
    pub fn reshape(&mut self, x: Value, shape: &[Dim]) -> Result<Value, OnnxError> {
        const OP: &str = "Reshape";
        let info = self.info(OP, x)?;
        let refused = |reason| {
            Err(OnnxError::Shapes { op: OP, shapes: vec![info.shape.clone(), shape.to_vec()], reason })
        };
        match (elements(&info.shape), elements(shape)) {
            (Some(from), Some(to)) if from == to && from.0 > 0 => {}
            _ => return refused("the numbers of elements must be equal and not 0"),
        }
        // 0 keeps the size at its place, and -1 is the one that is left.
        let size = |(axis, dim): (usize, &Dim)| match dim {
            Dim::Fixed(size) => *size as i64,
            Dim::Symbol(_) if info.shape.get(axis) == Some(dim) => 0,
            Dim::Symbol(_) => -1,
        };
        let sizes: Vec<i64> = shape.iter().enumerate().map(size).collect();
        if sizes.iter().filter(|&&size| size == -1).count() > 1 {
            return refused("only one symbol may change its place");
        }
        let dtype = info.dtype;
        let sizes = self.integers("shape", &sizes)?;
        Ok(self.node(OP, &[x, sizes], dtype, shape.to_vec(), Vec::new()))
    }

    /// Elements `start` to `end` (not included) along an axis of known size.
    ///
    /// # Errors
    ///
    /// The axis exceeds the dimensions, or the elements exceed it.
    pub fn slice(&mut self, x: Value, axis: usize, start: u64, end: u64) -> Result<Value, OnnxError> {
        const OP: &str = "Slice";
        let info = self.info(OP, x)?;
        let rank = info.shape.len();
        match info.shape.get(axis).ok_or(OnnxError::Axis { op: OP, axis, rank })? {
            Dim::Fixed(size) if start <= end && end <= *size => {}
            _ => {
                let reason = "the elements exceed the axis, or its size is a symbol";
                return Err(OnnxError::Shapes { op: OP, shapes: vec![info.shape.clone()], reason });
            }
        }
        let (dtype, mut shape) = (info.dtype, info.shape.clone());
        shape[axis] = Dim::Fixed(end - start);
        let starts = self.integers("starts", &[start as i64])?;
        let ends = self.integers("ends", &[end as i64])?;
        let axes = self.integers("axes", &[axis as i64])?;
        Ok(self.node(OP, &[x, starts, ends, axes], dtype, shape, Vec::new()))
    }
}
