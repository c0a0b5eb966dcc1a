//! Outputs for the gradients of a linear layer.

use super::super::{GemmError, MatMut};

/// Outputs for the gradients of a linear layer; those that are `None` are not computed.
#[derive(Debug, Default)]
pub struct Gradients<'a> {
    /// Gradient of the inputs, `[batch, in]`.
    pub x: Option<MatMut<'a>>,
    /// Gradient of the weight, `[out, in]`.
    pub weight: Option<MatMut<'a>>,
    /// Gradient of the bias, `out` elements.
    pub bias: Option<&'a mut [f32]>,
}

impl Gradients<'_> {
    /// Fails where a size does not match the layer.
    pub(super) fn check(&self, batch: usize, inputs: usize, outputs: usize) -> Result<(), GemmError> {
        if let Some(dx) = &self.x {
            dx.expect("the gradient of x", batch, inputs)?;
        }
        if let Some(dw) = &self.weight {
            dw.expect("the gradient of the weight", outputs, inputs)?;
        }
        match self.bias.as_deref().map(<[f32]>::len) {
            Some(found) if found != outputs => {
                Err(GemmError::Length { what: "the gradient of the bias", found, expected: outputs })
            }
            _ => Ok(()),
        }
    }

    /// Whether rows are contiguous.
    pub(super) fn have_whole_rows(&self) -> bool {
        let whole = |matrix: &MatMut<'_>| matrix.col_stride == 1 || matrix.cols <= 1;
        self.x.as_ref().is_none_or(whole) && self.weight.as_ref().is_none_or(whole)
    }
}
