//! Nodes that each node waits for.

use super::bytes::Uses;

/// Dependencies of nodes, each added after those before it.
#[derive(Debug, Default)]
pub(super) struct Dependencies {
    uses: Vec<Uses>,
    /// Nodes that each one waits for, directly or not.
    before: Vec<Vec<bool>>,
}

impl Dependencies {
    /// Adds a node; returns the nodes that it waits for, the last one first, without those that others of them wait for.
    pub fn add(&mut self, uses: Uses) -> Vec<usize> {
        let mut before = vec![false; self.uses.len()];
        let mut found = Vec::new();
        for at in (0..self.uses.len()).rev() {
            if !before[at] && self.uses[at].conflicts(&uses) {
                found.push(at);
                before[at] = true;
                before.iter_mut().zip(&self.before[at]).for_each(|(own, before)| *own |= before);
            }
        }
        self.uses.push(uses);
        self.before.push(before);
        found
    }

    /// Whether a node waits for another, directly or not.
    pub fn waits(&self, node: usize, other: usize) -> bool {
        self.before[node].get(other).is_some_and(|&waits| waits)
    }
}
