//! Compact form of trees: thresholds by number, leaves in 16 bits, children in breadth-first order.

use super::error::TreesError;
use super::trees::{Node, Places, Root, Trees};

/// Mark of a leaf among features.
const LEAF: u8 = 255;

/// Bit that an offset of 32,768 flips in 16 bits.
const SIGN: u16 = 1 << 15;

/// Trees level by level, one byte and one number per node.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedTrees {
    /// Start value of every row.
    pub base: f32,
    /// Unit of leaves.
    pub step: f32,
    pub trees: u32,
    /// Thresholds of each feature.
    pub thresholds: Vec<Vec<f32>>,
    /// Feature of each node; 255 marks a leaf.
    pub features: Vec<u8>,
    /// Index of the feature's threshold; for a leaf, its number of steps, offset by 32,768.
    pub values: Vec<u16>,
}

/// Packs trees.
#[must_use]
pub fn pack(trees: &Trees) -> PackedTrees {
    let mut thresholds: Vec<Vec<f32>> = vec![Vec::new(); trees.features];
    // Number of thresholds of its feature before each column.
    let mut before = Vec::with_capacity(trees.columns.len());
    for column in &trees.columns {
        let of_feature = &mut thresholds[usize::from(column.feature)];
        before.push(of_feature.len());
        of_feature.extend(&column.thresholds);
    }
    let number = |(node, &leaf): (&Node, &i16)| {
        if node.is_leaf() {
            return (LEAF, leaf.cast_unsigned() ^ SIGN);
        }
        let column = usize::from(node.column);
        let number = before[column] + usize::from(node.threshold);
        (trees.columns[column].feature, number as u16)
    };
    let (features, values) = trees.nodes.iter().zip(&trees.leaves).map(number).unzip();
    PackedTrees {
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
/// The first inconsistency.
pub fn unpack(packed: &PackedTrees) -> Result<Trees, TreesError> {
    if !(packed.base.is_finite() && packed.step.is_finite() && packed.step > 0.0) {
        return Err(TreesError::Scale);
    }
    for thresholds in &packed.thresholds {
        if !thresholds.iter().all(|threshold| threshold.is_finite()) || !thresholds.is_sorted() {
            return Err(TreesError::Threshold);
        }
    }
    let (columns, places) = Places::from_thresholds(&packed.thresholds)?;
    let mut counts = [0; 256];
    counts.iter_mut().zip(&packed.thresholds).for_each(|(count, thresholds)| *count = thresholds.len());
    counts[usize::from(LEAF)] = usize::MAX;
    let both = || packed.features.iter().zip(&packed.values).map(|(&feature, &value)| (feature, value));
    if both().any(|(feature, value)| usize::from(value) >= counts[usize::from(feature)]) {
        return Err(TreesError::NoThreshold);
    }
    // Every other node is a leaf: code without branches has no mispredictions.
    let node = |(feature, value)| {
        if feature == LEAF { Node::leaf() } else { places.split(feature, value) }
    };
    let leaf = |(feature, value): (u8, u16)| if feature == LEAF { (value ^ SIGN).cast_signed() } else { 0 };
    let mut nodes: Vec<Node> = both().map(node).collect();
    let leaves = both().map(leaf).collect();
    let mut roots = Vec::new();
    let (mut start, mut rest) = (0, nodes.as_mut_slice());
    for _ in 0..packed.trees {
        let (nodes, depth) = join(rest)?;
        rest = &mut rest[usize::from(nodes)..];
        roots.push(Root { start, nodes, depth });
        start += u32::from(nodes);
    }
    if !rest.is_empty() {
        return Err(TreesError::Spare);
    }
    let features = packed.thresholds.len();
    Ok(Trees { base: packed.base, features, step: packed.step, columns, nodes, leaves, roots })
}

/// Sets the children of the first tree's nodes; returns its number of nodes and its depth. Children come in
/// the order of their parents, so their indices are not stored.
fn join(nodes: &mut [Node]) -> Result<(u16, u16), TreesError> {
    let (mut here, mut expected, mut level_end, mut depth) = (0_usize, 1, 1, 0_usize);
    for node in nodes {
        if here == level_end {
            level_end = expected;
            depth += 1;
        }
        let leaf = node.is_leaf();
        node.below = if leaf { here as u16 } else { expected as u16 };
        expected += if leaf { 0 } else { 2 };
        here += 1;
        if here == expected {
            let number = |count| u16::try_from(count).map_err(|_| TreesError::Nodes);
            return Ok((number(here)?, number(depth)?));
        }
    }
    Err(TreesError::Short)
}

#[cfg(test)]
mod tests {
    use super::super::table::Table;
    use super::super::trees::GrownNode;
    use super::*;

    fn example() -> Trees {
        let split = |feature, threshold, children| GrownNode::Split { feature, threshold, children };
        let one = vec![
            split(0, 1.5, [1, 4]),
            split(1, -2.0, [2, 3]),
            GrownNode::Leaf(0.25),
            GrownNode::Leaf(-0.1),
            GrownNode::Leaf(0.07),
        ];
        let other = vec![split(1, 3.0, [2, 1]), GrownNode::Leaf(-0.3), GrownNode::Leaf(0.3)];
        Trees::new(1.0, 2, &[one, other, vec![GrownNode::Leaf(0.01)]]).unwrap()
    }

    #[test]
    fn what_is_packed_comes_back_bit_by_bit() {
        let trees = example();
        assert_eq!(unpack(&pack(&trees)).unwrap(), trees);
        let constant = Trees::constant(2.0, 0);
        assert_eq!(unpack(&pack(&constant)).unwrap(), constant);
    }

    #[test]
    fn more_thresholds_than_a_byte_counts_come_back_too() {
        let one = |at: u16| {
            let split = GrownNode::Split { feature: at % 2, threshold: f32::from(at / 2), children: [1, 2] };
            vec![split, GrownNode::Leaf(0.0), GrownNode::Leaf(f32::from(at))]
        };
        let grown: Vec<_> = (0..1400).map(one).collect();
        let trees = Trees::new(0.0, 2, &grown).unwrap();
        let packed = pack(&trees);
        assert_eq!(packed.thresholds.iter().map(Vec::len).collect::<Vec<_>>(), [700, 700]);
        assert_eq!(unpack(&packed).unwrap(), trees);
        let mut table = Table::new(2);
        let rows = [[-1.0, -1.0], [0.0, -1.0], [254.0, 255.0], [255.5, 600.0], [699.0, 1e9]];
        rows.iter().for_each(|row| table.push(|out| out.extend(row)));
        for (row, sum) in rows.iter().zip(trees.predict(&table)) {
            let reached = |at: &u16| row[usize::from(at % 2)] >= f32::from(at / 2);
            let expected: f32 = (0..1400).filter(reached).map(f32::from).sum();
            assert!((sum - expected).abs() <= 1e-3 * expected, "{row:?}: {sum}, not {expected}");
        }
        let many =
            (0..u16::MAX).map(|at| GrownNode::Split { feature: 0, threshold: at.into(), children: [0, 0] });
        assert_eq!(Trees::new(0.0, 1, &[many.collect()]), Err(TreesError::Thresholds));
    }

    #[test]
    fn damage_is_refused() {
        let good = pack(&example());
        let breaks: [fn(&mut PackedTrees); 8] = [
            |p| p.trees += 1,
            |p| p.trees -= 1,
            |p| p.features[0] = 9,
            |p| p.values[0] = 77,
            |p| p.step = 0.0,
            |p| p.features[2] = 0,
            |p| p.thresholds[1].reverse(),
            |p| p.thresholds[0][0] = f32::NAN,
        ];
        for (at, damage) in breaks.into_iter().enumerate() {
            let mut packed = good.clone();
            damage(&mut packed);
            assert!(unpack(&packed).is_err(), "damage {at}");
        }
    }
}
