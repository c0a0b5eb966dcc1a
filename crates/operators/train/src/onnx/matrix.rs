//! Matrix products.

use super::dim::broadcast;
use super::graph::Attribute;
use super::{OnnxError, OnnxGraph, Value};

impl OnnxGraph<'_> {
    /// a b + c for matrices a and b, each transposed on request, and a c that is repeated to the shape of a b.
    ///
    /// # Errors
    ///
    /// Types differ or are not floating-point; shapes do not fit.
    pub fn gemm(
        &mut self,
        a: Value,
        b: Value,
        c: Option<Value>,
        transpose_a: bool,
        transpose_b: bool,
    ) -> Result<Value, OnnxError> {
        const OP: &str = "Gemm";
        self.float(OP, a)?;
        let (dtype, [left, right]) = self.alike(OP, a, b)?;
        let refused = |reason| {
            let shapes = vec![left.to_vec(), right.to_vec()];
            Err(OnnxError::Shapes { op: OP, shapes, reason })
        };
        let ([rows, inner], [second, columns]) = (left, right) else {
            return refused("both must be matrices");
        };
        let (mut rows, mut inner, mut second, mut columns) = (rows, inner, second, columns);
        if transpose_a {
            std::mem::swap(&mut rows, &mut inner);
        }
        if transpose_b {
            std::mem::swap(&mut second, &mut columns);
        }
        if inner != second {
            return refused("the inner sizes must be equal");
        }
        let shape = vec![rows.clone(), columns.clone()];
        let mut inputs = vec![a, b];
        if let Some(c) = c {
            let (_, [_, bias]) = self.alike(OP, a, c)?;
            if broadcast(bias, &shape).as_ref() != Some(&shape) {
                let shapes = vec![shape, bias.to_vec()];
                return Err(OnnxError::Shapes {
                    op: OP,
                    shapes,
                    reason: "the bias does not have the result's sizes",
                });
            }
            inputs.push(c);
        }
        let transposed = vec![
            ("transA", Attribute::Int(transpose_a.into())),
            ("transB", Attribute::Int(transpose_b.into())),
        ];
        Ok(self.node(OP, &inputs, dtype, shape, transposed))
    }

    /// Matrix products over the last two dimensions; those before them are repeated as in elementwise ops.
    ///
    /// # Errors
    ///
    /// Types differ or are not floating-point; shapes do not fit.
    pub fn matmul(&mut self, a: Value, b: Value) -> Result<Value, OnnxError> {
        const OP: &str = "MatMul";
        self.float(OP, a)?;
        let (dtype, [left, right]) = self.alike(OP, a, b)?;
        let refused = |reason| {
            let shapes = vec![left.to_vec(), right.to_vec()];
            OnnxError::Shapes { op: OP, shapes, reason }
        };
        let (Some((batch, [rows, inner])), Some((others, [second, columns]))) =
            (left.split_last_chunk::<2>(), right.split_last_chunk::<2>())
        else {
            return Err(refused("both must have two dimensions or more"));
        };
        if inner != second {
            return Err(refused("the inner sizes must be equal"));
        }
        let mut shape = broadcast(batch, others)
            .ok_or_else(|| refused("sizes before the last two must be equal or 1"))?;
        shape.extend([rows.clone(), columns.clone()]);
        Ok(self.node(OP, &[a, b], dtype, shape, Vec::new()))
    }
}
