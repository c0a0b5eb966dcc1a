//! Nesting of nodes: parents (which come first), children and ancestors.

use super::ids::NodeId;
use super::lists::Lists;
use rustc_hash::FxHashMap;

/// Counts of repaired parents in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Nodes with the id of an earlier node; children of the id go to the first node.
    pub duplicate_ids: usize,
    /// Nodes whose parent is not in the trace; they became roots.
    pub missing_parents: usize,
    /// Nodes that are their own parent or whose parent begins after them, as in a cycle; they became roots.
    pub late_parents: usize,
}

/// Nesting of nodes. Every parent comes before its children, so there are no cycles.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    parents: Vec<Option<NodeId>>,
    children: Lists<NodeId>,
    /// Position in a walk that visits each parent just before its children's subtrees.
    place: Vec<u32>,
    /// Number of nodes in the subtree, the node itself included.
    size: Vec<u32>,
    /// Last node of the subtree, in id order.
    last: Vec<NodeId>,
    /// Counts of repairs.
    pub repairs: Repairs,
}

impl Tree {
    /// Builds the tree from the nodes' ids and their parents' ids. A node with parent 0, or a node for which `is_root`
    /// holds and that is its own parent, is a root and not counted as a repair.
    #[must_use]
    pub fn new(ids: &[u64], parents: &[u64], is_root: impl Fn(usize) -> bool) -> Tree {
        let mut repairs = Repairs::default();
        let mut first = FxHashMap::default();
        for (at, &id) in ids.iter().enumerate() {
            let known = *first.entry(id).or_insert(at);
            repairs.duplicate_ids += usize::from(known != at);
        }
        let resolved: Vec<Option<NodeId>> = (0..ids.len())
            .map(|at| match first.get(&parents[at]) {
                Some(&parent) if parent < at => Some(NodeId::at(parent)),
                _ if parents[at] == 0 || is_root(at) => None,
                Some(_) => {
                    repairs.late_parents += 1;
                    None
                }
                None => {
                    repairs.missing_parents += 1;
                    None
                }
            })
            .collect();
        Tree { repairs, ..Tree::nest(resolved) }
    }

    fn nest(parents: Vec<Option<NodeId>>) -> Tree {
        let count = parents.len();
        let mut size = vec![1u32; count];
        let mut last: Vec<NodeId> = (0..count).map(NodeId::at).collect();
        for at in (0..count).rev() {
            if let Some(parent) = parents[at] {
                size[parent.index()] += size[at];
                last[parent.index()] = last[parent.index()].max(last[at]);
            }
        }
        let mut place = vec![0u32; count];
        let mut free = vec![0u32; count];
        let mut free_root = 0;
        for at in 0..count {
            let next = parents[at].map_or(&mut free_root, |parent| &mut free[parent.index()]);
            place[at] = *next;
            *next += size[at];
            free[at] = place[at] + 1;
        }
        let pairs = parents.iter().enumerate();
        let children = Lists::from_pairs(
            count,
            pairs.filter_map(|(at, parent)| Some((parent.as_ref()?.index(), NodeId::at(at)))),
        );
        Tree { parents, children, place, size, last, repairs: Repairs::default() }
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// Returns the largest nesting depth of a node, itself included; 0 if there are no nodes.
    #[must_use]
    pub fn depth(&self) -> usize {
        let mut depths: Vec<usize> = Vec::with_capacity(self.len());
        for parent in &self.parents {
            depths.push(parent.map_or(1, |parent| depths[parent.index()] + 1));
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// Returns the node directly around this one.
    #[must_use]
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.parents[node.index()]
    }

    /// Returns the nodes directly inside this one, in id order.
    #[must_use]
    pub fn children(&self, node: NodeId) -> &[NodeId] {
        self.children.get(node.index())
    }

    /// Whether `inner` is `outer` or somewhere inside it.
    #[must_use]
    pub fn encloses(&self, outer: NodeId, inner: NodeId) -> bool {
        let offset = self.place[inner.index()].wrapping_sub(self.place[outer.index()]);
        offset < self.size[outer.index()]
    }

    /// Whether one of the two is the other or is inside it.
    #[must_use]
    pub fn nested(&self, one: NodeId, other: NodeId) -> bool {
        self.encloses(one, other) || self.encloses(other, one)
    }

    /// Returns this node, the one around it, and so on outwards.
    pub fn ancestors(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(Some(node), |&node| self.parent(node))
    }

    /// Returns the nodes that end once `node` has begun: itself if it has no children, and each ancestor
    /// of which it is the last node; inner before outer.
    pub fn ending(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.ancestors(node).take_while(move |around| self.last[around.index()] == node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(at: u32) -> NodeId {
        NodeId(at)
    }

    #[test]
    fn nesting_survives_threads_that_take_turns() {
        // 1: root; 2 and 3: threads; 4 and 6 in 2; 5 and 7 in 3, between them.
        let tree = Tree::new(&[1, 2, 3, 4, 5, 6, 7], &[1, 1, 1, 2, 3, 4, 3], |at| at == 0);
        assert_eq!(tree.repairs, Repairs::default());
        assert_eq!(tree.children(node(2)), [node(4), node(6)]);
        assert!(tree.encloses(node(3), node(5)));
        assert!(!tree.encloses(node(3), node(4)));
        assert!(tree.encloses(node(0), node(6)));
        assert!(tree.nested(node(5), node(1)));
        assert!(!tree.nested(node(4), node(5)));
        assert_eq!(tree.ending(node(4)).collect::<Vec<_>>(), [node(4)]);
        assert_eq!(tree.ending(node(5)).collect::<Vec<_>>(), [node(5), node(3), node(1)]);
        assert_eq!(tree.ending(node(3)).count(), 0);
        assert_eq!(tree.depth(), 4);
    }

    #[test]
    fn bad_parents_are_counted() {
        let tree = Tree::new(&[1, 2, 2, 3, 4, 5], &[1, 1, 2, 4, 3, 99], |at| at == 0);
        let expected = Repairs { duplicate_ids: 1, missing_parents: 1, late_parents: 1 };
        assert_eq!(tree.repairs, expected);
        assert_eq!(tree.parent(node(2)), Some(node(1)));
        assert_eq!(tree.parent(node(3)), None);
        assert_eq!(tree.parent(node(4)), Some(node(3)));
        assert!(Tree::new(&[], &[], |_| false).is_empty());
        assert_eq!(Tree::new(&[], &[], |_| false).depth(), 0);
    }
}
