//! Embedding tables sharded over the ranks of a job: each rank has some of them, and looks up for the samples of all ranks.
//!
//! For whole tables and columns, an all-to-all sends each sample's vectors to its rank, and their gradients back. For tables cut by rows, each rank
//! pools its rows, and a reduce-scatter adds these sums; their gradients are gathered. The rest is `DistributedDataParallel`.

mod exchanges;
mod inputs;
mod table_home;
mod table_patch;
mod tables;

use steptime_step::{Patch, StepIr};

use self::table_home::RankPart;
pub use self::table_home::TableHome;
use self::table_patch::TablePatch;
use crate::data_parallel::DataParallel;
use crate::error::Error;
use crate::passes::Passes;
use crate::resize;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;
use crate::set::{SetSize, SizePath};

/// One rank of a job with placed tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardTables {
    /// Placement of each table, in the order of first lookups.
    pub homes: Vec<TableHome>,
    /// Index of the rank.
    pub rank: u32,
    /// Averaging of all other gradients, with the number of ranks.
    pub dense: DataParallel,
    /// Samples per rank; `None` for the recorded number.
    pub batch: Option<u64>,
    /// Whether each rank updates replicated tables from its own samples: their gradients are not averaged.
    pub copies_apart: bool,
}

/// A looked-up table, with the properties that plans use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedTable {
    /// Number of rows.
    pub rows: i64,
    /// Number of columns.
    pub columns: i64,
    /// Lookups per step, of all samples together.
    pub lookups: i64,
    /// Whether its gradient holds only the looked-up rows.
    pub sparse: bool,
}

/// The looked-up tables of a step that a plan can place, in order.
#[must_use]
pub fn tables(step: &StepIr) -> Vec<PlacedTable> {
    tables::find(step).iter().map(|table| table.looked_up(step)).collect()
}

impl ShardTables {
    /// Cuts tables to the sizes of the rank's parts.
    fn cut(&self, step: &mut StepIr, facts: &Facts<'_>, patches: &mut Vec<Patch>) -> Result<(), Error> {
        // Tables are counted by their lookups: those of other ranks have none.
        let here =
            self.homes.iter().filter(|home| **home == TableHome::Everywhere || home.on(self.rank).is_some());
        for (at, home) in here.enumerate() {
            let Some(own) = home.on(self.rank) else { continue };
            let size = |what: &str, to: i64| -> Result<SetSize, Error> {
                let path: SizePath = format!("tables[{at}].{what}").parse()?;
                Ok(SetSize { path, to: to.max(1) as u64 })
            };
            let changes = match own {
                RankPart::Whole => Vec::new(),
                RankPart::Columns(columns) => vec![size("columns", columns)?],
                RankPart::Rows(rows) => {
                    let each = tables::lookups_of_a_bag(step, at).unwrap_or(1);
                    vec![size("rows", rows)?, size("lookups", home.lookups(self.rank, each))?]
                }
            };
            for change in changes {
                for patch in change.patches(step, &Facts { unchanged: None, ..*facts })? {
                    step.apply(&patch, facts.ops)?;
                    patches.push(patch);
                }
            }
        }
        Ok(())
    }

    /// Resizes the step to the rank's share of the samples, and lookups to the samples of all ranks.
    fn resize(
        &self,
        step: &mut StepIr,
        facts: &Facts<'_>,
        from: u64,
        patches: &mut Vec<Patch>,
    ) -> Result<(), Error> {
        let batch = self.batch.unwrap_or(from);
        let all = batch.saturating_mul(u64::from(self.dense.ranks));
        for (of_tables, to) in [(false, batch), (true, all)] {
            if to == from {
                continue;
            }
            let looked_up = inputs::find(step)?;
            let seeds =
                resize::find(step, facts.ops, from).only(|tensor| looked_up.contains(&tensor) == of_tables);
            if seeds.dims.is_empty() && seeds.unsure.is_empty() {
                continue;
            }
            for mut patch in resize::scale(step, facts.ops, self.name(), &seeds, [from, to])? {
                let whose =
                    if of_tables { "lookups cover all ranks" } else { "other tensors cover this rank" };
                patch.why = format!("{from} samples become {to}: {whose}");
                step.apply(&patch, facts.ops)?;
                patches.push(patch);
            }
        }
        Ok(())
    }
}

impl Rule for ShardTables {
    fn name(&self) -> &'static str {
        "shard-tables"
    }

    fn stage(&self) -> Stage {
        Stage::Placement
    }

    fn effort(&self) -> &'static str {
        "large: TorchRec's DistributedModelParallel, or all_to_all_single around the tables and DistributedDataParallel around the rest"
    }

    fn risk(&self) -> &'static str {
        "the global batch is larger: adapt the learning rate"
    }

    fn doubt(&self) -> Option<(&'static str, f64)> {
        self.dense.hook_doubt()
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        if Passes::find(step).are_several(step) {
            let reason = "the step has several backward passes, and the lookups in each are not known: place the tables of the step of one batch"
                .to_owned();
            return Err(Error::NothingToDo { reason });
        }
        let tables = tables::find(step);
        if tables.len() != self.homes.len() {
            return Err(Error::Homes { homes: self.homes.len(), tables: tables.len() });
        }
        for (at, (home, table)) in self.homes.iter().zip(&tables).enumerate() {
            home.check(at, &table.looked_up(step), self.dense.ranks)?;
        }
        let from = facts.batch.ok_or(Error::NoBatch)?;
        let mut now = step.clone();
        let mut patches = Vec::new();
        let TablePatch { patch, apart } = table_patch::patch(step, self, &tables)?;
        now.apply(&patch, facts.ops)?;
        patches.push(patch);
        self.cut(&mut now, facts, &mut patches)?;
        self.resize(&mut now, facts, from, &mut patches)?;
        let dense = self.dense.patch_without(&now, self.name(), &apart)?;
        now.apply(&dense, facts.ops)?;
        patches.push(dense);
        Ok(patches)
    }
}
