//! Layers of recommenders, as several ops.

use super::{Dim, OnnxError, OnnxGraph, Value};

impl OnnxGraph<'_> {
    /// Sum of a table's rows (E x D) for every bag of indices (B x L): B x D.
    ///
    /// # Errors
    ///
    /// As for [`OnnxGraph::gather`] and [`OnnxGraph::reduce_sum`]; the indices do not have two dimensions.
    pub fn embedding_bag(&mut self, table: Value, indices: Value) -> Result<Value, OnnxError> {
        let shape = &self.info("EmbeddingBag", indices)?.shape;
        if shape.len() != 2 {
            let (shapes, reason) =
                (vec![shape.clone()], "the indices must have two dimensions, bags and lookups");
            return Err(OnnxError::Shapes { op: "EmbeddingBag", shapes, reason });
        }
        let rows = self.gather(table, indices, 0)?;
        self.reduce_sum(rows, &[1], false)
    }

    /// x Wᵀ + b for inputs x (B x K), weights W (N x K) and biases b (N), as PyTorch's `nn.Linear`.
    ///
    /// # Errors
    ///
    /// As for [`OnnxGraph::gemm`].
    pub fn linear(&mut self, x: Value, weight: Value, bias: Option<Value>) -> Result<Value, OnnxError> {
        self.gemm(x, weight, bias, false, true)
    }

    /// Dot products of all pairs of different features of x (B x F x D): B x F(F-1)/2, row by row of the lower triangle.
    ///
    /// # Errors
    ///
    /// The value does not have three dimensions, or the number of features is a symbol.
    pub fn pairwise_dots(&mut self, x: Value) -> Result<Value, OnnxError> {
        let shape = self.info("PairwiseDots", x)?.shape.clone();
        let [batch, Dim::Fixed(features), _] = &shape[..] else {
            let reason = "three dimensions are needed, and the second one's size";
            return Err(OnnxError::Shapes { op: "PairwiseDots", shapes: vec![shape], reason });
        };
        let transposed = self.transpose(x, &[0, 2, 1])?;
        let products = self.matmul(x, transposed)?;
        let features = *features;
        let flat = self.reshape(products, &[batch.clone(), Dim::Fixed(features.saturating_mul(features))])?;
        let below =
            (0..features).flat_map(|row| (0..row).map(move |column| (row * features + column) as i64));
        let triangle = self.integers("triangle", &below.collect::<Vec<_>>())?;
        self.gather(flat, triangle, 1)
    }

    /// x (B x D) over its Euclidean norm, which is at least `least`, as PyTorch's `F.normalize`.
    ///
    /// # Errors
    ///
    /// The value is not f32, or does not have two dimensions.
    pub fn normalise(&mut self, x: Value, least: f32) -> Result<Value, OnnxError> {
        let squares = self.mul(x, x)?;
        let sum = self.reduce_sum(squares, &[1], true)?;
        let norm = self.sqrt(sum)?;
        let least = self.constant("least_norm", &[], &[least])?;
        let norm = self.max(norm, least)?;
        self.div(x, norm)
    }
}
