//! One GPU's step spread over the GPUs of a job: rules make each rank's step from it, and all are simulated together.

use std::collections::BTreeMap;
use std::path::Path;

use steptime_eager::Model;
use steptime_rewrite::{
    Blocks, DataParallel, Error as Refusal, FullySharded, Rule, RuleError, ShardTables, ShardedOptimizer,
    TableHome, tables,
};
use steptime_trace::Meta;

use super::{JobPrediction, RankSet, changed};
use crate::doubt::Doubt;
use crate::error::Error;
use crate::query::{Query, WhatIfs};
use crate::step::{Choice, Step};
use crate::whatif::{Base, ModifiedStep, PricedStep, Pricing};

/// State that a rank keeps of parameters other than tables, of their gradients, and of the optimizer's states.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeptState {
    /// All of them: `DistributedDataParallel`.
    #[default]
    All,
    /// All parameters and gradients, and the states of the parameters that it updates: `ZeroRedundancyOptimizer`.
    OwnStates,
    /// A part of each: FSDP2, `fully_shard` of blocks and of the whole.
    Parts {
        /// Parameters that are gathered together.
        blocks: Blocks,
        /// Whether a block's parameters are freed after its forward pass, and gathered again for its backward pass.
        reshard: bool,
    },
}

/// Settings that turn the step of one GPU into the step of a job.
#[derive(Debug, Clone)]
pub struct World<'r> {
    /// Averaging of all parameters but tables, and the number of ranks.
    pub dense: DataParallel,
    /// State that a rank keeps of these.
    pub keeps: KeptState,
    /// Placement of each table, in the order of first lookup; `None` for round-robin where their gradients are sparse, else
    /// on every rank.
    pub tables: Option<Vec<TableHome>>,
    /// Number of nodes, with the same number of ranks each; `None` for the usual number of GPUs per node.
    pub nodes: Option<u32>,
    /// Samples per rank; `None` for the recorded number.
    pub batch: Option<u64>,
    /// Whether tables that every rank has are updated by each rank from its own samples, without averaging their gradients.
    pub copies_apart: bool,
    /// Changes of every rank before it is put on GPUs.
    pub before: &'r [&'r dyn Rule],
    /// Changes of every rank afterwards: a CUDA graph.
    pub after: &'r [&'r dyn Rule],
}

/// A step on the GPUs of a job.
#[derive(Debug)]
pub struct Spread {
    /// Its ranks: one of each group with the same work.
    pub ranks: RankSet,
    /// The predicted step.
    pub predicted: JobPrediction,
    /// The changes made, with reasons.
    pub changes: Vec<String>,
}

impl World<'_> {
    /// Settings for `ranks` ranks, with PyTorch's defaults.
    #[must_use]
    pub fn new(ranks: u32) -> World<'static> {
        World {
            dense: DataParallel::new(ranks),
            keeps: KeptState::All,
            tables: None,
            nodes: None,
            batch: None,
            copies_apart: false,
            before: &[],
            after: &[],
        }
    }

    /// Ranks per node, where the number of nodes was given.
    fn node(&self) -> Result<Option<u32>, String> {
        let ranks = self.dense.ranks;
        match self.nodes {
            Some(nodes) if nodes == 0 || !ranks.is_multiple_of(nodes) => Err(format!(
                "{ranks} ranks cannot be divided evenly among {nodes} nodes: use a divisor of {ranks}"
            )),
            nodes => Ok(nodes.map(|nodes| ranks / nodes)),
        }
    }

    /// Placement of a step's tables; `None` where all are on every rank.
    fn homes(&self, step: &steptime_step::StepIr) -> Option<Vec<TableHome>> {
        if self.keeps != KeptState::All {
            return None;
        }
        let of = tables(step);
        let homes = self.tables.clone().or_else(|| {
            let in_turn = |(at, table): (usize, &steptime_rewrite::PlacedTable)| {
                let rank = at as u32 % self.dense.ranks.max(1);
                TableHome::Columns(vec![(rank, table.columns)])
            };
            of.iter().any(|table| table.sparse).then(|| of.iter().enumerate().map(in_turn).collect())
        })?;
        homes.iter().any(|home| *home != TableHome::Everywhere).then_some(homes)
    }
}

/// Ranks with the same work: the first of them, and their number.
struct Class {
    rank: u32,
    count: u32,
}

impl Query<'_> {
    /// Predicts the step as that of a job: each of its ranks runs this step, with the communication that PyTorch inserts. Unchanged
    /// kernels keep their measured times; collectives are priced for the usual node of such GPUs.
    ///
    /// ```
    /// # fn main() -> Result<(), steptime_predict::Error> {
    /// # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
    /// let step = steptime_predict::open(format!("{examples}/resnet50_32"))?;
    /// let job = step.predict().in_world(&steptime_predict::World::new(8))?;
    /// assert_eq!(job.ranks.crew().world(), 8);
    /// assert!(job.predicted.step > step.predict().run()?.step);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Query::what_if`]; also where the step cannot be spread so, or the interconnect of GPUs of that name is unknown.
    pub fn in_world(&self, world: &World<'_>) -> Result<Spread, Error> {
        self.what_ifs()?.in_world(world)
    }
}

impl WhatIfs<'_> {
    /// Predicts the step as that of a job.
    ///
    /// # Errors
    /// As [`Query::in_world`].
    pub fn in_world(&self, world: &World<'_>) -> Result<Spread, Error> {
        let (step, pricing, base) = self.parts();
        SpreadInput { step, pricing: &pricing, base }.in_world(world)
    }
}

impl Step {
    /// Makes the step of a described job's rank before tables are placed and gradients averaged: one GPU has all tables and
    /// the samples of one rank.
    ///
    /// # Errors
    /// Fails where the description does not give a valid step.
    pub fn on_one_gpu(path: &Path, model: &Model) -> Result<Step, Error> {
        let samples = model.batch() / u64::from(model.gpus());
        let described =
            |source| Error::Model(steptime_eager::Error::Description { path: path.into(), source });
        let alone = model.on_gpus(1).and_then(|model| model.with_batch(samples)).map_err(described)?;
        Step::from_recordings(
            path,
            &crate::input::described(path, &alone, &[0]).recordings,
            &Choice::default(),
        )
    }
}

/// A step to spread, and its prices.
struct SpreadInput<'a> {
    step: &'a Step,
    pricing: &'a Pricing<'a>,
    base: &'a Base,
}

impl SpreadInput<'_> {
    /// Simulates the ranks of a world together.
    fn in_world(&self, world: &World<'_>) -> Result<Spread, Error> {
        if world.keeps != KeptState::All && world.tables.is_some() {
            let reason = "tables cannot be placed where other parameters are sharded: place tables in a job that keeps all other parameters \
                          on each rank"
                .to_owned();
            let source = RuleError { rule: "fully-sharded", source: Refusal::NothingToDo { reason } };
            return Err(Error::Rewrite { path: self.step.path.clone(), source });
        }
        let refused = |reason: String| {
            let source = RuleError { rule: "world", source: Refusal::NothingToDo { reason } };
            Error::Rewrite { path: self.step.path.clone(), source }
        };
        if !self.step.graph.collectives.is_empty() {
            let reason = "the step is already one rank of a job, with its collectives: predict this rank alone, or the folder of all ranks; \
                          a job of another size needs the step of one GPU"
                .to_owned();
            return Err(refused(reason));
        }
        let node = world.node().map_err(refused)?;
        let before = self.edited(world.before)?;
        let homes = world.homes(&before.step);
        let classes = classes(homes.as_deref(), world.dense.ranks);
        let (mut steps, mut sides, mut alike) = (Vec::new(), Vec::new(), Vec::new());
        let mut changes: Vec<String> = Vec::new();
        let mut doubts: Vec<Doubt> = Vec::new();
        let local = world.batch.or_else(|| self.step.batch());
        for class in classes {
            let rule: Box<dyn Rule> = match (&homes, &world.keeps) {
                (Some(homes), _) => Box::new(ShardTables {
                    homes: homes.clone(),
                    rank: class.rank,
                    dense: world.dense,
                    batch: world.batch,
                    copies_apart: world.copies_apart,
                }),
                (None, KeptState::All) => Box::new(world.dense),
                (None, KeptState::OwnStates) => Box::new(ShardedOptimizer { dense: world.dense }),
                (None, KeptState::Parts { blocks, reshard }) => {
                    let (ranks, blocks) = (world.dense.ranks, blocks.clone());
                    Box::new(FullySharded { ranks, blocks, reshard: *reshard })
                }
            };
            let resized = world.batch.filter(|_| homes.is_none()).map(steptime_rewrite::ResizeBatch::to);
            let resized = resized.iter().map(|rule| rule as &dyn Rule);
            let rules: Vec<&dyn Rule> = world
                .before
                .iter()
                .copied()
                .chain(resized)
                .chain([&*rule])
                .chain(world.after.iter().copied())
                .collect();
            let edited = self.edited(&rules)?;
            let costed = PricedStep::price(self.step, self.pricing, self.base, &edited)?;
            let lines = edited.audits.iter().flat_map(|audit| audit.why.iter().cloned());
            match class.rank {
                0 => changes.extend(lines),
                // The placement differs on each rank, the rest is as on the first.
                _ => changes.extend(lines.filter(|line| line.starts_with(&format!("rank {} ", class.rank)))),
            }
            let rank = self.rank(class.rank, world.dense.ranks, local, &edited);
            let own = costed.doubts(self.base, &edited, self.base.before.step);
            doubts.extend(own.into_iter().filter(|doubt| !doubts.contains(doubt)).collect::<Vec<_>>());
            sides.push(changed::sides(costed, self.base));
            steps.push(rank);
            alike.push(class.count);
        }
        if let (Some(nodes), Some(node)) = (world.nodes, node) {
            changes.push(format!("{nodes} nodes of {node} GPUs: data between nodes goes over their network"));
        }
        let ranks = RankSet { node, ..RankSet::from_steps(self.step.path.clone(), steps, alike)? };
        let predicted = ranks.predict_from_sides(sides, doubts)?;
        Ok(Spread { ranks, predicted, changes })
    }

    fn edited(&self, rules: &[&dyn Rule]) -> Result<ModifiedStep, Error> {
        ModifiedStep::apply(self.step, self.base, rules, &self.pricing.kernels)
    }

    /// The step of one rank: none of it was timed.
    fn rank(&self, rank: u32, ranks: u32, batch: Option<u64>, edited: &ModifiedStep) -> Step {
        let of = self.step;
        let meta = of.meta.as_ref();
        let meta = Meta {
            model: meta.and_then(|meta| meta.model.clone()),
            batch,
            global_batch: batch.map(|batch| batch * u64::from(ranks)),
            ..Meta::default()
        };
        of.as_rank(rank, ranks, edited.scheduled.graph.clone(), meta)
    }
}

/// Groups of ranks with the same table parts; one group of all ranks where no table is placed.
fn classes(homes: Option<&[TableHome]>, ranks: u32) -> Vec<Class> {
    let Some(homes) = homes else { return vec![Class { rank: 0, count: ranks }] };
    let mut found: BTreeMap<Vec<(usize, i64)>, Class> = BTreeMap::new();
    for rank in 0..ranks {
        let has = |home: &TableHome| match home {
            TableHome::Everywhere => None,
            TableHome::Columns(parts) => {
                parts.iter().find(|(on, _)| *on == rank).map(|(_, columns)| *columns)
            }
            TableHome::Rows(rows) => rows.get(rank as usize).copied(),
        };
        let own = homes.iter().enumerate().filter_map(|(at, home)| Some((at, has(home)?))).collect();
        found.entry(own).or_insert(Class { rank, count: 0 }).count += 1;
    }
    let mut all: Vec<Class> = found.into_values().collect();
    all.sort_by_key(|class| class.rank);
    all
}
