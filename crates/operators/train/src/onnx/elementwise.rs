//! Elementwise ops, and sums.

use steptime_tensor::DType;

use super::dim::broadcast;
use super::graph::Attribute;
use super::{Dim, OnnxError, OnnxGraph, Value};

impl OnnxGraph<'_> {
    /// max(x, 0).
    ///
    /// # Errors
    ///
    /// The type is not a floating-point one.
    pub fn relu(&mut self, x: Value) -> Result<Value, OnnxError> {
        self.unary("Relu", x)
    }

    /// 1 / (1 + e^-x).
    ///
    /// # Errors
    ///
    /// The type is not a floating-point one.
    pub fn sigmoid(&mut self, x: Value) -> Result<Value, OnnxError> {
        self.unary("Sigmoid", x)
    }

    /// Square root.
    ///
    /// # Errors
    ///
    /// The type is not a floating-point one.
    pub fn sqrt(&mut self, x: Value) -> Result<Value, OnnxError> {
        self.unary("Sqrt", x)
    }

    /// a + b, with repeated dimensions of size 1.
    ///
    /// # Errors
    ///
    /// Types differ; shapes do not fit.
    pub fn add(&mut self, a: Value, b: Value) -> Result<Value, OnnxError> {
        self.binary("Add", a, b)
    }

    /// a - b, with repeated dimensions of size 1.
    ///
    /// # Errors
    ///
    /// Types differ; shapes do not fit.
    pub fn sub(&mut self, a: Value, b: Value) -> Result<Value, OnnxError> {
        self.binary("Sub", a, b)
    }

    /// a b, element by element, with repeated dimensions of size 1.
    ///
    /// # Errors
    ///
    /// Types differ; shapes do not fit.
    pub fn mul(&mut self, a: Value, b: Value) -> Result<Value, OnnxError> {
        self.binary("Mul", a, b)
    }

    /// a / b, with repeated dimensions of size 1.
    ///
    /// # Errors
    ///
    /// Types differ; shapes do not fit.
    pub fn div(&mut self, a: Value, b: Value) -> Result<Value, OnnxError> {
        self.binary("Div", a, b)
    }

    /// The larger of a and b, with repeated dimensions of size 1.
    ///
    /// # Errors
    ///
    /// Types differ; shapes do not fit.
    pub fn max(&mut self, a: Value, b: Value) -> Result<Value, OnnxError> {
        self.binary("Max", a, b)
    }

    /// Another element type.
    ///
    /// # Errors
    ///
    /// The value belongs to another graph.
    pub fn cast(&mut self, x: Value, dtype: DType) -> Result<Value, OnnxError> {
        let shape = self.info("Cast", x)?.shape.clone();
        let to = Attribute::Int(super::export::data_type(dtype).into());
        Ok(self.node("Cast", &[x], dtype, shape, vec![("to", to)]))
    }

    /// Sum over dimensions, which have size 1 afterwards if they are kept.
    ///
    /// # Errors
    ///
    /// The type is not a floating-point one; an axis exceeds the dimensions.
    pub fn reduce_sum(&mut self, x: Value, axes: &[usize], keep: bool) -> Result<Value, OnnxError> {
        const OP: &str = "ReduceSum";
        let (dtype, shape) = self.float(OP, x)?;
        let mut shape: Vec<Option<Dim>> = shape.iter().cloned().map(Some).collect();
        let rank = shape.len();
        for &axis in axes {
            let dim = shape.get_mut(axis).ok_or(OnnxError::Axis { op: OP, axis, rank })?;
            *dim = keep.then_some(Dim::Fixed(1));
        }
        let shape = shape.into_iter().flatten().collect();
        let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
        let axes = self.integers("axes", &axes)?;
        // Without axes a sum over all dimensions is not meant.
        let attributes =
            vec![("keepdims", Attribute::Int(keep.into())), ("noop_with_empty_axes", Attribute::Int(1))];
        Ok(self.node(OP, &[x, axes], dtype, shape, attributes))
    }

    fn unary(&mut self, op: &'static str, x: Value) -> Result<Value, OnnxError> {
        let (dtype, shape) = self.float(op, x)?;
        let shape = shape.to_vec();
        Ok(self.node(op, &[x], dtype, shape, Vec::new()))
    }

    fn binary(&mut self, op: &'static str, a: Value, b: Value) -> Result<Value, OnnxError> {
        let (dtype, shapes) = self.alike(op, a, b)?;
        let shape = broadcast(shapes[0], shapes[1]).ok_or_else(|| OnnxError::Shapes {
            op,
            shapes: shapes.map(<[Dim]>::to_vec).into(),
            reason: "sizes must be equal or 1",
        })?;
        Ok(self.node(op, &[a, b], dtype, shape, Vec::new()))
    }
}
