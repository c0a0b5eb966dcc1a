//! The step of a model, with the purposes of its tensors.

use rustc_hash::FxHashMap;
use steptime_aten::derive::{self, OpTree, TreeKind};
use steptime_aten::{Arg, OpSet, from_execution};
use steptime_eager::{Model, NamedShard, NamedStep, Role, Sharding};
use steptime_graph::StepGraph;
use steptime_graph::execution::ExecutionGraph;
use steptime_graph::names::PROCESS_GROUP;
use steptime_step::{OpId, ScheduledStep, StepIr, TensorId, Uses, schedule};

use crate::error::Error;

/// The step of a model that PyTorch eager would run, which rules may change, and the names of its tensors.
#[derive(Debug, Clone)]
pub struct DescribedStep {
    /// The step. Rules change it; tensors keep their ids.
    pub step: StepIr,
    /// The unchanged step.
    before: StepIr,
    graph: StepGraph,
    pub(crate) ops: OpSet,
    pub(crate) names: FxHashMap<TensorId, (String, Role)>,
    lookups: FxHashMap<TensorId, Lookup>,
    /// Number of ranks of its job.
    ranks: usize,
    /// Parameters of which the rank has only a part, by name.
    shards: FxHashMap<String, NamedShard>,
    /// Whether exchanges read and write matrices at their places.
    pub(crate) direct: bool,
}

/// Inputs of the lookups in a table, by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lookup {
    pub(crate) indices: String,
    pub(crate) offsets: String,
    /// Number of indices, and of bags.
    pub(crate) count: usize,
    pub(crate) bags: usize,
}

impl DescribedStep {
    /// The step of a model on one GPU.
    ///
    /// # Errors
    /// Where the step has no op.
    pub fn new(model: &Model) -> Result<DescribedStep, Error> {
        DescribedStep::from_named(&model.named())
    }

    /// The step of a rank of a model's job, on its own GPU.
    ///
    /// # Errors
    /// Where the step has no op, the job no such rank, or a table is cut by rows.
    pub fn of_rank(model: &Model, rank: u32) -> Result<DescribedStep, Error> {
        let gpus = model.gpus();
        if rank >= gpus {
            let why = format!("there is no rank {rank} of {gpus}");
            return Err(Error::Order { why });
        }
        for (table, home) in model.homes().iter().enumerate() {
            if matches!(home.cutting(gpus), Sharding::Rows | Sharding::Grid) {
                let why = "it is cut by rows: place it whole, cut it by columns, or replicate it";
                return Err(Error::Placement { table, why });
            }
            if home.caches().next().is_some() {
                return Err(Error::Placement { table, why: "it is in host memory: place it on a GPU" });
            }
        }
        DescribedStep::from_named(&model.named_rank(rank))
    }

    /// The step of a recording with names.
    ///
    /// # Errors
    /// Where the step has no op.
    pub fn from_named(named: &NamedStep) -> Result<DescribedStep, Error> {
        let ops = OpSet::standard();
        let execution = ExecutionGraph::new(&named.trace);
        let tree = OpTree::from_execution(&execution);
        let derived =
            derive::from_tree(&tree, &ops).map_err(|source| Error::Order { why: source.to_string() })?;
        let of = |op| &tree.nodes[derived.nodes[op] as usize];
        let call = |op| match of(op).origin {
            // Collectives have no schema to a recording, but arguments.
            Some(node) if of(op).call.name.starts_with(PROCESS_GROUP) => {
                Some(from_execution::op_call(&execution, node))
            }
            _ => (of(op).kind == TreeKind::Op).then(|| of(op).call.clone()),
        };
        let step = StepIr::from_graph(&derived.graph, Some(&execution), call, |op| of(op).origin);
        let by_id: FxHashMap<u64, _> = named.tensors.iter().map(|tensor| (tensor.id, tensor)).collect();
        let uses = Uses::find(&step);
        let name = |(at, row): (TensorId, &steptime_step::Tensor)| {
            let raw = execution.tensors.get(row.recorded?).raw_id;
            let tensor = by_id.get(&raw)?;
            let made = uses.producer(at).is_some();
            (made == (tensor.role == Role::Loss)).then(|| (at, (tensor.name.clone(), tensor.role.clone())))
        };
        let names = step.tensors.iter_enumerated().filter_map(name).collect();
        let mut described = DescribedStep {
            before: step.clone(),
            step,
            graph: derived.graph,
            ops,
            names,
            lookups: FxHashMap::default(),
            ranks: named.ranks.max(1) as usize,
            shards: named.shards.iter().map(|shard| (shard.name.clone(), shard.clone())).collect(),
            direct: false,
        };
        described.lookups = described.find_lookups(&uses);
        Ok(described)
    }

    /// A step with names, for tests.
    #[cfg(test)]
    pub(crate) fn of_step(step: StepIr, names: FxHashMap<TensorId, (String, Role)>) -> DescribedStep {
        let (before, graph) = (step.clone(), StepGraph::empty());
        let (lookups, shards) = (FxHashMap::default(), FxHashMap::default());
        DescribedStep {
            step,
            before,
            graph,
            ops: OpSet::standard(),
            names,
            lookups,
            ranks: 1,
            shards,
            direct: false,
        }
    }

    /// Known ops, for rules.
    #[must_use]
    pub fn ops(&self) -> &OpSet {
        &self.ops
    }

    /// The schedule of the step as it is now.
    #[must_use]
    pub fn scheduled(&self) -> ScheduledStep {
        schedule(&self.step, &self.before, &self.graph, &self.ops)
    }

    /// Number of ranks of its job.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Lets the exchanges of a GPU's program read and write matrices at their places, for ranks that exchange by [`Link::Peers`].
    ///
    /// [`Link::Peers`]: crate::Link::Peers
    pub fn direct_exchanges(&mut self) {
        self.direct = true;
    }

    /// The part that the rank has of a parameter, or of one of its optimizer states; `None` where it has all of it.
    pub(crate) fn shard(&self, name: &str) -> Option<&NamedShard> {
        self.shards.get(name).or_else(|| self.shards.get(name.rsplit_once('.')?.0))
    }

    /// Name and purpose of a tensor, where it has one.
    pub(crate) fn named(&self, tensor: TensorId) -> Option<&(String, Role)> {
        self.names.get(&tensor)
    }

    /// The inputs of the lookups in a table.
    pub(crate) fn lookup(&self, table: TensorId) -> Option<&Lookup> {
        self.lookups.get(&table)
    }

    /// All lookups.
    pub(crate) fn lookups(&self) -> impl Iterator<Item = &Lookup> {
        self.lookups.values()
    }

    /// The inputs of all lookups, by table.
    fn find_lookups(&self, uses: &Uses) -> FxHashMap<TensorId, Lookup> {
        let step = &self.step;
        let input = |tensor: TensorId| {
            let named = |tensor| self.named(tensor).filter(|(_, role)| *role == Role::Input);
            let takes = |op: OpId| step.ops[op].call.as_deref().and_then(|call| call.takes().find_map(named));
            let copied = || step.around(uses.producer(tensor)?).find_map(takes);
            named(tensor).or_else(copied).map(|(name, _)| name.clone())
        };
        let lookup = |op| {
            let row: &steptime_step::Op = &step.ops[op];
            let call = row.call.as_deref().filter(|_| row.name == "aten::embedding_bag")?;
            let &[Arg::Tensor(table), Arg::Tensor(indices), Arg::Tensor(offsets), ..] = &call.inputs[..]
            else {
                return None;
            };
            let size = |tensor: TensorId| step.tensors[tensor].value.numel() as usize;
            let lookup = Lookup {
                indices: input(indices)?,
                offsets: input(offsets)?,
                count: size(indices),
                bags: size(offsets),
            };
            Some((table, lookup))
        };
        step.running().into_iter().filter_map(lookup).collect()
    }
}
