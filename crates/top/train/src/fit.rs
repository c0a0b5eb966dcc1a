//! Comparison of a dataset's columns with a model's tables, before anything runs.

use steptime_dataset::{Features, Hotness};
use steptime_eager::TableSize;

use crate::error::Error;

/// Differences that are listed at most.
const LISTED: usize = 5;

/// Checks that a dataset has the model's dense values, and a column for each table, in order.
pub fn check(data: &str, features: &Features, tables: &[TableSize], dense: usize) -> Result<(), Error> {
    let mut reasons = Vec::new();
    let columns = &features.categorical;
    if features.dense.columns.len() != dense {
        let found = features.dense.columns.len();
        reasons.push(format!(
            "it has {found} dense columns, and the model takes {dense}: set `dense = {found}`"
        ));
    }
    if columns.len() != tables.len() {
        let (found, tables) = (columns.len(), tables.len());
        reasons.push(format!(
            "it has {found} categorical columns, and the model {tables} tables: describe a table a column"
        ));
    }
    for (at, (column, table)) in columns.iter().zip(tables).enumerate() {
        let (name, cardinality) = (&column.name, column.cardinality);
        if i64::from(cardinality) > table.rows {
            let rows = table.rows;
            reasons.push(format!(
                "column {name} has {cardinality} categories, and table {at} has {rows} rows: set `rows = {cardinality}` or more"
            ));
        }
        match column.hotness {
            Hotness::Fixed(hotness) if i64::from(hotness) == table.lookups => {}
            Hotness::Fixed(hotness) => {
                let lookups = table.lookups;
                reasons.push(format!(
                    "column {name} has {hotness} categories a row, and table {at} takes {lookups}: set `lookups = {hotness}`"
                ));
            }
            Hotness::Ragged => reasons.push(format!(
                "column {name} has any number of categories a row, and table {at} takes {}: convert it with a fixed hotness",
                table.lookups
            )),
        }
    }
    if reasons.is_empty() {
        return Ok(());
    }
    let more = reasons.len().saturating_sub(LISTED);
    reasons.truncate(LISTED);
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    let reasons = reasons.into_iter().map(|reason| format!("  {reason}")).collect();
    Err(Error::Misfit { data: data.to_owned(), reasons })
}
