//! The description of a model, in the layout of the file.

use serde::Deserialize;

use super::placement::Parallel;
use crate::error::Problem;
use crate::optimizer::{Form, Rule};
use crate::role::Initial;

/// A model and its training.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    /// Name of the model.
    pub(super) name: Option<String>,
    pub(super) model: Architecture,
    /// Samples per step.
    pub(super) batch: i64,
    /// Dense features per sample.
    #[serde(default)]
    pub(super) dense: i64,
    /// Widths of the layers for dense features.
    #[serde(default)]
    pub(super) bottom_mlp: Vec<i64>,
    /// Widths of the layers after the interaction, or of each of two towers.
    #[serde(default)]
    pub(super) top_mlp: Vec<i64>,
    pub(super) interaction: Option<Interaction>,
    /// Number of layers of a cross network.
    pub(super) cross_layers: Option<i64>,
    /// Rank of its low-rank weights; `None` for full weights.
    pub(super) cross_rank: Option<i64>,
    #[serde(default)]
    pub(super) loss: Option<Loss>,
    #[serde(default)]
    pub(super) precision: Precision,
    #[serde(default)]
    pub(super) pooling: Pooling,
    /// Distribution of the tables' elements before training.
    #[serde(default)]
    pub(super) table_init: TableInit,
    /// Whether gradients of tables hold only the looked-up rows.
    pub(super) sparse: Option<bool>,
    pub(super) tables: Vec<Table>,
    pub(super) optimizer: Option<Updates>,
    /// The GPUs of the job.
    pub(super) parallel: Option<Parallel>,
}

/// Embedding tables of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) rows: i64,
    pub(super) columns: i64,
    /// Lookups per sample.
    #[serde(default = "one")]
    pub(super) lookups: i64,
    /// Number of such tables.
    #[serde(default = "one")]
    pub(super) count: i64,
    /// Tower of the table, in a model with two.
    pub(super) tower: Option<Tower>,
}

fn one() -> i64 {
    1
}

/// The optimizer, with its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Updates {
    pub(super) name: Rule,
    #[serde(default)]
    pub(super) form: Form,
}

/// Kind of model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Architecture {
    Dlrm,
    #[serde(rename = "deepfm")]
    DeepFm,
    WideAndDeep,
    DcnV2,
    TwoTowers,
}

impl Architecture {
    pub(super) fn name(self) -> &'static str {
        match self {
            Architecture::Dlrm => "dlrm",
            Architecture::DeepFm => "deepfm",
            Architecture::WideAndDeep => "wide_and_deep",
            Architecture::DcnV2 => "dcn_v2",
            Architecture::TwoTowers => "two_towers",
        }
    }
}

/// Interaction of features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Interaction {
    /// Products of all pairs.
    Dot,
    /// Concatenation.
    Cat,
    /// A cross network (DCN-v2).
    Cross,
    /// The factorization machine's sum of products.
    Fm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Loss {
    Mse,
    BceWithLogits,
}

/// Floating-point type of the computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Precision {
    #[default]
    Fp32,
}

/// Pooling of the rows of a bag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pooling {
    #[default]
    Sum,
    Mean,
}

/// Distribution of a table's elements before training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TableInit {
    /// Normal with mean 0 and variance 1, as `nn.EmbeddingBag`.
    #[default]
    Normal,
    /// Uniform between -1/sqrt(rows) and 1/sqrt(rows), as DLRM.
    Uniform,
}

impl TableInit {
    /// The elements of a table with this number of rows.
    pub(super) fn of_rows(self, rows: i64) -> Initial {
        match self {
            TableInit::Normal => Initial::Normal,
            TableInit::Uniform => Initial::Uniform { bound: 1.0 / (rows.max(1) as f64).sqrt() },
        }
    }
}

/// A tower of a model with two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Tower {
    Query,
    Item,
}

impl Description {
    /// All tables, one by one.
    pub(super) fn each_table(&self) -> impl Iterator<Item = Table> {
        self.tables.iter().flat_map(|table| (0..table.count.max(0)).map(|_| *table))
    }

    pub(super) fn updates(&self) -> Updates {
        self.optimizer.unwrap_or(Updates { name: Rule::Sgd, form: Form::Foreach })
    }

    /// Whether gradients of tables are sparse; by default, if the optimizer supports it.
    pub(super) fn has_sparse_gradients(&self) -> bool {
        let updates = self.updates();
        self.sparse.unwrap_or(updates.name == Rule::Sgd && updates.form != Form::Fused)
    }

    pub(super) fn loss(&self) -> Loss {
        self.loss.unwrap_or(Loss::BceWithLogits)
    }
}

pub(super) fn parse(text: &str) -> Result<Description, Problem> {
    toml::from_str(text)
        .map_err(|error| Problem::Toml { nearest: nearest(error.message()), text: error.to_string() })
}

/// The word most similar to the first one in "unknown field `a`, expected one of `b`, `c`".
fn nearest(message: &str) -> Option<String> {
    let mut words = message.split('`').skip(1).step_by(2);
    let found = words.next().filter(|_| message.starts_with("unknown"))?;
    let close = |word: &&str| strsim::normalized_damerau_levenshtein(found, word);
    let best = words.max_by(|a, b| close(a).total_cmp(&close(b)))?;
    (close(&best) >= 0.5).then(|| best.to_owned())
}
