//! Regression trees: how they lie in memory, and their evaluation.

use super::error::TreesError;
use super::table::Table;

/// Leaves are not told apart more finely: of hundreds of trees, the roundings add up to a thousandth.
const FINEST: f32 = 1e-4;

/// Rows that go through a tree together, so that their loads overlap.
const LANES: usize = 8;

/// A sum of regression trees.
#[derive(Debug, Clone, PartialEq)]
pub struct Trees {
    pub(super) base: f32,
    pub(super) columns: usize,
    /// What leaves are whole multiples of.
    pub(super) step: f32,
    pub(super) nodes: Vec<Node>,
    /// What each node adds: 0 for splits.
    pub(super) leaves: Vec<f32>,
    pub(super) roots: Vec<Root>,
}

/// A split; or a leaf, which is a split where every value stays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Node {
    pub threshold: f32,
    pub feature: u16,
    /// The child for values below the threshold, counted from the root; the other child is next to it.
    pub below: u16,
}

/// Where a tree lies, and how deep it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Root {
    pub start: u32,
    pub nodes: u16,
    pub depth: u16,
}

/// A node of a tree as it was grown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Grown {
    /// Values of a feature below the threshold go to the first child, others to the second.
    Split {
        /// The feature.
        feature: u16,
        /// The threshold.
        threshold: f32,
        /// The children's places.
        children: [usize; 2],
    },
    /// Adds this.
    Leaf(f32),
}

impl Trees {
    /// The same for every row.
    #[must_use]
    pub fn constant(value: f32, columns: usize) -> Trees {
        Trees { base: value, columns, step: 1.0, nodes: Vec::new(), leaves: Vec::new(), roots: Vec::new() }
    }

    /// From grown trees, each with its root first. Leaves are rounded to whole steps of which the largest has
    /// no more than 16 bits, as files hold them.
    ///
    /// # Errors
    ///
    /// A child that is not there, has two parents or is its own ancestor; a feature that is not there; a tree of
    /// more than 65,535 nodes.
    pub fn new(base: f32, columns: usize, grown: &[Vec<Grown>]) -> Result<Trees, TreesError> {
        let largest = grown.iter().flatten().fold(0f32, |largest, node| match node {
            Grown::Leaf(value) => largest.max(value.abs()),
            Grown::Split { .. } => largest,
        });
        let mut trees = Trees::constant(base, columns);
        trees.step = (largest / 32_767.0).max(FINEST);
        for tree in grown {
            trees.plant(tree)?;
        }
        Ok(trees)
    }

    /// Adds a tree, level by level.
    fn plant(&mut self, tree: &[Grown]) -> Result<(), TreesError> {
        let start = self.nodes.len() as u32;
        let mut queue = vec![(0usize, 0u16)];
        let mut depth = 0;
        let mut here = 0;
        while let Some(&(at, level)) = queue.get(here) {
            let below = match *tree.get(at).ok_or(TreesError::NoChild)? {
                Grown::Leaf(value) => {
                    self.nodes.push(Node { threshold: f32::INFINITY, feature: 0, below: here as u16 });
                    self.leaves.push((value / self.step).round().clamp(-32_767.0, 32_767.0) * self.step);
                    depth = depth.max(level);
                    here += 1;
                    continue;
                }
                Grown::Split { feature, threshold, children } => {
                    if usize::from(feature) >= self.columns || !threshold.is_finite() {
                        return Err(TreesError::NoFeature);
                    }
                    let below = queue.len();
                    queue.extend(children.map(|child| (child, level + 1)));
                    Node { threshold, feature, below: below as u16 }
                }
            };
            if queue.len() > tree.len().min(usize::from(u16::MAX)) {
                return Err(TreesError::Nodes);
            }
            self.nodes.push(below);
            self.leaves.push(0.0);
            here += 1;
        }
        self.roots.push(Root { start, nodes: here as u16, depth });
        Ok(())
    }

    /// Number of trees.
    #[must_use]
    pub fn len(&self) -> usize {
        self.roots.len()
    }

    /// Whether it is a constant.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// Number of features they expect.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The sum for each row, tree by tree: one tree is small enough to stay in the first-level cache. Rows of too
    /// few features give the constant.
    #[must_use]
    pub fn predict(&self, table: &Table) -> Vec<f32> {
        let mut sums = vec![self.base; table.rows()];
        if table.columns() < self.columns || table.columns() == 0 {
            return sums;
        }
        let (full, rest) = (sums.len() / LANES * LANES, sums.len() % LANES);
        for root in &self.roots {
            let range = root.start as usize..root.start as usize + usize::from(root.nodes);
            let tree = (&self.nodes[range.clone()], &self.leaves[range], root.depth);
            for at in (0..full).step_by(LANES) {
                add::<LANES>(tree, table, at, &mut sums);
            }
            match rest {
                0 => {}
                1 => add::<1>(tree, table, full, &mut sums),
                2 => add::<2>(tree, table, full, &mut sums),
                3 | 4 => add::<4>(tree, table, full, &mut sums),
                _ => add::<LANES>(tree, table, full, &mut sums),
            }
        }
        sums
    }
}

/// Adds what a tree gives so many rows from one on; lanes that have no row repeat the last.
fn add<const ROWS: usize>(
    (nodes, leaves, depth): (&[Node], &[f32], u16),
    table: &Table,
    from: usize,
    sums: &mut [f32],
) {
    let last = sums.len() - 1;
    let rows: [&[f32]; ROWS] = std::array::from_fn(|lane| table.row((from + lane).min(last)));
    let mut places = [0u16; ROWS];
    for _ in 0..depth {
        for (row, place) in rows.iter().zip(&mut places) {
            let node = nodes[usize::from(*place)];
            *place = node.below + u16::from(row[usize::from(node.feature)] >= node.threshold);
        }
    }
    for (sum, place) in sums[from..].iter_mut().zip(places) {
        *sum += leaves[usize::from(place)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(feature: u16, threshold: f32, children: [usize; 2]) -> Grown {
        Grown::Split { feature, threshold, children }
    }

    #[test]
    fn a_row_goes_where_its_values_send_it() {
        let tree = vec![
            split(0, 1.0, [1, 2]),
            Grown::Leaf(-1.0),
            split(1, 5.0, [3, 4]),
            Grown::Leaf(1.0),
            Grown::Leaf(0.5),
        ];
        let trees = Trees::new(10.0, 2, &[tree.clone(), tree]).unwrap();
        let mut table = Table::new(2);
        let rows = [[0.0, 9.0], [1.0, 4.0], [1.0, 5.0], [f32::NAN, 0.0], [f32::INFINITY, f32::INFINITY]];
        rows.iter().cycle().take(19).for_each(|row| table.push(|out| out.extend(row)));
        let expected = [8.0, 12.0, 11.0, 8.0, 11.0];
        for (at, sum) in trees.predict(&table).into_iter().enumerate() {
            assert!((sum - expected[at % 5]).abs() < 1e-4, "row {at}: {sum}");
        }
    }

    #[test]
    fn what_is_not_a_tree_is_refused() {
        let cycle = vec![split(0, 0.0, [0, 1]), Grown::Leaf(0.0)];
        let missing = vec![split(0, 0.0, [1, 2]), Grown::Leaf(0.0)];
        let feature = vec![split(7, 0.0, [1, 2]), Grown::Leaf(0.0), Grown::Leaf(0.0)];
        for tree in [cycle, missing, feature, vec![]] {
            assert!(Trees::new(0.0, 2, &[tree]).is_err());
        }
    }

    #[test]
    fn rows_of_too_few_features_do_not_panic() {
        let tree = vec![split(1, 1.0, [1, 2]), Grown::Leaf(-1.0), Grown::Leaf(1.0)];
        let mut table = Table::new(1);
        table.push(|out| out.push(3.0));
        assert_eq!(Trees::new(2.0, 2, &[tree]).unwrap().predict(&table), [2.0]);
    }
}
