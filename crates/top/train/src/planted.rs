//! Planted rows as a dataset: `steptime-train data synthetic`.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use steptime_dataset::{
    Block, Column, Error as DatasetError, Features, Rows, Selection, Slot, Slots, Source,
};
use steptime_dataset::{Splits, Writer};
use steptime_eager::Model;
use steptime_runtime::{Rank, Target};
use steptime_train::metrics::{Evaluation, Measures, Scores};

use crate::Failure;
use crate::error::Error;
use crate::feed::Feed;
use crate::plan::Plan;
use crate::plan_choice::PlanChoice;
use crate::processor::Precision;
use crate::synthetic::{Synthetic, planted};

/// Rows that are written at once.
const PART: u64 = 8192;

/// `steptime-train data synthetic`.
#[derive(Debug, Args)]
pub struct PlantedData {
    /// The description of the model, whose tables and dense values the rows have
    #[arg(value_name = "MODEL.toml")]
    model: PathBuf,
    /// Folder of the dataset
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Number of rows
    #[arg(long, value_name = "N")]
    rows: NonZero<u64>,
    /// Share of the rows that are for validation, the last ones
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    validation: f64,
    /// Seed of the rows and of the planted model
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Zipf exponent of the indices, 0 to 8; 0 for uniform ones
    #[arg(long, value_name = "A", default_value_t = 0.0)]
    zipf: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The answer as JSON.
#[derive(Debug, Serialize)]
struct Answer {
    schema: u32,
    command: &'static str,
    rows: u64,
    train: u64,
    validation: u64,
    /// Best possible measures on the validation rows, on average over their labels.
    best: Option<Expected>,
    /// Measures of the true probabilities on the labels of the validation rows.
    true_probabilities: Measures,
}

#[derive(Debug, Serialize)]
struct Expected {
    auc: f64,
    log_loss: f64,
}

/// Writes the rows.
pub fn run(args: &PlantedData) -> Result<(), Failure> {
    if !(0.0..=1.0).contains(&args.validation) {
        let reason = format!("--validation {}: choose a share from 0 to 1", args.validation);
        return Err(Error::Options(reason).into());
    }
    let model = Model::read(&args.model)?.on_gpus(1)?;
    let rank = Rank::group(1).remove(0);
    let (_, program) = Plan::compile(&model, &rank, &PlanChoice::None, Precision::F32, (Target::Cpu, false))?;
    let tables = model.tables();
    let dense = Feed::new(&program, &tables, model.batch() as usize, [0, 1])?.dense();
    let rows = args.rows.get();
    let (planted, lookups) = planted(&tables, dense, args.seed, rows, args.zipf)?;
    let source = Synthetic::new(Arc::clone(&planted), &lookups, 0..rows);
    let train = rows.saturating_sub((rows as f64 * args.validation).round() as u64);
    write(&args.output, &source, train)?;
    let mut evaluation = Evaluation::new(Scores::Probabilities);
    for number in train..rows {
        let row = planted.row(number);
        evaluation.add(&[row.probability as f32], &[row.label])?;
    }
    let best = planted.best(train..rows, 1).ok();
    let answer = Answer {
        schema: 1,
        command: "data",
        rows,
        train,
        validation: rows - train,
        best: best.map(|best| Expected { auc: best.auc, log_loss: best.log_loss }),
        true_probabilities: evaluation.measures(),
    };
    crate::print(args.json, &answer, text)
}

/// Writes the rows of a source; those from `train` on are for validation.
fn write(place: &Path, source: &Synthetic, train: u64) -> Result<(), Failure> {
    let rows = source.rows();
    let features = Features { rows: 0, splits: Splits::default(), ..source.features().clone() };
    let mut writer = Writer::create(place, features.clone())?;
    for start in (0..rows).step_by(PART as usize) {
        writer.append(&block(source, &features, start..rows.min(start + PART))?)?;
    }
    writer.finish(Splits { train: [0, train], validation: [train, rows] })?;
    Ok(())
}

/// Some rows as bytes of the format.
fn block(source: &Synthetic, features: &Features, rows: std::ops::Range<u64>) -> Result<Block, DatasetError> {
    let count = (rows.end - rows.start) as usize;
    let (mut label, mut dense) = (vec![0.0; count], vec![0.0; count * features.dense.columns.len()]);
    let mut values: Vec<Vec<i32>> = source.lookups().map(|lookups| vec![0; count * lookups]).collect();
    let categorical = values.iter_mut().map(|values| Slot { values, offsets: None }).collect();
    source.fill(&Selection::Range(rows), Slots { label: &mut label, dense: &mut dense, categorical })?;
    let categorical = values.iter().map(|values| Column { values, lengths: None }).collect();
    Block::encode(features, &Rows { label: &label, dense: &dense, categorical })
}

fn text(answer: &Answer) -> String {
    let Answer { rows, train, validation, true_probabilities: own, .. } = answer;
    let mut text = format!("{rows} rows: {train} for training, {validation} for validation\n");
    if let Some(best) = &answer.best {
        text += &format!("best possible: AUC {:.5}, log loss {:.5}\n", best.auc, best.log_loss);
    }
    if let (Some(auc), Some(loss)) = (own.auc, own.log_loss) {
        text += &format!("true probabilities on the labels: AUC {auc:.5}, log loss {loss:.5}\n");
    }
    text
}
