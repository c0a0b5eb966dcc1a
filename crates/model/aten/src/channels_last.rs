//! Channels-last images: the tensors of a step that are images, and their strides.

use std::collections::BTreeSet;

use smallvec::SmallVec;

/// Parts of the names of ops on images, whose arguments and results change their layout.
const OF_IMAGES: [&str; 5] = ["conv", "batch_norm", "pool", "upsample", "group_norm"];

/// Name of an op, and its input and output tensors of the rank of images.
pub type ImageOp<'n, T> = (&'n str, Vec<T>);

/// Returns the inputs and outputs of ops on images, and all tensors that share an elementwise op with one of them.
pub fn images<'s, T: Copy + Ord>(ops: &[ImageOp<'_, T>], shape: impl Fn(T) -> &'s [i64]) -> BTreeSet<T> {
    let named = |name: &str| OF_IMAGES.iter().any(|word| name.contains(word));
    let of_images = ops.iter().filter(|(name, _)| named(name));
    let mut images: BTreeSet<T> = of_images.flat_map(|(_, tensors)| tensors.iter().copied()).collect();
    let alike = |tensors: &[T]| tensors.iter().all(|&tensor| shape(tensor) == shape(tensors[0]));
    let elementwise: Vec<&[T]> =
        ops.iter().map(|(_, tensors)| tensors.as_slice()).filter(|tensors| alike(tensors)).collect();
    loop {
        let known = images.len();
        for tensors in &elementwise {
            if tensors.iter().any(|tensor| images.contains(tensor)) {
                images.extend(tensors.iter().copied());
            }
        }
        if images.len() == known {
            return images;
        }
    }
}

/// Returns the strides of a dense shape with the second dimension innermost, in elements; `None` if they equal the contiguous strides, or if the
/// shape is not that of an image.
#[must_use]
pub fn strides(shape: &[i64]) -> Option<SmallVec<[i64; 5]>> {
    let [count, channels, pixels @ ..] = shape else { return None };
    let all = pixels.iter().try_fold(1_i64, |all, &size| all.checked_mul(size))?;
    if pixels.len() < 2 || *count <= 0 || *channels <= 1 || all <= 1 {
        return None;
    }
    let mut strides: SmallVec<[i64; 5]> = SmallVec::from_elem(1, shape.len());
    let mut step = *channels;
    for (stride, &size) in strides[2..].iter_mut().zip(pixels).rev() {
        *stride = step;
        step = step.checked_mul(size)?;
    }
    strides[0] = step;
    Some(strides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_channels_of_a_pixel_lie_together() {
        assert_eq!(strides(&[8, 3, 4, 5]).unwrap()[..], [60, 1, 15, 3]);
        assert_eq!(strides(&[8, 3, 2, 4, 5]).unwrap()[..], [120, 1, 60, 15, 3]);
        assert_eq!([strides(&[8, 1, 4, 5]), strides(&[8, 3, 1, 1]), strides(&[8, 3])], [None, None, None]);
    }

    #[test]
    fn images_go_through_elementwise_ops_and_no_others() {
        let shapes: [&[i64]; 4] = [&[8, 3, 4, 4], &[8, 6, 4, 4], &[8, 6, 4, 4], &[6, 8, 4, 4]];
        let ops =
            [("aten::convolution", vec![0, 1]), ("aten::relu", vec![1, 2]), ("aten::transpose", vec![2, 3])];
        let found = images(&ops, |at: usize| shapes[at]);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
    }
}
