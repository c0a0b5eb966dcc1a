//! Models: a description in TOML, and how each runs.

mod cached;
mod check;
mod dlrm;
mod file;
mod interaction;
mod layers;
mod network;
mod parallel;
mod placed;
mod script;
mod spread;
mod two_towers;
mod wide;

use std::path::Path;

use steptime_trace::ExecutionTrace;

use self::file::Description;
use self::parallel::Parallel;
pub use self::parallel::{Cache, Cutting, Home, Part};
use crate::error::{Error, Problem};

/// A model and how it is trained: all that a step takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    description: Description,
}

/// An embedding table of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSize {
    /// Its rows.
    pub rows: i64,
    /// Elements of a row.
    pub columns: i64,
    /// Lookups a sample.
    pub lookups: i64,
}

/// The longest description that is read, in bytes.
const LONGEST: u64 = 16 << 20;

impl Model {
    /// Reads a description.
    ///
    /// # Errors
    /// Where the file cannot be read, or describes no model.
    pub fn read(path: &Path) -> Result<Model, Error> {
        let text = steptime_trace::read_text(path, LONGEST)
            .map_err(|source| Error::Read { path: path.into(), source })?;
        Model::parse(&text).map_err(|source| Error::Description { path: path.into(), source })
    }

    /// Reads the text of a description.
    ///
    /// # Errors
    /// Where it describes no model.
    pub fn parse(text: &str) -> Result<Model, Problem> {
        let description = file::parse(text)?;
        check::check(&description)?;
        Ok(Model { description })
    }

    /// Samples a step.
    #[must_use]
    pub fn batch(&self) -> u64 {
        self.description.batch as u64
    }

    /// What it is called, where the description says.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.description.name.as_deref()
    }

    /// How many parameters it has.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        script::parameters(&self.description)
    }

    /// The step that PyTorch eager would have recorded; of a job, that of its first rank.
    #[must_use]
    pub fn record(&self) -> ExecutionTrace {
        self.record_rank(0)
    }

    /// How many GPUs train it, one rank on each.
    #[must_use]
    pub fn gpus(&self) -> u32 {
        self.description.gpus()
    }

    /// The step that PyTorch eager would have recorded on a rank of its job.
    #[must_use]
    pub fn record_rank(&self, rank: u32) -> ExecutionTrace {
        script::record(&self.description, i64::from(rank))
    }

    /// Ranks that do the same work: each list has those that hold parts of the same sizes, the lists in the order of their first.
    #[must_use]
    pub fn alike(&self) -> Vec<Vec<u32>> {
        self.description.alike()
    }

    /// In how many machines its GPUs are, as many in each; `None` where the description does not say.
    #[must_use]
    pub fn nodes(&self) -> Option<u32> {
        self.description.parallel.as_ref()?.nodes.and_then(|nodes| u32::try_from(nodes).ok())
    }

    /// The same job in so many machines. A model on one GPU is no job, and is in one.
    ///
    /// # Errors
    /// Where its GPUs cannot lie in them evenly.
    pub fn in_nodes(&self, nodes: u32) -> Result<Model, Problem> {
        let mut description = self.description.clone();
        match &mut description.parallel {
            Some(parallel) => parallel.nodes = Some(i64::from(nodes)),
            None if nodes == 1 => {}
            None => return Err(Problem::Conflict(format!("1 GPU cannot lie in {nodes} nodes: take one"))),
        }
        check::check(&description)?;
        Ok(Model { description })
    }

    /// What a rank's work is told by: ranks with the same numbers record the same step, in this job or in one whose tables lie
    /// elsewhere, of the same model on as many GPUs.
    #[must_use]
    pub fn work(&self, rank: u32) -> Vec<i64> {
        self.description.work(rank)
    }

    /// Some tables trained as this model trains its own, with next to nothing else in the step.
    ///
    /// # Errors
    /// Where a table is none.
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

    /// Its tables one by one.
    #[must_use]
    pub fn tables(&self) -> Vec<TableSize> {
        let size = |table: file::Table| TableSize {
            rows: table.rows,
            columns: table.columns,
            lookups: table.lookups,
        };
        self.description.each_table().map(size).collect()
    }

    /// What a table of a size takes of a GPU's memory: weights, the optimizer's state, a step's gradient, lookups and sums.
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

    /// What a table of a size takes of a host's memory, where its rows lie there: weights and the optimizer's state.
    #[must_use]
    pub fn kept_bytes(&self, rows: i64, columns: i64) -> u64 {
        let numbers = 1 + self.description.updates().name.moments();
        rows.saturating_mul(columns).saturating_mul(4 * numbers).max(0) as u64
    }

    /// Where the rows of each table are.
    #[must_use]
    pub fn homes(&self) -> Vec<Home> {
        self.description.homes()
    }

    /// The same model on so many GPUs, its tables there.
    ///
    /// # Errors
    /// Where GPUs cannot share the batch, or tables cannot lie so.
    pub fn on(&self, gpus: u32, homes: Vec<Home>) -> Result<Model, Problem> {
        let mut description = self.description.clone();
        let old = description.parallel.take();
        description.parallel = Some(Parallel { homes: Some(homes), ..Parallel::of(gpus, old) });
        check::check(&description)?;
        Ok(Model { description })
    }

    /// The same model on so many GPUs, tables as the description places them on any number: those that it does not name one after
    /// the other. On one GPU it is no job: it runs in no process group.
    ///
    /// # Errors
    /// Where GPUs cannot share the batch.
    pub fn on_gpus(&self, gpus: u32) -> Result<Model, Problem> {
        let mut description = self.description.clone();
        let old = description.parallel.take();
        description.parallel = (gpus > 1).then(|| Parallel::of(gpus, old));
        check::check(&description)?;
        Ok(Model { description })
    }

    /// The same model with another number of samples a step, of all GPUs together.
    ///
    /// # Errors
    /// Where GPUs cannot share them.
    pub fn with_batch(&self, batch: u64) -> Result<Model, Problem> {
        let batch = i64::try_from(batch).unwrap_or(i64::MAX);
        let description = Description { batch, ..self.description.clone() };
        check::check(&description)?;
        Ok(Model { description })
    }
}
