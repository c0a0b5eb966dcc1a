//! The description of a model, as it stands in the file.

use serde::Deserialize;

use super::parallel::Parallel;
use crate::error::Problem;
use crate::optimizer::{Form, Rule};

/// A model and how it is trained.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    /// What to call it.
    pub(super) name: Option<String>,
    pub(super) model: Architecture,
    /// Samples a step.
    pub(super) batch: i64,
    /// Numbers that come with a sample, not looked up.
    #[serde(default)]
    pub(super) dense: i64,
    /// Widths of the layers that dense numbers go through.
    #[serde(default)]
    pub(super) bottom_mlp: Vec<i64>,
    /// Widths of the layers after the interaction; of two towers, of each.
    #[serde(default)]
    pub(super) top_mlp: Vec<i64>,
    pub(super) interaction: Option<Interaction>,
    /// Layers of a cross network.
    pub(super) cross_layers: Option<i64>,
    /// Width of the narrow side of their weights; full weights where there is none.
    pub(super) cross_rank: Option<i64>,
    #[serde(default)]
    pub(super) loss: Option<Loss>,
    #[serde(default)]
    pub(super) precision: Precision,
    #[serde(default)]
    pub(super) pooling: Pooling,
    /// Whether gradients of tables hold the looked-up rows alone.
    pub(super) sparse: Option<bool>,
    pub(super) tables: Vec<Table>,
    pub(super) optimizer: Option<Updates>,
    /// The GPUs that train it together.
    pub(super) parallel: Option<Parallel>,
}

/// Embedding tables, one or several alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) rows: i64,
    pub(super) columns: i64,
    /// Lookups a sample.
    #[serde(default = "one")]
    pub(super) lookups: i64,
    /// How many there are.
    #[serde(default = "one")]
    pub(super) count: i64,
    /// Of two towers, whose it is.
    pub(super) tower: Option<Tower>,
}

fn one() -> i64 {
    1
}

/// The optimizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Updates {
    pub(super) name: Rule,
    #[serde(default)]
    pub(super) form: Form,
}

/// What kind of model it is.
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

/// How features meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Interaction {
    /// Products of all pairs.
    Dot,
    /// Side by side.
    Cat,
    /// A cross network (DCN-v2).
    Cross,
    /// The factorization machine's sum of products.
    Fm,
}

/// What is made small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Loss {
    Mse,
    BceWithLogits,
}

/// The type that numbers are computed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Precision {
    #[default]
    Fp32,
}

/// What a bag does with its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pooling {
    #[default]
    Sum,
    Mean,
}

/// A side of a model with two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Tower {
    Query,
    Item,
}

impl Description {
    /// Its tables one by one.
    pub(super) fn each_table(&self) -> impl Iterator<Item = Table> {
        self.tables.iter().flat_map(|table| (0..table.count.max(0)).map(|_| *table))
    }

    pub(super) fn updates(&self) -> Updates {
        self.optimizer.unwrap_or(Updates { name: Rule::Sgd, form: Form::Foreach })
    }

    /// Whether gradients of tables are sparse; where nothing is said, if the optimizer takes such.
    pub(super) fn has_sparse_gradients(&self) -> bool {
        let updates = self.updates();
        self.sparse.unwrap_or(updates.name == Rule::Sgd && updates.form != Form::Fused)
    }

    pub(super) fn loss(&self) -> Loss {
        self.loss.unwrap_or(Loss::BceWithLogits)
    }
}

/// Reads the text.
pub(super) fn parse(text: &str) -> Result<Description, Problem> {
    toml::from_str(text)
        .map_err(|error| Problem::Toml { nearest: nearest(error.message()), text: error.to_string() })
}

/// Of "unknown field `a`, expected one of `b`, `c`", the word that is nearly the first.
fn nearest(message: &str) -> Option<String> {
    let mut words = message.split('`').skip(1).step_by(2);
    let found = words.next().filter(|_| message.starts_with("unknown"))?;
    let close = |word: &&str| strsim::normalized_damerau_levenshtein(found, word);
    let best = words.max_by(|a, b| close(a).total_cmp(&close(b)))?;
    (close(&best) >= 0.5).then(|| best.to_owned())
}
