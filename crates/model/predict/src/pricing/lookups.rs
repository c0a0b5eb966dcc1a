//! Rows that a step looks up, as counted by its recorder.

use rustc_hash::FxHashMap;
use steptime_aten::kernel::Kernel;
use steptime_cost::device::Indices;
use steptime_graph::{OpId, StepGraph, TiVec};
use steptime_launch::Counts;
use steptime_trace::RecordedLookup;

use super::launch::Launch;

/// Lookups noted in a recording.
#[derive(Debug, Clone, Default)]
pub struct Lookups {
    /// Lookups of ops by name, in order of execution.
    by_name: FxHashMap<String, Vec<Indices>>,
    /// Mean of the table lookups, for kernels that look up several tables at once.
    table: Indices,
}

/// Ops that look up rows of a table.
const TABLES: [&str; 3] = ["aten::embedding", "aten::_embedding_bag", "aten::_embedding_bag_forward_only"];

/// The name that all forms of an op share: `index_put` for `aten::index_put_`, `aten::_unsafe_index_put` and
/// `aten::_index_put_impl_`. A recorder may see one form of a call and a trace another.
fn plain(op: &str) -> &str {
    let name = op.strip_prefix("aten::").unwrap_or(op).trim_matches('_');
    let name = name.strip_suffix("_impl").unwrap_or(name);
    name.strip_prefix("unsafe_").unwrap_or(name)
}

/// Lookups of a kernel that uses the same indices for each slice of its table, as for a dimension after others; these were counted
/// once.
fn in_slices(noted: Indices, kernel: &Kernel) -> Indices {
    let made = match kernel {
        Kernel::Gather(gather) => gather.lookups,
        Kernel::Scatter(scatter) => scatter.lookups,
        _ => return noted,
    };
    match noted {
        Indices::Counts(counts) if counts.lookups() > 0 && made.is_multiple_of(counts.lookups()) => {
            Indices::Counts(counts.in_slices(made / counts.lookups()))
        }
        other => other,
    }
}

impl Lookups {
    /// Reads the lookups noted in a recording.
    #[must_use]
    pub fn new(noted: &[RecordedLookup]) -> Lookups {
        let mut by_name: FxHashMap<String, Vec<Indices>> = FxHashMap::default();
        let mut tables: Vec<Counts> = Vec::new();
        for RecordedLookup { op, counts } in noted {
            let counts = counts.parse::<Counts>().ok();
            if TABLES.contains(&op.as_str()) {
                tables.extend(counts.clone());
            }
            by_name
                .entry(plain(op).into())
                .or_default()
                .push(counts.map_or(Indices::Unknown, Indices::Counts));
        }
        let table = Counts::mean(&tables).map_or(Indices::Unknown, Indices::Counts);
        Lookups { by_name, table }
    }

    /// Sets the index distribution of each launch: the given one, else the one noted for the op or an op around it.
    pub(super) fn set(&self, graph: &StepGraph, asked: &Indices, launches: &mut [Launch]) {
        if *asked != Indices::Unknown || self.by_name.is_empty() {
            launches.iter_mut().for_each(|launch| launch.context.indices = asked.clone());
            return;
        }
        let of_op = self.by_op(graph);
        for launch in launches {
            let mut op = launch.op;
            let noted = std::iter::from_fn(|| {
                let at = op?;
                op = graph.ops[at].parent;
                Some(at)
            });
            let noted = noted.filter_map(|at| of_op[at].clone()).next();
            let many = matches!(launch.call.kernel, Kernel::FusedBags(_) | Kernel::TableBatched(_));
            let table = || many.then(|| self.table.clone());
            let noted = noted.or_else(table).unwrap_or_default();
            launch.context.indices = in_slices(noted, &launch.call.kernel);
        }
    }

    /// Lookups noted for each op. Ops of a name are matched in order; a step that runs them a multiple of the noted times repeats the lookups,
    /// and in a step with any other number they are unknown.
    fn by_op(&self, graph: &StepGraph) -> TiVec<OpId, Option<Indices>> {
        let mut of_name: FxHashMap<&str, Vec<OpId>> = FxHashMap::default();
        for (op, each) in graph.ops.iter_enumerated() {
            let is_noted = |op: OpId| self.by_name.contains_key(plain(graph.op_name(op)));
            let around = std::iter::successors(each.parent, |&op| graph.ops[op].parent);
            if is_noted(op) && !around.into_iter().any(is_noted) {
                of_name.entry(plain(graph.op_name(op))).or_default().push(op);
            }
        }
        let mut found: TiVec<OpId, Option<Indices>> = vec![None; graph.ops.len()].into();
        for (name, mut ops) in of_name {
            let noted = &self.by_name[name];
            if ops.len() % noted.len() == 0 {
                ops.sort_by_key(|&op| (graph.ops[op].phase, op));
                for (op, indices) in ops.into_iter().zip(noted.iter().cycle()) {
                    found[op] = Some(indices.clone());
                }
            }
        }
        found
    }
}
