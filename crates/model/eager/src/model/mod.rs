//! Models: descriptions in TOML, and their execution.

mod cached;
mod check;
mod dlrm;
mod file;
mod interaction;
mod layers;
mod network;
mod placement;
pub(crate) mod script;
mod table_placement;
mod tables_on_ranks;
mod two_towers;
mod wide;

use std::path::Path;

use steptime_trace::ExecutionTrace;

use self::file::Description;
use self::placement::Parallel;
pub use self::placement::{Cache, Sharding, TableLayout, TableShard};
use crate::error::{Error, Problem};
use crate::role::NamedStep;

/// A model and its training: everything that a step needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    description: Description,
}

/// An embedding table of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSize {
    /// Number of rows.
    pub rows: i64,
    /// Elements per row.
    pub columns: i64,
    /// Lookups per sample.
    pub lookups: i64,
}

/// Maximum size of a description, in bytes.
const LONGEST: u64 = 16 << 20;

impl Model {
    /// Reads a description.
    ///
    /// # Errors
    /// Where the file cannot be read, or does not describe a model.
    pub fn read(path: &Path) -> Result<Model, Error> {
        let text = steptime_trace::read_text(path, LONGEST)
            .map_err(|source| Error::Read { path: path.into(), source })?;
        Model::parse(&text).map_err(|source| Error::Description { path: path.into(), source })
    }

    /// Parses the text of a description.
    ///
    /// # Errors
    /// Where it does not describe a model.
    pub fn parse(text: &str) -> Result<Model, Problem> {
        let description = file::parse(text)?;
        check::check(&description)?;
        Ok(Model { description })
    }

    /// Samples per step.
    #[must_use]
    pub fn batch(&self) -> u64 {
        self.description.batch as u64
    }

    /// Name of the model, where the description has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.description.name.as_deref()
    }

    /// Number of parameters.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        script::parameters(&self.description)
    }

    /// The step that PyTorch eager would have recorded; for a job, that of the first rank.
    #[must_use]
    pub fn record(&self) -> ExecutionTrace {
        self.record_rank(0)
    }

    /// Number of GPUs, with one rank on each.
    #[must_use]
    pub fn gpus(&self) -> u32 {
        self.description.gpus()
    }

    /// The step that PyTorch eager would have recorded on a rank of its job.
    #[must_use]
    pub fn record_rank(&self, rank: u32) -> ExecutionTrace {
        script::record(&self.description, i64::from(rank)).trace
    }

    /// The step of a model on one GPU, with the names of its parameters, optimizer states, inputs, constants and loss.
    #[must_use]
    pub fn named(&self) -> NamedStep {
        self.named_rank(0)
    }

    /// The step of a rank of its job, with the names of its tensors. Tables and parts of tables have the names of the whole tables.
    #[must_use]
    pub fn named_rank(&self, rank: u32) -> NamedStep {
        script::record(&self.description, i64::from(rank))
    }

    /// Ranks with the same work: each list has the ranks whose parts have the same sizes; lists are ordered by their first ranks.
    #[must_use]
    pub fn alike(&self) -> Vec<Vec<u32>> {
        self.description.alike()
    }

    /// Number of nodes, each with the same number of GPUs; `None` where the description does not have it.
    #[must_use]
    pub fn nodes(&self) -> Option<u32> {
        self.description.parallel.as_ref()?.nodes.and_then(|nodes| u32::try_from(nodes).ok())
    }

    /// The same job on this number of nodes. A model on one GPU is not a job, and runs on one node.
    ///
    /// # Errors
    /// Where its GPUs cannot be divided evenly among them.
    pub fn in_nodes(&self, nodes: u32) -> Result<Model, Problem> {
        let mut description = self.description.clone();
        match &mut description.parallel {
            Some(parallel) => parallel.nodes = Some(i64::from(nodes)),
            None if nodes == 1 => {}
            None => {
                return Err(Problem::Conflict(format!(
                    "1 GPU cannot be divided among {nodes} nodes: use 1 node"
                )));
            }
        }
        check::check(&description)?;
        Ok(Model { description })
    }

    /// Key of a rank's work: ranks with equal keys record the same step, in this job or in one with other table placements, of the same model on the
    /// same number of GPUs.
    #[must_use]
    pub fn work(&self, rank: u32) -> Vec<i64> {
        self.description.work(rank)
    }

    /// Some tables trained like the tables of this model, with almost nothing else in the step.
    ///
    /// # Errors
    /// Where a table has no rows, columns or lookups.
    pub fn tables_alone(&self, tables: &[TableSize]) -> Result<Model, Problem> {
        let table = |size: &TableSize| file::Table {
            rows: size.rows,
            columns: size.columns,
            lookups: size.lookups,
            count: 1,
            tower: None,
        };
        let of = &self.description;
        let description = Description {
            model: file::Architecture::Dlrm,
            dense: 0,
            bottom_mlp: Vec::new(),
            top_mlp: vec![1],
            interaction: Some(file::Interaction::Cat),
            cross_layers: None,
            cross_rank: None,
            tables: tables.iter().map(table).collect(),
            parallel: None,
            ..of.clone()
        };
        check::check(&description)?;
        Ok(Model { description })
    }

    /// All tables, one by one.
    #[must_use]
    pub fn tables(&self) -> Vec<TableSize> {
        let size = |table: file::Table| TableSize {
            rows: table.rows,
            columns: table.columns,
            lookups: table.lookups,
        };
        self.description.each_table().map(size).collect()
    }

    /// Device memory of a table of a given size: weights, optimizer state, gradient of a step, lookups and pooled rows, in bytes.
    #[must_use]
    pub fn table_bytes(&self, size: &TableSize) -> u64 {
        let of = &self.description;
        let weights = size.rows.saturating_mul(size.columns);
        let looked_up = of.batch.saturating_mul(size.lookups);
        let gradient =
            if of.has_sparse_gradients() { looked_up.saturating_mul(size.columns) } else { weights };
        let state = weights.saturating_mul(of.updates().name.moments());
        let sums = of.batch.saturating_mul(size.columns).saturating_mul(2);
        let floats = weights.saturating_add(state).saturating_add(gradient).saturating_add(sums);
        (floats.saturating_mul(4)).saturating_add(looked_up.saturating_mul(16)).max(0) as u64
    }

    /// Host memory of a table of a given size with its rows there: weights and optimizer state, in bytes.
    #[must_use]
    pub fn kept_bytes(&self, rows: i64, columns: i64) -> u64 {
        let numbers = 1 + self.description.updates().name.moments();
        rows.saturating_mul(columns).saturating_mul(4 * numbers).max(0) as u64
    }

    /// Placement of each table.
    #[must_use]
    pub fn homes(&self) -> Vec<TableLayout> {
        self.description.homes()
    }

    /// The same model on this number of GPUs, with the given table placements.
    ///
    /// # Errors
    /// Where the batch cannot be divided among the GPUs, or tables cannot be placed like this.
    pub fn on(&self, gpus: u32, homes: Vec<TableLayout>) -> Result<Model, Problem> {
        let mut description = self.description.clone();
        let old = description.parallel.take();
        description.parallel = Some(Parallel { homes: Some(homes), ..Parallel::new(gpus, old) });
        check::check(&description)?;
        Ok(Model { description })
    }

    /// The same model on this number of GPUs. Tables keep placements that work on any number of GPUs; the others are placed on the GPUs in turn. On
    /// one GPU it is not a job: it runs without a process group.
    ///
    /// # Errors
    /// Where the batch cannot be divided among the GPUs.
    pub fn on_gpus(&self, gpus: u32) -> Result<Model, Problem> {
        let mut description = self.description.clone();
        let old = description.parallel.take();
        description.parallel = (gpus > 1).then(|| Parallel::new(gpus, old));
        check::check(&description)?;
        Ok(Model { description })
    }

    /// The same model with another number of samples per step, of all GPUs together.
    ///
    /// # Errors
    /// Where the samples cannot be divided among the GPUs.
    pub fn with_batch(&self, batch: u64) -> Result<Model, Problem> {
        let batch = i64::try_from(batch).unwrap_or(i64::MAX);
        let description = Description { batch, ..self.description.clone() };
        check::check(&description)?;
        Ok(Model { description })
    }
}
