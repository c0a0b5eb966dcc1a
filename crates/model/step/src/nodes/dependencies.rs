//! Nodes that each node waits for.

use super::bytes::Uses;

/// Dependencies of nodes, each added after those before it.
#[derive(Debug, Default)]
pub(super) struct Dependencies {
    uses: Vec<Uses>,
    /// Nodes that each one waits for, directly or not.
    before: Vec<Vec<bool>>,
    /// Nodes of the current graph.
    graph: Vec<usize>,
    /// Nodes that the current graph waits for.
    since: Vec<usize>,
    /// Exchanges with other ranks in progress.
    open: Vec<usize>,
    /// Whether another node waits for it.
    awaited: Vec<bool>,
}

impl Dependencies {
    /// Adds a node; returns the nodes that it waits for, the last one first, without those that others of them wait for. Nodes of a graph wait for
    /// those before them that use the same bytes, and the first ones for the graph before.
    pub fn add(&mut self, uses: Uses) -> Vec<usize> {
        let ended: Vec<usize> =
            self.open.iter().copied().filter(|&open| self.uses[open].conflicts(&uses)).collect();
        if !ended.is_empty() {
            self.flush();
            self.open.retain(|open| !ended.contains(open));
            self.since.extend(ended);
        }
        let among: Vec<usize> = self.graph.iter().rev().copied().collect();
        let mut found = self.found(&among, |own, at| own.uses[at].conflicts(&uses));
        if found.is_empty() {
            found = self.found(&self.since, |_, _| true);
        }
        self.graph.push(self.uses.len());
        self.push(uses, &found);
        found
    }

    /// Adds an exchange with other ranks, which runs beside later nodes; returns the nodes that it waits for: all of the graph before it.
    pub fn add_exchange(&mut self, uses: Uses) -> Vec<usize> {
        self.flush();
        let found = self.found(&self.since, |_, _| true);
        self.open.push(self.uses.len());
        self.push(uses, &found);
        found
    }

    /// Nodes that no other waits for.
    pub fn last(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.uses.len()).filter(|&node| !self.awaited[node])
    }

    /// Whether a node waits for another, directly or not.
    pub fn waits(&self, node: usize, other: usize) -> bool {
        self.before[node].get(other).is_some_and(|&waits| waits)
    }

    /// Those of some nodes that a new one waits for, without those that others of them wait for.
    fn found(&self, among: &[usize], waits: impl Fn(&Self, usize) -> bool) -> Vec<usize> {
        let mut before = vec![false; self.uses.len()];
        let mut found = Vec::new();
        for &at in among {
            if !before[at] && waits(self, at) {
                found.push(at);
                before[at] = true;
                before.iter_mut().zip(&self.before[at]).for_each(|(own, before)| *own |= before);
            }
        }
        found
    }

    fn push(&mut self, uses: Uses, found: &[usize]) {
        let mut before = vec![false; self.uses.len()];
        for &at in found {
            self.awaited[at] = true;
            before[at] = true;
            before.iter_mut().zip(&self.before[at]).for_each(|(own, before)| *own |= before);
        }
        self.uses.push(uses);
        self.before.push(before);
        self.awaited.push(false);
    }

    /// Ends the current graph: later nodes wait for it.
    fn flush(&mut self) {
        if !self.graph.is_empty() {
            let graph = std::mem::take(&mut self.graph);
            self.since = graph.into_iter().rev().filter(|&node| !self.awaited[node]).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bytes::tests::uses;
    use super::*;

    #[test]
    fn nodes_wait_for_their_data_alone() {
        let mut all = Dependencies::default();
        assert_eq!(all.add(uses(9, 0)), [] as [usize; 0]);
        assert_eq!(all.add(uses(0, 1)), [0]);
        assert_eq!(all.add(uses(0, 2)), [0]);
        // It needs the results of 0 and 2, and 2 waits for 0.
        assert_eq!(all.add(Uses::joined([uses(0, 3), uses(2, 3)].into_iter())), [2]);
        assert!(all.waits(3, 0) && !all.waits(3, 1));
        assert_eq!(all.last().collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn exchanges_run_beside_later_graphs() {
        let mut all = Dependencies::default();
        all.add(uses(9, 0));
        all.add(uses(9, 1));
        // It sends the result of 0, and waits for the whole graph before it.
        assert_eq!(all.add_exchange(uses(0, 2)), [1, 0]);
        // The next graph waits for the one before, and not for the exchange.
        assert_eq!(all.add(uses(1, 3)), [1, 0]);
        assert_eq!(all.add(uses(3, 4)), [3]);
        assert!(!all.waits(4, 2));
        // What takes the received data waits for the exchange and for the graph before it.
        assert_eq!(all.add(uses(2, 5)), [4, 2]);
        // An exchange that nothing waits for ends with the step.
        assert_eq!(all.add_exchange(uses(5, 6)), [5]);
        assert_eq!(all.last().collect::<Vec<_>>(), [6]);
    }
}
