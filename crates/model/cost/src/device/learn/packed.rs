//! Trees as few bytes: thresholds by number, leaves in 16 bits, children where they are expected.

use super::error::TreesError;
use super::trees::{Node, Root, Trees};

/// What stands for a leaf among features.
const LEAF: u8 = 255;

/// Trees level by level, one byte and one number a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Packed {
    /// What every row begins with.
    pub base: f32,
    /// What leaves are multiples of.
    pub step: f32,
    /// Number of trees.
    pub trees: u32,
    /// The thresholds of each feature.
    pub thresholds: Vec<Vec<f32>>,
    /// The feature of each node; 255 marks a leaf.
    pub features: Vec<u8>,
    /// Which threshold of the feature; for a leaf, how many steps, offset by 32,768.
    pub values: Vec<u16>,
}

/// Packs trees.
#[must_use]
pub fn pack(trees: &Trees) -> Packed {
    let mut thresholds: Vec<Vec<f32>> = vec![Vec::new(); trees.columns];
    let splits = || trees.nodes.iter().filter(|node| node.threshold.is_finite());
    splits().for_each(|node| thresholds[usize::from(node.feature)].push(node.threshold));
    for values in &mut thresholds {
        values.sort_by(f32::total_cmp);
        values.dedup();
    }
    let mut features = Vec::with_capacity(trees.nodes.len());
    let mut values = Vec::with_capacity(trees.nodes.len());
    for (node, leaf) in trees.nodes.iter().zip(&trees.leaves) {
        if node.threshold.is_finite() {
            let of_feature = &thresholds[usize::from(node.feature)];
            features.push(node.feature as u8);
            values.push(of_feature.partition_point(|value| value.total_cmp(&node.threshold).is_lt()) as u16);
        } else {
            features.push(LEAF);
            values.push(((leaf / trees.step).round() as i32 + 32_768) as u16);
        }
    }
    Packed {
        base: trees.base,
        step: trees.step,
        trees: trees.roots.len() as u32,
        thresholds,
        features,
        values,
    }
}

/// Unpacks trees.
///
/// # Errors
///
/// What does not hold together.
pub fn unpack(packed: &Packed) -> Result<Trees, TreesError> {
    let columns = packed.thresholds.len();
    if !(packed.base.is_finite() && packed.step.is_finite() && packed.step > 0.0) {
        return Err(TreesError::Scale);
    }
    let mut packed_nodes = packed.features.iter().zip(&packed.values);
    let mut trees = Trees::constant(packed.base, columns);
    trees.step = packed.step;
    trees.nodes.reserve_exact(packed.features.len());
    trees.leaves.reserve_exact(packed.features.len());
    for _ in 0..packed.trees {
        let start = trees.nodes.len() as u32;
        // Children come in the order of their parents, so their places need not be written down.
        let (mut here, mut expected, mut level_end, mut depth) = (0u16, 1u16, 1u16, 0u16);
        while here < expected {
            if here == level_end {
                level_end = expected;
                depth += 1;
            }
            let (&feature, &value) = packed_nodes.next().ok_or(TreesError::Short)?;
            if feature == LEAF {
                trees.nodes.push(Node { threshold: f32::INFINITY, feature: 0, below: here });
                trees.leaves.push((i32::from(value) - 32_768) as f32 * packed.step);
            } else {
                let thresholds = packed.thresholds.get(usize::from(feature)).ok_or(TreesError::NoFeature)?;
                let &threshold = thresholds.get(usize::from(value)).ok_or(TreesError::NoThreshold)?;
                if !threshold.is_finite() {
                    return Err(TreesError::Threshold);
                }
                trees.nodes.push(Node { threshold, feature: feature.into(), below: expected });
                trees.leaves.push(0.0);
                expected = expected.checked_add(2).ok_or(TreesError::Nodes)?;
            }
            here += 1;
        }
        trees.roots.push(Root { start, nodes: here, depth });
    }
    if packed_nodes.next().is_some() { Err(TreesError::Spare) } else { Ok(trees) }
}

#[cfg(test)]
mod tests {
    use super::super::trees::Grown;
    use super::*;

    fn example() -> Trees {
        let split = |feature, threshold, children| Grown::Split { feature, threshold, children };
        let one = vec![
            split(0, 1.5, [1, 4]),
            split(1, -2.0, [2, 3]),
            Grown::Leaf(0.25),
            Grown::Leaf(-0.1),
            Grown::Leaf(0.07),
        ];
        let other = vec![split(1, 3.0, [2, 1]), Grown::Leaf(-0.3), Grown::Leaf(0.3)];
        Trees::new(1.0, 2, &[one, other, vec![Grown::Leaf(0.01)]]).unwrap()
    }

    #[test]
    fn what_is_packed_comes_back_bit_by_bit() {
        let trees = example();
        assert_eq!(unpack(&pack(&trees)).unwrap(), trees);
        let constant = Trees::constant(2.0, 0);
        assert_eq!(unpack(&pack(&constant)).unwrap(), constant);
    }

    #[test]
    fn damage_is_refused() {
        let good = pack(&example());
        let breaks: [fn(&mut Packed); 6] = [
            |p| p.trees += 1,
            |p| p.trees -= 1,
            |p| p.features[0] = 9,
            |p| p.values[0] = 77,
            |p| p.step = 0.0,
            |p| p.features[2] = 0,
        ];
        for (at, damage) in breaks.into_iter().enumerate() {
            let mut packed = good.clone();
            damage(&mut packed);
            assert!(unpack(&packed).is_err(), "damage {at}");
        }
    }
}
