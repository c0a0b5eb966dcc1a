//! Strides of views: a cast has no gaps between its rows, so views of it have other strides than those of the tensor that it replaces.

use steptime_step::{Call, TensorId};

use super::types::Types;

impl Types<'_> {
    /// Sets the strides of the views that a call returns, where it now takes a tensor of other strides.
    pub(super) fn set_view_strides(&mut self, before: &Call, now: &Call) {
        let row = |tensor: TensorId| self.step.tensors.get(tensor);
        let mut changed = Vec::new();
        for view in before.gives().filter(|view| before.takes().all(|taken| taken != *view)) {
            let Some(own) = row(view).filter(|own| own.storage.is_some()) else { continue };
            let mut sources = before.takes().zip(now.takes());
            let source = sources.find(|&(was, _)| row(was).is_some_and(|of| of.storage == own.storage));
            let Some((was, is)) = source else { continue };
            let (Some(was), Some(now)) = (row(was), self.strides(is)) else { continue };
            if was.value.strides[..] != *now {
                let strides = own.value.strides.iter().map(|&stride| moved(stride, &was.value, now));
                changed.push((view, strides.collect()));
            }
        }
        self.strides.extend(changed);
    }

    /// The strides of a tensor.
    fn strides(&self, tensor: TensorId) -> Option<&[i64]> {
        let own = self.strides.get(&tensor).map(|own: &Vec<i64>| &own[..]);
        own.or_else(|| self.value(tensor).map(|value| &value.strides[..]))
    }
}

/// The stride of a view of a tensor whose strides become `now`: a dimension of the view is one of the tensor's, or a part of one.
fn moved(stride: i64, was: &steptime_aten::Tensor, now: &[i64]) -> i64 {
    let all = was.shape.iter().zip(&was.strides).zip(now);
    let is_part = |size: i64, own: i64| own > 0 && stride % own == 0 && stride < own * size;
    let parts = all.filter(|((size, own), _)| is_part(**size, **own));
    let dimension = parts.max_by_key(|((_, own), _)| **own);
    dimension.map_or(stride, |((_, own), now)| stride / own * now)
}

#[cfg(test)]
mod tests {
    use steptime_aten::{Dtype, Tensor};

    use super::moved;

    #[test]
    fn dimensions_of_views_follow_those_of_the_tensor() {
        // Columns of a matrix with 40 of them, without gaps.
        let columns = Tensor::strided(&[24, 8], &[40, 1], Dtype::F32);
        let of = |all: &[i64]| all.iter().map(|&own| moved(own, &columns, &[8, 1])).collect::<Vec<_>>();
        assert_eq!(of(&[1, 40]), [1, 8], "the transpose");
        assert_eq!(of(&[40, 4, 1]), [8, 4, 1], "columns in two dimensions");
        assert_eq!(of(&[80, 1]), [16, 1], "every second row");
        assert_eq!(of(&[40, 0]), [8, 0], "an expanded dimension");
    }
}
