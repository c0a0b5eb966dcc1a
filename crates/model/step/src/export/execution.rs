//! A step as an execution trace, in the layout of PyTorch's `ExecutionTraceObserver` (schema 1.1.1).
//!
//! Recorded and unchanged parts are written as recorded: arguments, schemas, thread numbers, ids of tensors and storages, which follow addresses.
//! Inserted ops have new ids, and so has a tensor whose address is now reused during its lifetime. Nodes keep their ids where no rule inserted any,
//! else they are renumbered. The layout has no times, streams, CUDA graph captures, or pinned flags of host memory, so these are left out.

mod identities;
mod node;
mod schemas;
mod tensors;
mod unused_numbers;
mod values;

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use steptime_graph::execution::{ExecutionGraph, NodeId, NodeKind};
use steptime_graph::names::mentions_backward;
use steptime_graph::{HostThreadId, TiVec};

use self::identities::Identities;
use self::node::{Attributes, Node};
use self::values::Values;
use super::{Export, order};
use crate::ids::OpId;
use crate::step::StepIr;

/// Schema version of the output.
const SCHEMA: &str = "1.1.1-chakra.0.0.4";
/// PyTorch's `RecordScope::BACKWARD_FUNCTION`.
const BACKWARD: u8 = 1;
/// PyTorch's `RecordScope::USER_SCOPE`.
const USER: u8 = 7;

/// Writes a step.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// use steptime_graph::StepGraph;
/// use steptime_step::{StepIr, export::{Export, execution}, schedule};
///
/// let (step, base) = (StepIr::default(), StepGraph::empty());
/// let scheduled = schedule(&step, &step, &base, &steptime_aten::OpSet::standard());
/// let export = Export { name: "nothing", step: &step, scheduled: &scheduled, trace: None };
/// let mut out = Vec::new();
/// execution::write(&mut out, &export)?;
/// assert!(out.starts_with(b"{\"schema\": \"1.1.1-chakra.0.0.4\""));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Where the output cannot be written.
///
/// # Panics
/// Where the trace is not the one that the step was made with.
pub fn write(out: &mut dyn Write, export: &Export<'_>) -> io::Result<()> {
    let begins = order::begins(export);
    let ends = OpEnds::find(export.step, &begins);
    let values = Values::new(export);
    let identities = Identities::assign(export, &values, &begins, &ends);
    let ids = NodeIds::assign(export, &begins, identities.first_free());
    let file = File { export, values, identities, ids };
    write!(out, "{{\"schema\": \"{SCHEMA}\", \"pid\": 0, \"time\": \"\", \"start_ts\": 0,\n\"nodes\": [")?;
    for thread in export.step.threads.keys() {
        serde_json::to_writer(&mut *out, &file.thread(thread))?;
        out.write_all(b",\n")?;
    }
    // As in PyTorch: a node at its end, the root last.
    for &begun in &begins {
        for op in ends.after(begun) {
            serde_json::to_writer(&mut *out, &file.op(op))?;
            out.write_all(b",\n")?;
        }
    }
    let root = Node::label(1, "[pytorch|profiler|execution_trace|process]", 1, Attributes::label(0));
    serde_json::to_writer(&mut *out, &root)?;
    out.write_all(b"],\n\"finish_ts\": 0}\n")
}

/// Ops that end once an op has begun: the op itself where it has no ops inside, and those around it of which it is the last.
struct OpEnds<'s> {
    step: &'s StepIr,
    /// For each op, the last to begin inside it.
    last: TiVec<OpId, Option<OpId>>,
}

impl<'s> OpEnds<'s> {
    fn find(step: &'s StepIr, begins: &[OpId]) -> OpEnds<'s> {
        let mut last: TiVec<OpId, Option<OpId>> = vec![None; step.ops.len()].into();
        for &op in begins {
            for around in step.around(op) {
                last[around] = Some(op);
            }
        }
        OpEnds { step, last }
    }

    fn after(&self, begun: OpId) -> impl Iterator<Item = OpId> {
        self.step.around(begun).take_while(move |&around| self.last[around] == Some(begun))
    }
}

/// Ids of nodes, and thread numbers.
struct NodeIds {
    of_op: FxHashMap<OpId, u64>,
    of_thread: TiVec<HostThreadId, u64>,
    tids: TiVec<HostThreadId, u64>,
    /// New ids by recorded ids.
    now: FxHashMap<u64, u64>,
}

impl NodeIds {
    fn assign(export: &Export<'_>, begins: &[OpId], free: u64) -> NodeIds {
        let step = export.step;
        let tids = tids(export);
        let kept = export.trace.and_then(|trace| Some((trace, recorded_ids(trace, step, begins, &tids)?)));
        let (of_op, of_thread): (FxHashMap<OpId, u64>, TiVec<HostThreadId, u64>) = match kept {
            Some((trace, threads)) => {
                let id = |op: OpId| Some((op, trace.nodes.id[step.ops[op].node?.index()]));
                (begins.iter().filter_map(|&op| id(op)).collect(), threads)
            }
            None => {
                let threads = tids.len() as u64;
                let after = free + threads;
                (begins.iter().copied().zip(after..).collect(), (free..after).collect())
            }
        };
        let mut now = FxHashMap::default();
        if let Some(trace) = export.trace {
            let was = |op: OpId| Some((trace.nodes.id[step.ops[op].node?.index()], of_op[&op]));
            now.extend(begins.iter().filter_map(|&op| was(op)));
            let threads = of_thread.iter_enumerated();
            now.extend(
                threads.filter_map(|(at, &id)| {
                    Some((trace.nodes.id[thread_node(trace, tids[at])?.index()], id))
                }),
            );
        }
        NodeIds { of_op, of_thread, tids, now }
    }
}

/// The ids of the threads, where all nodes can keep theirs: each was recorded, and they increase in the order of begins.
fn recorded_ids(
    trace: &ExecutionGraph,
    step: &StepIr,
    begins: &[OpId],
    tids: &TiVec<HostThreadId, u64>,
) -> Option<TiVec<HostThreadId, u64>> {
    let nodes: Option<Vec<NodeId>> = begins.iter().map(|&op| step.ops[op].node).collect();
    if !nodes?.is_sorted_by(|a, b| trace.nodes.id[a.index()] < trace.nodes.id[b.index()]) {
        return None;
    }
    let id = |&tid: &u64| Some(trace.nodes.id[thread_node(trace, tid)?.index()]);
    tids.iter().map(id).collect()
}

fn thread_node(trace: &ExecutionGraph, tid: u64) -> Option<NodeId> {
    trace.ids().find(|node| {
        trace.nodes.kind[node.index()] == NodeKind::Thread && trace.nodes.thread[node.index()] == tid
    })
}

/// The thread numbers: those of the trace, and new ones for threads that it does not have.
fn tids(export: &Export<'_>) -> TiVec<HostThreadId, u64> {
    let step = export.step;
    let mut tids: TiVec<HostThreadId, Option<u64>> = vec![None; step.threads.len()].into();
    if let Some(trace) = export.trace {
        for op in step.running() {
            let row = &step.ops[op];
            if let (None, Some(node)) = (tids[row.thread], row.node) {
                tids[row.thread] = Some(trace.nodes.thread[node.index()]);
            }
        }
    }
    let mut free = unused_numbers::first(tids.iter().copied().flatten(), 1, tids.len() as u64);
    let mut new = || {
        free += 1;
        free - 1
    };
    tids.into_iter().map(|tid| tid.unwrap_or_else(&mut new)).collect()
}

struct File<'s> {
    export: &'s Export<'s>,
    values: Values<'s>,
    identities: Identities,
    ids: NodeIds,
}

impl File<'_> {
    fn thread(&self, thread: HostThreadId) -> Node<'_> {
        let attributes = Attributes::label(self.ids.tids[thread]);
        Node::label(self.ids.of_thread[thread], "[pytorch|profiler|execution_trace|thread]", 1, attributes)
    }

    fn op(&self, op: OpId) -> Node<'_> {
        let (step, trace) = (self.export.step, self.export.trace);
        let row = &step.ops[op];
        let around = row.parent.and_then(|parent| self.ids.of_op.get(&parent));
        let node = trace.zip(row.node);
        let noted = node.map(|(trace, node)| (trace, &trace.nodes.noted[node.index()]));
        let scope = match noted {
            Some((_, noted)) => noted.scope,
            None if row.annotation => USER,
            None if row.call.is_none() && mentions_backward(&row.name) => BACKWARD,
            None => 0,
        };
        let name = |of: fn(&steptime_graph::execution::NodeAttributes) -> steptime_trace::NameId| {
            noted.map_or("", |(trace, noted)| trace.name(of(noted)))
        };
        let noted = noted.map(|(_, noted)| noted);
        let attributes = Attributes {
            record_function: noted.map_or(0, |noted| noted.record_function),
            forward_parent: noted
                .and_then(|noted| self.ids.now.get(&noted.forward_parent))
                .map_or(0, |id| *id),
            sequence: noted.map_or(row.sequence, |noted| Some(noted.sequence)).unwrap_or(-1),
            scope,
            thread: self.ids.tids[row.thread],
            forward_thread: noted.map_or(0, |noted| noted.forward_thread),
            schema: schemas::find(self.export, op).into_owned(),
            kernel_backend: name(|noted| noted.kernel_backend).to_owned(),
            kernel_file: name(|noted| noted.kernel_file).to_owned(),
        };
        let [inputs, outputs] = self.values.op(op);
        Node {
            id: self.ids.of_op.get(&op).map_or(0, |id| *id),
            name: &row.name,
            parent: around.copied().unwrap_or_else(|| self.ids.of_thread[row.thread]),
            inputs: tensors::written(self.export, &self.identities, &inputs),
            outputs: tensors::written(self.export, &self.identities, &outputs),
            attributes: attributes.list(),
        }
    }
}
