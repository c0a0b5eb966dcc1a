//! One rank's step on the GPUs of a job: rules make each rank's step of it, and all are simulated together.

use std::collections::BTreeMap;
use std::path::Path;

use steptime_eager::Model;
use steptime_rewrite::{
    Blocks, DataParallel, Error as Refusal, FullySharded, Refused, Rule, ShardTables, ShardedOptimizer,
    TableHome, tables,
};
use steptime_trace::Meta;

use super::{JobPrediction, Ranks};
use crate::ask::{Question, Sides, WhatIfs};
use crate::doubt::{self, Doubt};
use crate::error::Error;
use crate::step::{Choice, Step};
use crate::whatif::{Base, Costed, Edited, Pricing};

/// What a rank keeps of parameters that are not of tables, of their gradients, and of the optimizer's states.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Keeps {
    /// All of them: `DistributedDataParallel`.
    #[default]
    All,
    /// All parameters and gradients, and the states of those that it updates: `ZeroRedundancyOptimizer`.
    OwnStates,
    /// A part of each: FSDP2, `fully_shard` of blocks and of the whole.
    Parts {
        /// What is gathered together.
        blocks: Blocks,
        /// Whether a block's parameters go after its forward pass, and come again for its backward pass.
        reshard: bool,
    },
}

/// How a step that one GPU runs becomes the step of a job.
#[derive(Debug, Clone)]
pub struct World<'r> {
    /// How all parameters but those of tables are averaged, and among how many ranks.
    pub dense: DataParallel,
    /// What a rank keeps of these.
    pub keeps: Keeps,
    /// Where each table lies, in the order in which they are looked up first; `None` for in turn where their gradients are sparse, else
    /// on every rank.
    pub tables: Option<Vec<TableHome>>,
    /// In how many machines they are, as many in each; `None` for as many ranks in each as such machines usually have GPUs.
    pub nodes: Option<u32>,
    /// Samples of a rank; `None` for as many as were recorded.
    pub batch: Option<u64>,
    /// Whether tables that every rank has are updated by each from its own samples: their gradients are not averaged.
    pub copies_apart: bool,
    /// What else is changed on every rank, before it is put on GPUs.
    pub before: &'r [&'r dyn Rule],
    /// What else is changed on every rank, afterwards: a CUDA graph.
    pub after: &'r [&'r dyn Rule],
}

/// A step on the GPUs of a job.
#[derive(Debug)]
pub struct Spread {
    /// Its ranks: of those that do the same, one.
    pub ranks: Ranks,
    /// Their step.
    pub predicted: JobPrediction,
    /// What was changed, and why.
    pub changes: Vec<String>,
}

impl World<'_> {
    /// So many ranks, as PyTorch does without being told more.
    #[must_use]
    pub fn of(ranks: u32) -> World<'static> {
        World {
            dense: DataParallel::of(ranks),
            keeps: Keeps::All,
            tables: None,
            nodes: None,
            batch: None,
            copies_apart: false,
            before: &[],
            after: &[],
        }
    }

    /// How many ranks a node has, where that was said.
    fn node(&self) -> Result<Option<u32>, String> {
        let ranks = self.dense.ranks;
        match self.nodes {
            Some(nodes) if nodes == 0 || !ranks.is_multiple_of(nodes) => Err(format!(
                "{ranks} ranks cannot lie in {nodes} nodes evenly: every node has as many; take a divisor of {ranks}"
            )),
            nodes => Ok(nodes.map(|nodes| ranks / nodes)),
        }
    }

    /// Where a step's tables lie; nothing where all lie everywhere.
    fn homes(&self, step: &steptime_step::Step) -> Option<Vec<TableHome>> {
        if self.keeps != Keeps::All {
            return None;
        }
        let of = tables(step);
        let homes = self.tables.clone().or_else(|| {
            let in_turn = |(at, table): (usize, &steptime_rewrite::LookedUp)| {
                let rank = at as u32 % self.dense.ranks.max(1);
                TableHome::Columns(vec![(rank, table.columns)])
            };
            of.iter().any(|table| table.sparse).then(|| of.iter().enumerate().map(in_turn).collect())
        })?;
        homes.iter().any(|home| *home != TableHome::Everywhere).then_some(homes)
    }
}

/// Ranks that do the same: the first of them, and how many they are.
struct Class {
    rank: u32,
    count: u32,
}

impl Question<'_> {
    /// The step as that of a job: each of its ranks runs this one, with what PyTorch puts in for ranks that work together. What did not
    /// change keeps its measured times; collectives take what they do on the usual node of such GPUs.
    ///
    /// ```
    /// # fn main() -> Result<(), steptime::Error> {
    /// # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
    /// let step = steptime::open(format!("{examples}/resnet50_32"))?;
    /// let job = step.predict().in_world(&steptime::World::of(8))?;
    /// assert_eq!(job.ranks.crew().world(), 8);
    /// assert!(job.predicted.step > step.predict().run()?.step);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Question::what_if`]; where the step cannot be spread so, or how GPUs of that name are joined is not known.
    pub fn in_world(&self, world: &World<'_>) -> Result<Spread, Error> {
        self.what_ifs()?.in_world(world)
    }
}

impl WhatIfs<'_> {
    /// The step as that of a job.
    ///
    /// # Errors
    /// As [`Question::in_world`].
    pub fn in_world(&self, world: &World<'_>) -> Result<Spread, Error> {
        let (step, pricing, base) = self.parts();
        Spreading { step, pricing: &pricing, base }.in_world(world)
    }
}

impl Step {
    /// The step of a described job's rank as it is before any table has a place and any gradient is averaged: one GPU has all tables and
    /// the samples of a rank.
    ///
    /// # Errors
    /// Where the description makes no step.
    pub fn of_one_gpu(path: &Path, model: &Model) -> Result<Step, Error> {
        let samples = model.batch() / u64::from(model.gpus());
        let described =
            |source| Error::Model(steptime_eager::Error::Description { path: path.into(), source });
        let alone = model.on_gpus(1).and_then(|model| model.with_batch(samples)).map_err(described)?;
        Step::of_recordings(
            path,
            crate::input::described(path, &alone, &[0], true).recordings,
            &Choice::default(),
        )
    }
}

/// A step to be spread, and what it is priced by.
struct Spreading<'a> {
    step: &'a Step,
    pricing: &'a Pricing<'a>,
    base: &'a Base,
}

impl Spreading<'_> {
    /// The ranks of a world, simulated together.
    fn in_world(&self, world: &World<'_>) -> Result<Spread, Error> {
        if world.keeps != Keeps::All && world.tables.is_some() {
            let reason = "where tables lie is told, and their parts are not told of parameters that are sharded: place tables in a job \
                          that keeps all other parameters on each rank"
                .to_owned();
            let source = Refused { rule: "fully-sharded", source: Refusal::NothingToDo { reason } };
            return Err(Error::Rewrite { path: self.step.path.clone(), source });
        }
        let refused = |reason: String| {
            let source = Refused { rule: "world", source: Refusal::NothingToDo { reason } };
            Error::Rewrite { path: self.step.path.clone(), source }
        };
        if !self.step.graph.collectives.is_empty() {
            let reason = "it is a rank of a job already, with the collectives of that: predict it by itself or the folder of all ranks; a job of \
                          another number of ranks is made of the step of one GPU"
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
                (None, Keeps::All) => Box::new(world.dense),
                (None, Keeps::OwnStates) => Box::new(ShardedOptimizer { dense: world.dense }),
                (None, Keeps::Parts { blocks, reshard }) => {
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
            let costed = Costed::of(self.step, self.pricing, self.base, &edited)?;
            let lines = edited.audits.iter().flat_map(|audit| audit.why.iter().cloned());
            match class.rank {
                0 => changes.extend(lines),
                // What goes where is another matter on each rank, the rest is as on the first.
                _ => changes.extend(lines.filter(|line| line.starts_with(&format!("rank {} ", class.rank)))),
            }
            let rank = self.rank(class.rank, world.dense.ranks, local, &edited);
            let own = costed.doubts(self.base, &edited, self.base.before.step);
            doubts.extend(own.into_iter().filter(|doubt| !doubts.contains(doubt)).collect::<Vec<_>>());
            sides.push(self.sides(costed)?);
            steps.push(rank);
            alike.push(class.count);
        }
        if let (Some(nodes), Some(node)) = (world.nodes, node) {
            changes.push(format!(
                "{nodes} nodes of {node} GPUs: what goes from one to another goes over their network"
            ));
        }
        let ranks = Ranks { node, ..Ranks::of_steps(self.step.path.clone(), steps, alike)? };
        let predicted = ranks.of_sides(sides, doubts)?;
        Ok(Spread { ranks, predicted, changes })
    }

    fn edited(&self, rules: &[&dyn Rule]) -> Result<Edited, Error> {
        Edited::of(self.step, self.base, rules, &self.pricing.kernels)
    }

    /// The step of one rank: nothing of it was timed as it is.
    fn rank(&self, rank: u32, ranks: u32, batch: Option<u64>, edited: &Edited) -> Step {
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

    fn sides(&self, costed: Costed) -> Result<Sides, Error> {
        let spec = self.base.spec.as_ref();
        let peak = costed.peak;
        let too_large = peak.as_ref().zip(spec).and_then(|(peak, spec)| doubt::memory::doubt(peak, spec));
        let (durations, spread, host) = costed.into_sides();
        Ok(Sides {
            durations,
            spread,
            demands: None,
            host,
            slowness: self.base.slowness,
            unpriced: None,
            peak,
            too_large,
            asked: self.base.before.asked.clone(),
        })
    }
}

/// Ranks that have the same: all where no table is placed, else those with none, and each other by itself.
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
