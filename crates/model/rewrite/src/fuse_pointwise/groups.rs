//! Disjoint groups of ops that are merged (union-find).

use super::units::DeviceWork;

/// The groups of ops, each identified by any of its ops.
pub(super) struct Groups {
    /// The group into which a group was merged; itself where it still exists.
    parent: Vec<usize>,
    groups: Vec<Group>,
}

#[derive(Default)]
struct Group {
    members: Vec<usize>,
    /// The first and the last op.
    ends: [usize; 2],
    /// Elementwise ops that take an output of the group: those of other groups prevent a merge, until they are merged into it.
    takers: Vec<usize>,
    /// Whether an op that can never join the group takes an output of it.
    closed: bool,
}

impl Groups {
    /// No groups yet, for this number of ops.
    pub fn new(ops: usize) -> Groups {
        Groups { parent: (0..ops).collect(), groups: (0..ops).map(|_| Group::default()).collect() }
    }

    /// Adds a group of one op, the last so far.
    pub fn add(&mut self, at: usize) {
        self.groups[at] = Group { members: vec![at], ends: [at, at], ..Group::default() };
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.parent[at] != at {
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    /// Whether two ops are in one group.
    pub fn are_one(&mut self, one: usize, other: usize) -> bool {
        self.root(one) == self.root(other)
    }

    /// The first op of a group.
    pub fn first(&mut self, at: usize) -> usize {
        let root = self.root(at);
        self.groups[root].ends[0]
    }

    /// One op of each group that contains any of the given ops, ordered by the last ops of the groups.
    pub fn distinct(&mut self, ops: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut roots: Vec<usize> = ops.map(|at| self.root(at)).collect();
        roots.sort_by_key(|&root| self.groups[root].ends[1]);
        roots.dedup();
        roots
    }

    /// Merges a group before the last op with the group of the last op, unless an op of a third group takes an output of either.
    pub fn join(&mut self, before: usize, last: usize) {
        let both = [self.root(before), self.root(last)];
        if both[0] == both[1] || both.iter().any(|&root| self.is_in_the_way(root, both)) {
            return;
        }
        let [small, large] = if self.groups[both[0]].members.len() < self.groups[both[1]].members.len() {
            both
        } else {
            [both[1], both[0]]
        };
        let moved = std::mem::take(&mut self.groups[small]);
        let into = &mut self.groups[large];
        into.members.extend(moved.members);
        into.takers.extend(moved.takers);
        into.ends = [into.ends[0].min(moved.ends[0]), into.ends[1].max(moved.ends[1])];
        self.parent[small] = large;
    }

    /// Whether an op outside of two groups takes an output of one of them.
    fn is_in_the_way(&mut self, group: usize, both: [usize; 2]) -> bool {
        if self.groups[group].closed {
            return true;
        }
        let mut at = self.groups[group].takers.len();
        while at > 0 {
            at -= 1;
            let taker = self.groups[group].takers[at];
            let own = self.root(taker);
            if own == group {
                self.groups[group].takers.swap_remove(at);
            } else if !both.contains(&own) {
                // The next call finds it at once.
                let last = self.groups[group].takers.len() - 1;
                self.groups[group].takers.swap(at, last);
                return true;
            }
        }
        false
    }

    /// Records that an op takes an output of `maker`; returns whether further takers matter.
    pub fn taken(&mut self, maker: usize, at: usize, does: DeviceWork) -> bool {
        let group = self.root(maker);
        if matches!(does, DeviceWork::Elementwise { .. }) {
            if self.root(at) != group && self.groups[group].takers.last() != Some(&at) {
                self.groups[group].takers.push(at);
            }
        } else {
            self.groups[group].closed = true;
        }
        !self.groups[group].closed
    }

    /// The members of all groups in order, by their last ops.
    pub fn all(self) -> Vec<Vec<usize>> {
        let mut all: Vec<Group> = self.groups.into_iter().filter(|group| !group.members.is_empty()).collect();
        all.sort_by_key(|group| group.ends[1]);
        all.into_iter()
            .map(|mut group| {
                group.members.sort_unstable();
                group.members
            })
            .collect()
    }
}
