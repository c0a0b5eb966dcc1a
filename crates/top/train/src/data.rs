//! Rows for training and for evaluation.

use std::sync::Arc;

use steptime_dataset::{Best, Dataset, Error as DatasetError, Source, SplitName};
use steptime_eager::TableSize;

use crate::arguments::DataName;
use crate::error::Error;
use crate::synthetic::{Synthetic, planted};
use crate::{Failure, fit};

/// Rows of endless synthetic data: more than any run takes.
const ENDLESS: u64 = 1 << 40;
/// Synthetic rows of an evaluation.
const EVALUATED: u64 = 1 << 16;

/// Rows of a run.
pub struct Data {
    /// Rows for training.
    pub train: Arc<dyn Source>,
    /// Rows for evaluation, and their number; `None` without any.
    pub evaluation: Option<(Arc<dyn Source>, u64)>,
    /// Whether the rows of an epoch are shuffled.
    pub shuffled: bool,
    /// Whether the rows have no end.
    pub endless: bool,
    /// Best possible measures on the rows for evaluation, where known.
    pub best: Option<Best>,
}

/// Settings of the rows.
pub struct Wanted<'a> {
    pub name: &'a DataName,
    pub tables: &'a [TableSize],
    /// Dense values a row.
    pub dense: usize,
    pub seed: u64,
    /// Rows of a synthetic epoch.
    pub rows: Option<u64>,
    /// Rows of an evaluation at most.
    pub eval_rows: Option<u64>,
    pub threads: usize,
}

impl Data {
    /// Opens the data and compares it with the model.
    pub fn open(wanted: &Wanted<'_>) -> Result<Data, Failure> {
        match wanted.name {
            DataName::Synthetic { zipf } => Data::synthetic(wanted, *zipf),
            DataName::Folder(_) if wanted.rows.is_some() => {
                Err(Error::Options("--rows is for synthetic data: a dataset has its own rows".to_owned())
                    .into())
            }
            DataName::Folder(folder) => {
                let dataset = Dataset::open(folder)?;
                fit::check(&wanted.name.to_string(), dataset.features(), wanted.tables, wanted.dense)?;
                let validation = dataset.split(SplitName::Validation);
                let rows = validation.rows().min(wanted.eval_rows.unwrap_or(u64::MAX));
                let evaluation: Option<(Arc<dyn Source>, u64)> =
                    (rows > 0).then(|| (Arc::new(validation) as Arc<dyn Source>, rows));
                let train = Arc::new(dataset.split(SplitName::Train));
                Ok(Data { train, evaluation, shuffled: true, endless: false, best: None })
            }
        }
    }

    fn synthetic(wanted: &Wanted<'_>, zipf: f64) -> Result<Data, Failure> {
        let rows = wanted.rows.unwrap_or(ENDLESS);
        let (planted, lookups) = planted(wanted.tables, wanted.dense, wanted.seed, rows, zipf)?;
        let evaluated = wanted.eval_rows.unwrap_or(EVALUATED);
        let end = rows
            .checked_add(evaluated)
            .ok_or_else(|| Error::Options("--eval-rows: too many rows".to_owned()))?;
        let best = planted.best(rows..end, wanted.threads.max(1)).ok();
        let part = |rows| Arc::new(Synthetic::new(Arc::clone(&planted), &lookups, rows)) as Arc<dyn Source>;
        Ok(Data {
            train: part(0..rows),
            evaluation: Some((part(rows..end), evaluated)),
            shuffled: wanted.rows.is_some(),
            endless: wanted.rows.is_none(),
            best,
        })
    }
}

/// Adds the table to an index that the data's description does not allow.
pub fn with_table(error: DatasetError, source: &dyn Source) -> Failure {
    let DatasetError::Index { column, .. } = &error else { return error.into() };
    let column = column.clone();
    match source.features().categorical.iter().position(|one| one.name == column) {
        Some(table) => Error::Index { column, table, source: Box::new(error) }.into(),
        None => error.into(),
    }
}
