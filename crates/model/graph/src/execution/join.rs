//! Finds the recorded host operator of each node: joins an execution trace with the Kineto trace of its step.

use super::alignment::{Alignment, Item, align};
use super::ids::NodeId;
use super::node::NodeKind;
use crate::ids::TraceOp;
use crate::names::EventName;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use steptime_trace::{ExecutionTrace, NameId, Trace};
use typed_index_collections::TiVec;

/// Maximum number of unmatched nodes that are listed.
const SAMPLES: usize = 8;

/// Recorded host operator of each node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Join {
    /// Op recorded for each node.
    pub node_to_op: TiVec<NodeId, Option<TraceOp>>,
    /// Nodes matched by the call id that both traces recorded.
    pub by_rf_id: usize,
    /// Nodes matched by their position among the names on their thread.
    pub by_order: usize,
    /// Nodes matched by order whose thread fits as well elsewhere, as in a trace of several equal steps.
    pub ambiguous: usize,
    /// Nodes that can have a counterpart: all but those for the process, its threads and process groups, and the
    /// profiler's step marks.
    pub joinable: usize,
    /// First few joinable nodes that were not matched.
    pub unmatched: Vec<NodeId>,
}

impl Join {
    /// Returns the number of matched nodes.
    #[must_use]
    pub fn joined(&self) -> usize {
        self.by_rf_id + self.by_order
    }

    /// Returns the share of joinable nodes that were matched, 0 to 1; 1 if there are none.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        match self.joinable {
            0 => 1.0,
            joinable => self.joined() as f64 / joinable as f64,
        }
    }
}

/// Joins the two traces of one step: by `rf_id` and name if both have one, and the remaining nodes by the order of
/// names, pairing the threads of both traces by the number of names they share. Autograd's sequence
/// numbers, if both traces have them, select one of several equal steps.
#[must_use]
pub fn join(et: &ExecutionTrace, kineto: &Trace) -> Join {
    let mut joiner = Joiner::new(et, kineto);
    joiner.by_rf_id();
    joiner.by_order();
    joiner.finish()
}

struct Joiner<'a> {
    et: &'a ExecutionTrace,
    kineto: &'a Trace,
    /// Rows that can have a counterpart, ascending.
    joinable: Vec<usize>,
    /// Name of each node in the other trace's name table; `None` if it does not occur there.
    names: Vec<Option<NameId>>,
    node_to_op: TiVec<NodeId, Option<TraceOp>>,
    taken: Vec<bool>,
    by_rf_id: usize,
    by_order: usize,
    ambiguous: usize,
}

impl<'a> Joiner<'a> {
    fn new(et: &'a ExecutionTrace, kineto: &'a Trace) -> Joiner<'a> {
        let mut known = FxHashMap::default();
        let find = |&id: &NameId| *known.entry(id).or_insert_with(|| kineto.names.find(et.names.get(id)));
        let names = et.nodes.name.iter().map(find).collect();
        let can = |&row: &usize| {
            NodeKind::from_row(et, row).ran() && !EventName::parse(et.name(et.nodes.name[row])).is_step()
        };
        Joiner {
            et,
            kineto,
            joinable: (0..et.nodes.len()).filter(can).collect(),
            names,
            node_to_op: vec![None; et.nodes.len()].into(),
            taken: vec![false; kineto.ops.len()],
            by_rf_id: 0,
            by_order: 0,
            ambiguous: 0,
        }
    }

    /// Ids of another recording can agree by chance, but then most names differ: no node is matched by id in that case.
    fn by_rf_id(&mut self) {
        let ops = &self.kineto.ops;
        let mut by_id = FxHashMap::default();
        for (op, &id) in ops.record_function_id.iter().enumerate().filter(|&(_, &id)| id != 0) {
            by_id.entry(id).or_insert(op);
        }
        let mut found = Vec::new();
        let mut strangers = 0;
        for &row in &self.joinable {
            let Some(&op) = by_id.get(&self.et.nodes.rf_id[row]) else { continue };
            if self.names[row] == Some(ops.name[op]) {
                found.push((row, op));
            } else {
                strangers += 1;
            }
        }
        if found.len() >= strangers {
            self.by_rf_id = found.into_iter().filter(|&(row, op)| self.pair(row, op)).count();
        }
    }

    fn by_order(&mut self) {
        let nodes = self.nodes_left();
        let ops = self.ops_left();
        for (of_nodes, of_ops) in pair_threads(&nodes, &ops, self) {
            let (nodes, ops) = (&nodes[of_nodes], &ops[of_ops]);
            let wanted: Vec<_> = nodes.iter().map(|&row| self.item_of_node(row)).collect();
            let recorded: Vec<_> = ops.iter().map(|&op| self.item_of_op(op)).collect();
            let Alignment { pairs, ambiguous } = align(&wanted, &recorded);
            let found = pairs.into_iter().filter(|&(node, op)| self.pair(nodes[node], ops[op])).count();
            self.by_order += found;
            self.ambiguous += if ambiguous { found } else { 0 };
        }
    }

    fn item_of_node(&self, row: usize) -> Item<Option<NameId>> {
        let sequence = self.et.nodes.seq_id[row];
        (self.names[row], (sequence >= 0).then_some(sequence))
    }

    fn item_of_op(&self, op: usize) -> Item<Option<NameId>> {
        let sequence = self.kineto.ops.sequence[op];
        (Some(self.kineto.ops.name[op]), (sequence >= 0).then_some(sequence))
    }

    /// Returns the nodes without a counterpart, per thread, in order of start.
    fn nodes_left(&self) -> Vec<Vec<usize>> {
        let mut threads: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for &row in self.joinable.iter().filter(|&&row| self.node_to_op[NodeId::at(row)].is_none()) {
            threads.entry(self.et.nodes.tid[row]).or_default().push(row);
        }
        threads.into_values().collect()
    }

    /// Returns the recorded operators without a node, per thread, in order of start. Ids grow along a thread and decide
    /// if times are equal; without ids, the longer one is the outer one and began first.
    fn ops_left(&self) -> Vec<Vec<usize>> {
        let ops = &self.kineto.ops;
        let mut threads: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for op in (0..ops.len()).filter(|&op| !self.taken[op]) {
            if !EventName::parse(self.kineto.name(ops.name[op])).is_step() {
                threads.entry(ops.thread[op].0).or_default().push(op);
            }
        }
        let mut threads: Vec<Vec<usize>> = threads.into_values().collect();
        for thread in &mut threads {
            let numbered = thread.iter().all(|&op| ops.external_id[op] != 0);
            let id = |op: usize| if numbered { ops.external_id[op] } else { 0 };
            thread.sort_by_key(|&op| (ops.start[op], id(op), Reverse(ops.dur[op]), op));
        }
        threads
    }

    fn pair(&mut self, row: usize, op: usize) -> bool {
        let free = !std::mem::replace(&mut self.taken[op], true);
        if free {
            self.node_to_op[NodeId::at(row)] = Some(TraceOp::from(op));
        }
        free
    }

    fn finish(self) -> Join {
        let missing = self.joinable.iter().filter(|&&row| self.node_to_op[NodeId::at(row)].is_none());
        Join {
            unmatched: missing.take(SAMPLES).map(|&row| NodeId::at(row)).collect(),
            joinable: self.joinable.len(),
            node_to_op: self.node_to_op,
            by_rf_id: self.by_rf_id,
            by_order: self.by_order,
            ambiguous: self.ambiguous,
        }
    }
}

/// Pairs threads by the number of names they share, most first; each thread at most once.
fn pair_threads(nodes: &[Vec<usize>], ops: &[Vec<usize>], joiner: &Joiner<'_>) -> Vec<(usize, usize)> {
    let count = |names: &mut dyn Iterator<Item = NameId>| {
        let mut counts: FxHashMap<NameId, usize> = FxHashMap::default();
        names.for_each(|name| *counts.entry(name).or_default() += 1);
        counts
    };
    let wanted = nodes.iter().map(|rows| count(&mut rows.iter().filter_map(|&row| joiner.names[row])));
    let wanted: Vec<_> = wanted.collect();
    let mut shared = Vec::new();
    for (thread, ops) in ops.iter().enumerate() {
        let recorded = count(&mut ops.iter().map(|&op| joiner.kineto.ops.name[op]));
        for (of_nodes, wanted) in wanted.iter().enumerate() {
            let both =
                |(name, &count): (&NameId, &usize)| count.min(recorded.get(name).copied().unwrap_or(0));
            shared.push((Reverse(wanted.iter().map(both).sum::<usize>()), of_nodes, thread));
        }
    }
    shared.sort_unstable();
    let (mut nodes_done, mut ops_done) = (vec![false; nodes.len()], vec![false; ops.len()]);
    let mut pairs = Vec::new();
    for (Reverse(count), of_nodes, of_ops) in shared {
        if count > 0 && !nodes_done[of_nodes] && !ops_done[of_ops] {
            (nodes_done[of_nodes], ops_done[of_ops]) = (true, true);
            pairs.push((of_nodes, of_ops));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Node, trace};
    use super::*;
    use std::fmt::Write;
    use steptime_trace::read_kineto;

    /// `(name, thread, start, duration, rf_id)`.
    fn kineto(ops: &[(&str, u32, u32, u32, u32)]) -> Trace {
        let mut events = String::new();
        for (index, (name, thread, start, duration, id)) in ops.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(
                events,
                r#"{comma}{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":{thread},"ts":{start},"dur":{duration},"args":{{"Record function id":{id}}}}}"#
            )
            .unwrap();
        }
        read_kineto(format!(r#"{{"schemaVersion":1,"traceEvents":[{events}]}}"#).as_bytes()).unwrap()
    }

    fn op(id: u64, name: &str) -> Node {
        Node::op(id, 2, &format!("{name}() -> ()"))
    }

    #[test]
    fn ids_are_matched_when_names_agree() {
        let et = trace(&[op(3, "a").rf_id(30), op(4, "b").rf_id(40), op(5, "c").rf_id(50)]);
        let recorded = kineto(&[("c", 9, 7, 1, 50), ("a", 9, 1, 1, 30), ("x", 9, 4, 1, 40)]);
        let join = join(&et, &recorded);
        assert_eq!(join.node_to_op.raw, [None, None, Some(TraceOp(1)), None, Some(TraceOp(0))]);
        assert_eq!((join.by_rf_id, join.by_order, join.joinable), (2, 0, 3));
        assert_eq!(join.unmatched, [NodeId(3)]);
    }

    #[test]
    fn without_ids_the_order_on_each_thread_decides() {
        let et = trace(&[
            op(3, "a"),
            op(4, "b"),
            op(5, "z").thread(2),
            op(6, "b"),
            op(7, "y").thread(2),
            op(8, "c"),
        ]);
        let recorded = kineto(&[
            ("z", 7, 1, 1, 0),
            ("y", 7, 3, 1, 0),
            ("ProfilerStep#1", 9, 0, 99, 0),
            ("b", 9, 5, 1, 0),
            ("b", 9, 2, 1, 0),
            ("a", 9, 2, 4, 0),
            ("c", 9, 8, 1, 0),
        ]);
        let join = join(&et, &recorded);
        assert_eq!(join.node_to_op.raw[2..], [5, 4, 0, 3, 1, 6].map(|op| Some(TraceOp(op))));
        assert_eq!((join.by_order, join.joinable), (6, 6));
        assert!((join.coverage() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn ids_of_another_recording_are_not_trusted() {
        let et = trace(&[op(3, "a").rf_id(1), op(4, "b").rf_id(2), op(5, "b").rf_id(3), op(6, "c").rf_id(4)]);
        let ids = [("b", 9, 1, 1, 4), ("a", 9, 0, 1, 2), ("b", 9, 2, 1, 3), ("c", 9, 3, 1, 1)];
        let join = join(&et, &kineto(&ids));
        assert_eq!((join.by_rf_id, join.by_order), (0, 4));
    }

    #[test]
    fn empty_traces_join() {
        let join = join(&ExecutionTrace::default(), &Trace::default());
        assert_eq!(join, Join::default());
    }
}
