//! Regression trees: their memory layout, and their evaluation.

use super::error::TreesError;
use super::table::Table;

/// Finest step of leaves: over hundreds of trees, the roundings add up to a thousandth.
const FINEST: f32 = 1e-4;

/// Rows that go through a tree together, so that their loads overlap.
const LANES: usize = 8;

/// Rows that go through all trees before the next ones do: their ranks stay in the second-level cache.
const BLOCK: usize = 64 * LANES;

/// Thresholds per byte: a value has reached none of them up to all.
const RANKS: u16 = 255;

/// Ranks of a row: any byte is a valid index.
const COLUMNS: usize = 256;

/// A sum of regression trees.
///
/// Rows are compared with thresholds once, not in every tree: a split uses the number of thresholds that a value has reached.
/// So a node takes four bytes, and many of them fit into caches.
#[derive(Debug, Clone, PartialEq)]
pub struct Trees {
    pub(super) base: f32,
    /// Number of features of a row.
    pub(super) features: usize,
    /// Unit of leaves, which are whole multiples of it.
    pub(super) step: f32,
    pub(super) columns: Vec<Column>,
    pub(super) nodes: Vec<Node>,
    /// Number of steps that each node adds: 0 for splits.
    pub(super) leaves: Vec<i16>,
    pub(super) roots: Vec<Root>,
}

/// Thresholds of a feature, at most [`RANKS`], in ascending order; those of a feature that has more are in several columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub feature: u8,
    pub thresholds: Vec<f32>,
}

/// A split; or a leaf, which is a split that every value stays at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub column: u8,
    /// Index of the column's threshold. A leaf has [`Node::LEAF`]: no value reaches more.
    pub threshold: u8,
    /// Child for values below the threshold, counted from the root; the other child is next to it.
    pub below: u16,
}

impl Node {
    const LEAF: u8 = RANKS as u8;

    /// A leaf whose index is not known yet.
    pub(super) fn leaf() -> Node {
        Node { column: 0, threshold: Node::LEAF, below: 0 }
    }

    pub(super) fn is_leaf(self) -> bool {
        self.threshold == Node::LEAF
    }
}

/// First column of each feature.
#[derive(Debug)]
pub(super) struct Places([u8; 256]);

impl Places {
    /// Returns the columns of these thresholds of each feature, in ascending order and each once, and the first column of each.
    pub(super) fn from_thresholds(thresholds: &[Vec<f32>]) -> Result<(Vec<Column>, Places), TreesError> {
        let mut columns = Vec::new();
        let mut places = Places([0; 256]);
        for (feature, thresholds) in thresholds.iter().enumerate() {
            if thresholds.is_empty() {
                continue;
            }
            let feature = u8::try_from(feature).map_err(|_| TreesError::NoFeature)?;
            let first = u8::try_from(columns.len()).map_err(|_| TreesError::Thresholds)?;
            places.0[usize::from(feature)] = first;
            let chunks = thresholds.chunks(RANKS.into());
            columns.extend(chunks.map(|chunk| Column { feature, thresholds: chunk.to_vec() }));
        }
        if columns.len() > COLUMNS { Err(TreesError::Thresholds) } else { Ok((columns, places)) }
    }

    /// Returns a split at a threshold of a feature, by its number; the children are not known yet. A feature or number that does not exist
    /// gives a wrong node.
    pub(super) fn split(&self, feature: u8, number: u16) -> Node {
        let first = self.0[usize::from(feature)];
        let column = first.wrapping_add((number / RANKS) as u8);
        Node { column, threshold: (number % RANKS) as u8, below: 0 }
    }
}

/// Position of a tree, and its depth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Root {
    pub start: u32,
    pub nodes: u16,
    pub depth: u16,
}

/// A node of a grown tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GrownNode {
    /// Values of a feature below the threshold go to the first child, others to the second.
    Split {
        feature: u16,
        threshold: f32,
        /// Indices of the children.
        children: [usize; 2],
    },
    /// Adds this value.
    Leaf(f32),
}

impl Trees {
    /// Creates a sum with the same value for every row.
    #[must_use]
    pub fn constant(value: f32, features: usize) -> Trees {
        Trees {
            base: value,
            features,
            step: 1.0,
            columns: Vec::new(),
            nodes: Vec::new(),
            leaves: Vec::new(),
            roots: Vec::new(),
        }
    }

    /// Creates a sum from grown trees, each with its root first. Leaves are rounded to whole steps of which the largest has
    /// no more than 16 bits, as in files.
    ///
    /// # Errors
    ///
    /// A child that does not exist, has two parents or is its own ancestor; a feature that does not exist; a tree of
    /// more than 65,535 nodes; more thresholds than the format can number.
    pub fn new(base: f32, features: usize, grown: &[Vec<GrownNode>]) -> Result<Trees, TreesError> {
        let mut largest = 0f32;
        let mut thresholds = vec![Vec::new(); features];
        for node in grown.iter().flatten() {
            match *node {
                GrownNode::Leaf(value) => largest = largest.max(value.abs()),
                GrownNode::Split { feature, threshold, .. } => {
                    let of = thresholds.get_mut(usize::from(feature)).filter(|_| threshold.is_finite());
                    of.ok_or(TreesError::NoFeature)?.push(threshold);
                }
            }
        }
        for values in &mut thresholds {
            values.sort_by(f32::total_cmp);
            values.dedup();
        }
        let (columns, places) = Places::from_thresholds(&thresholds)?;
        let step = (largest / 32_767.0).max(FINEST);
        let mut trees = Trees { step, columns, ..Trees::constant(base, features) };
        for tree in grown {
            trees.plant(tree, &thresholds, &places)?;
        }
        Ok(trees)
    }

    /// Adds a tree, level by level.
    fn plant(
        &mut self,
        tree: &[GrownNode],
        thresholds: &[Vec<f32>],
        places: &Places,
    ) -> Result<(), TreesError> {
        let start = self.nodes.len() as u32;
        let mut queue = vec![(0usize, 0u16)];
        let mut depth = 0;
        let mut here = 0;
        while let Some(&(at, level)) = queue.get(here) {
            match *tree.get(at).ok_or(TreesError::NoChild)? {
                GrownNode::Leaf(value) => {
                    self.nodes.push(Node { below: here as u16, ..Node::leaf() });
                    let steps = (value / self.step).round().clamp(-32_767.0, 32_767.0);
                    self.leaves.push(steps as i16);
                    depth = depth.max(level);
                }
                GrownNode::Split { feature, threshold, children } => {
                    let below = queue.len();
                    queue.extend(children.map(|child| (child, level + 1)));
                    if queue.len() > tree.len().min(usize::from(u16::MAX)) {
                        return Err(TreesError::Nodes);
                    }
                    let of_feature = &thresholds[usize::from(feature)];
                    let number = of_feature.partition_point(|&value| value < threshold);
                    let split = places.split(feature as u8, number as u16);
                    self.nodes.push(Node { below: below as u16, ..split });
                    self.leaves.push(0);
                }
            }
            here += 1;
        }
        self.roots.push(Root { start, nodes: here as u16, depth });
        Ok(())
    }

    /// Returns the number of trees.
    #[must_use]
    pub fn len(&self) -> usize {
        self.roots.len()
    }

    /// Whether it is a constant.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// Returns the number of features that they expect.
    #[must_use]
    pub fn features(&self) -> usize {
        self.features
    }

    /// Returns the sum for each row, tree by tree: one tree is small enough to stay in the first-level cache. Rows of too
    /// few features give the constant.
    #[must_use]
    pub fn predict(&self, table: &Table) -> Vec<f32> {
        let mut sums = vec![self.base; table.rows()];
        if table.columns() < self.features || self.is_empty() {
            return sums;
        }
        for (block, sums) in sums.chunks_mut(BLOCK).enumerate() {
            // Lanes without a row repeat the last.
            let lanes = 0..sums.len().next_multiple_of(LANES);
            let row = |lane: usize| table.row(block * BLOCK + lane.min(sums.len() - 1));
            let ranks: Vec<_> = lanes.map(|lane| self.ranks(row(lane))).collect();
            self.add(&ranks, sums);
        }
        sums
    }

    /// Adds the values of the trees to the sum of each row, tree by tree.
    fn add(&self, ranks: &[[u8; COLUMNS]], sums: &mut [f32]) {
        let (groups, _) = ranks.as_chunks::<LANES>();
        for root in &self.roots {
            let range = root.start as usize..root.start as usize + usize::from(root.nodes);
            let (nodes, leaves) = (&self.nodes[range.clone()], &self.leaves[range]);
            for (rows, sums) in groups.iter().zip(sums.chunks_mut(LANES)) {
                let mut places = [0; LANES];
                match sums.len() {
                    1 => descend::<1>(nodes, root.depth, rows, &mut places),
                    2 => descend::<2>(nodes, root.depth, rows, &mut places),
                    3 | 4 => descend::<4>(nodes, root.depth, rows, &mut places),
                    _ => descend::<LANES>(nodes, root.depth, rows, &mut places),
                }
                for (sum, place) in sums.iter_mut().zip(places) {
                    *sum += f32::from(leaves[usize::from(place)]) * self.step;
                }
            }
        }
    }

    /// Returns the number of thresholds of each column that a row has reached.
    fn ranks(&self, row: &[f32]) -> [u8; COLUMNS] {
        let mut ranks = [0; COLUMNS];
        for (rank, column) in ranks.iter_mut().zip(&self.columns) {
            let value = row[usize::from(column.feature)];
            *rank = column.thresholds.partition_point(|&threshold| threshold <= value) as u8;
        }
        ranks
    }
}

/// Finds the leaves of a tree for the first `ROWS` of these rows.
fn descend<const ROWS: usize>(
    nodes: &[Node],
    depth: u16,
    rows: &[[u8; COLUMNS]; LANES],
    places: &mut [u16; LANES],
) {
    let mut at = [0u16; ROWS];
    for _ in 0..depth {
        for (row, at) in rows.iter().zip(&mut at) {
            let node = nodes[usize::from(*at)];
            *at = node.below + u16::from(row[usize::from(node.column)] > node.threshold);
        }
    }
    places[..ROWS].copy_from_slice(&at);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(feature: u16, threshold: f32, children: [usize; 2]) -> GrownNode {
        GrownNode::Split { feature, threshold, children }
    }

    #[test]
    fn a_row_goes_where_its_values_send_it() {
        let tree = vec![
            split(0, 1.0, [1, 2]),
            GrownNode::Leaf(-1.0),
            split(1, 5.0, [3, 4]),
            GrownNode::Leaf(1.0),
            GrownNode::Leaf(0.5),
        ];
        let trees = Trees::new(10.0, 2, &[tree.clone(), tree]).unwrap();
        let mut table = Table::new(2);
        let rows = [[0.0, 9.0], [1.0, 4.0], [1.0, 5.0], [f32::NAN, 0.0], [f32::INFINITY, f32::INFINITY]];
        rows.iter().cycle().take(2 * BLOCK + 3).for_each(|row| table.push(|out| out.extend(row)));
        let expected = [8.0, 12.0, 11.0, 8.0, 11.0];
        for (at, sum) in trees.predict(&table).into_iter().enumerate() {
            assert!((sum - expected[at % 5]).abs() < 1e-4, "row {at}: {sum}");
        }
    }

    #[test]
    fn what_is_not_a_tree_is_refused() {
        let cycle = vec![split(0, 0.0, [0, 1]), GrownNode::Leaf(0.0)];
        let missing = vec![split(0, 0.0, [1, 2]), GrownNode::Leaf(0.0)];
        let feature = vec![split(7, 0.0, [1, 2]), GrownNode::Leaf(0.0), GrownNode::Leaf(0.0)];
        for tree in [cycle, missing, feature, vec![]] {
            assert!(Trees::new(0.0, 2, &[tree]).is_err());
        }
    }

    #[test]
    fn rows_of_too_few_features_do_not_panic() {
        let tree = vec![split(1, 1.0, [1, 2]), GrownNode::Leaf(-1.0), GrownNode::Leaf(1.0)];
        let mut table = Table::new(1);
        table.push(|out| out.push(3.0));
        assert_eq!(Trees::new(2.0, 2, &[tree]).unwrap().predict(&table), [2.0]);
    }
}
