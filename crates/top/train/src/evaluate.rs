//! Measures of the model on rows for evaluation.

use std::sync::Arc;

use serde::Serialize;
use steptime_dataset::{BatchOptions, Batches, Source};
use steptime_runtime::{Rank, Session};
use steptime_train::metrics::{Evaluation, Measures, Scores};

use crate::Failure;
use crate::data::with_table;
use crate::feed::Feed;

/// Measures after a step.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Evaluated {
    /// Number of steps that have been made.
    pub step: u64,
    /// The measures.
    #[serde(flatten)]
    pub measures: Measures,
}

/// Runs the forward pass of all ranks on the first rows of a source, and measures their outputs. Nothing of the session changes but its inputs.
///
/// # Errors
/// Where a row cannot be read, or an output is NaN.
pub fn evaluate(
    session: &mut Session,
    feed: &mut Feed,
    source: &Arc<dyn Source>,
    rows: u64,
    (threads, rank): (usize, &Rank),
) -> Result<Evaluated, Failure> {
    let options = BatchOptions { threads, ..BatchOptions::new(feed.batch()) };
    let mut batches = Batches::new(Arc::clone(source), options)?;
    let mut evaluation = None;
    let mut left = usize::try_from(rows).unwrap_or(usize::MAX);
    while left > 0
        && let Some(batch) = batches.next()
    {
        let batch = batch.map_err(|error| with_table(error, &**source))?;
        feed.batch_to(session, &batch)?;
        let outputs = session.forward()?;
        let mut values = Vec::with_capacity(feed.batch());
        rank.gather(outputs.values, None)?.iter().for_each(|own| values.extend_from_slice(own));
        let count = batch.rows().min(left).min(values.len());
        // The outputs of a squared loss are logistic values.
        let scores = if outputs.loss_op.contains("mse") { Scores::Probabilities } else { Scores::Logits };
        evaluation
            .get_or_insert_with(|| Evaluation::new(scores))
            .add(&values[..count], &batch.label()[..count])?;
        left -= count;
    }
    let measures = evaluation.unwrap_or_else(|| Evaluation::new(Scores::Logits)).measures();
    Ok(Evaluated { step: session.steps(), measures })
}
