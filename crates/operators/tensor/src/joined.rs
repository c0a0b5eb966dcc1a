//! Layouts of one shape, reduced to as few dimensions as possible.

use crate::Layout;

/// Layouts of one shape, without dimensions of size 1. Neighbouring dimensions are joined where every layout steps
/// through both evenly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedLayouts {
    /// The remaining sizes; empty where all were 1.
    pub shape: Vec<usize>,
    /// Strides of each layout, one for each size.
    pub strides: Vec<Vec<usize>>,
}

impl JoinedLayouts {
    /// Joins layouts that all have the shape of the first; an empty slice gives an empty result.
    #[must_use]
    pub fn new(layouts: &[Layout]) -> JoinedLayouts {
        let mut shape: Vec<usize> = Vec::new();
        let mut strides: Vec<Vec<usize>> = vec![Vec::new(); layouts.len()];
        let sizes = layouts.first().map_or(&[][..], Layout::shape);
        for (axis, &size) in sizes.iter().enumerate().filter(|&(_, &size)| size != 1) {
            let joins = !shape.is_empty()
                && layouts.iter().zip(&strides).all(|(layout, strides)| {
                    strides.last().copied() == layout.strides()[axis].checked_mul(size)
                });
            match shape.last_mut() {
                Some(last) if joins => *last *= size,
                _ => shape.push(size),
            }
            for (layout, strides) in layouts.iter().zip(&mut strides) {
                if joins {
                    strides.pop();
                }
                strides.push(layout.strides()[axis]);
            }
        }
        JoinedLayouts { shape, strides }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_join_where_all_layouts_step_evenly() {
        let whole = Layout::contiguous(&[3, 1, 4, 8]).unwrap();
        assert_eq!(
            JoinedLayouts::new(std::slice::from_ref(&whole)),
            JoinedLayouts { shape: vec![96], strides: vec![vec![1]] }
        );
        let bias = Layout::contiguous(&[8]).unwrap().broadcast(&[3, 1, 4, 8]).unwrap();
        let both = JoinedLayouts::new(&[whole, bias]);
        assert_eq!(both, JoinedLayouts { shape: vec![12, 8], strides: vec![vec![8, 1], vec![0, 1]] });
        assert!(JoinedLayouts::new(&[]).shape.is_empty());
    }
}
