//! The answer of a run: predicted beside measured, as JSON and as a table.

use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;
use serde::Serialize;
use steptime_cuda::cache::Statistics;
use steptime_dataset::Best;
use steptime_eager::{Model, TableLayout};
use steptime_rewrite::Rule;

use crate::Failure;
use crate::arguments::Train;
use crate::checkpoints::Settings;
use crate::evaluate::Evaluated;
use crate::host_tables::HostMemory;
use crate::measured::{Steps, Summary};
use crate::memory::process_bytes;
use crate::plan::Plan;
use crate::plan_choice::PlanChoice;
use crate::predicted::{RankTime, StepTime};
use crate::row_copies::RowCopies;
use crate::table::table;

/// Version of the JSON.
const SCHEMA: u32 = 1;

/// Everything that is reported of a run.
pub struct Report<'a> {
    pub args: &'a Train,
    pub model: &'a Model,
    pub ranks: &'a [Arc<RankReport>],
    pub plan: &'a Plan,
    /// Name of the device.
    pub device: &'a str,
    /// Predicted time of a step, or the reason why there is none.
    pub predicted: &'a Result<StepTime, String>,
    pub settings: &'a Settings,
    pub threads: usize,
    pub rate: f64,
    /// Number of steps that were made before.
    pub first_step: u64,
    pub summary: Option<Summary>,
    /// Batches of an update.
    pub rounds: usize,
    pub row_cache: Option<RowCache>,
    pub evaluations: &'a [Evaluated],
    pub best: Option<Best>,
    pub has_labels: bool,
    pub checkpoint: Option<&'a Path>,
}

/// Use of the rows that the GPU caches, over all batches of steps and evaluations.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RowCache {
    /// Share of a batch's distinct rows that were on the GPU.
    hit_rate: f64,
    /// Mean number of rows that were copied to the GPU for a batch.
    fetched: f64,
    /// Mean number of changed rows that were copied back for a batch.
    written: f64,
}

impl RowCache {
    /// Means of the counts of a cache.
    pub fn new(counts: Statistics) -> RowCache {
        let mean = |count: u64| count as f64 / counts.batches.max(1) as f64;
        RowCache {
            hit_rate: counts.hit_rate(),
            fetched: mean(counts.misses()),
            written: mean(counts.written),
        }
    }
}

/// A rank of a job.
#[derive(Debug, Serialize)]
pub struct RankReport {
    rank: usize,
    device: String,
    /// Tables of which it has all or a part; replicated ones are left out.
    tables: Vec<usize>,
    step_bytes: u64,
    predicted_bytes: u64,
    predicted_ms: Option<f64>,
    /// 90 % interval of the predicted step.
    predicted_interval_ms: Option<[f64; 2]>,
    /// Parts of the predicted step.
    predicted_parts: Option<RankTime>,
    /// Median time of a step.
    median_ms: Option<f64>,
}

impl RankReport {
    pub fn new(
        device: &str,
        model: &Model,
        rank: usize,
        steps: &Steps,
        plan: &Plan,
        predicted: Option<&StepTime>,
    ) -> RankReport {
        let has = |home: &TableLayout| match home {
            TableLayout::Everywhere => false,
            TableLayout::Parts(parts) => parts.iter().any(|part| part.gpu as usize == rank),
        };
        let homes = model.homes();
        let own = homes.iter().enumerate().filter(|(_, home)| has(home));
        RankReport {
            rank,
            device: device.to_owned(),
            tables: own.map(|(at, _)| at).collect(),
            step_bytes: plan.planned_bytes,
            predicted_bytes: plan.predicted_bytes,
            predicted_ms: predicted.map(|time| time.ms),
            predicted_interval_ms: predicted.map(|time| time.interval_ms),
            predicted_parts: predicted.and_then(|time| time.ranks.get(rank).copied()),
            median_ms: steps.summary(model.batch()).map(|summary| summary.median_ms),
        }
    }
}

/// The answer as JSON.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    schema: u32,
    command: &'static str,
    model: Option<&'a str>,
    parameters: u64,
    device: &'a str,
    dtype: String,
    threads: usize,
    batch: u64,
    /// Batches of an update.
    accumulate: usize,
    data: &'a str,
    seed: u64,
    rate: f64,
    first_step: u64,
    plan: Changes<'a>,
    predicted: Predicted<'a>,
    measured: Measured,
    best: Option<BestPossible>,
    evaluations: &'a [Evaluated],
    checkpoint: Option<&'a Path>,
    /// File of the recording.
    record: Option<&'a Path>,
    /// File of the timeline.
    timeline: Option<&'a Path>,
    /// Predicted and measured step of each rank.
    ranks: Vec<&'a RankReport>,
}

#[derive(Debug, Serialize)]
struct Changes<'a> {
    name: String,
    applied: Vec<&'static str>,
    /// Rules that describe work of the device's program in every plan.
    of_device: Vec<&'static str>,
    skipped: Vec<Skipped<'a>>,
    host_memory: Option<&'a HostMemory>,
}

#[derive(Debug, Serialize)]
struct Skipped<'a> {
    rule: &'a str,
    reason: &'a str,
}

#[derive(Debug, Serialize)]
struct Predicted<'a> {
    step_bytes: u64,
    /// Time of a step; null where it is not predicted.
    step_ms: Option<f64>,
    /// Its 90 % interval.
    step_interval_ms: Option<[f64; 2]>,
    /// The reason why it is not predicted.
    reason: Option<&'a str>,
    /// Work of the step that its prediction does not count.
    without: Option<&'static str>,
    /// Copies of rows of tables in host memory.
    row_copies: Option<RowCopies>,
    /// What is uncertain about the time, worst first.
    doubts: &'a [String],
}

/// Work that the prediction of a step with tables in host memory does not count on data of an unknown distribution.
const NOT_COUNTED: &str = "the copies of rows between host and GPU";

#[derive(Debug, Serialize)]
struct Measured {
    step_bytes: u64,
    process_bytes: Option<u64>,
    row_cache: Option<RowCache>,
    #[serde(flatten)]
    steps: Option<Summary>,
}

#[derive(Debug, Serialize)]
struct BestPossible {
    auc: f64,
    log_loss: f64,
}

impl Report<'_> {
    /// Prints the answer.
    pub fn print(&self) -> Result<(), Failure> {
        crate::print(self.args.json, &self.answer(), |answer| self.text(answer))
    }

    fn answer(&self) -> Answer<'_> {
        let (plan, time) = (self.plan, self.predicted.as_ref().ok());
        let skipped = plan.skipped.iter().map(|(rule, reason)| Skipped { rule, reason }).collect();
        Answer {
            schema: SCHEMA,
            command: "train",
            model: self.model.name(),
            parameters: self.model.parameters(),
            device: self.device,
            dtype: self
                .args
                .dtype
                .to_possible_value()
                .map_or_else(String::new, |value| value.get_name().to_owned()),
            threads: self.threads,
            batch: self.model.batch(),
            accumulate: self.rounds,
            data: &self.settings.data,
            seed: self.settings.seed,
            rate: self.rate,
            first_step: self.first_step,
            plan: Changes {
                name: self.args.plan.to_string(),
                applied: names(&plan.applied),
                of_device: names(&plan.of_device),
                skipped,
                host_memory: plan.host.as_ref(),
            },
            predicted: Predicted {
                step_bytes: plan.predicted_bytes,
                step_ms: time.map(|time| time.ms),
                step_interval_ms: time.map(|time| time.interval_ms),
                reason: self.predicted.as_ref().err().map(String::as_str),
                without: time
                    .filter(|time| plan.host.is_some() && time.row_copies.is_none())
                    .map(|_| NOT_COUNTED),
                row_copies: time.and_then(|time| time.row_copies),
                doubts: time.map_or(&[], |time| &time.doubts),
            },
            measured: Measured {
                step_bytes: plan.planned_bytes,
                process_bytes: process_bytes(),
                row_cache: self.row_cache,
                steps: self.summary,
            },
            best: self.best.map(|best| BestPossible { auc: best.auc, log_loss: best.log_loss }),
            evaluations: self.evaluations,
            checkpoint: self.checkpoint,
            record: self.args.record.as_deref(),
            timeline: self.args.timeline.as_deref(),
            ranks: self.ranks.iter().map(|rank| &**rank).collect(),
        }
    }

    fn text(&self, answer: &Answer<'_>) -> String {
        let named = answer.model.unwrap_or("the model");
        let mut text = format!(
            "{named} on {}{}: batch {}, {} parameters, {}, {} threads, seed {}, learning rate {}\n",
            if answer.ranks.len() > 1 { format!("{} x ", answer.ranks.len()) } else { String::new() },
            answer.device,
            answer.batch,
            answer.parameters,
            answer.dtype,
            answer.threads,
            answer.seed,
            answer.rate
        );
        if self.args.plan == PlanChoice::None {
            text += "plan none: the step of PyTorch eager\n";
        } else {
            let applied = if answer.plan.applied.is_empty() {
                "no rule".to_owned()
            } else {
                answer.plan.applied.join(", ")
            };
            text += &format!("plan {}: {applied}\n", answer.plan.name);
            if !answer.plan.of_device.is_empty() {
                text += &format!("  and on a GPU: {}\n", answer.plan.of_device.join(", "));
            }
            for Skipped { rule, reason } in &answer.plan.skipped {
                text += &format!("  without {rule}: {reason}\n");
            }
        }
        if let Some(host) = answer.plan.host_memory {
            text += &format!("host memory: {host}\n");
        } else if self.args.host_memory.is_some() {
            text += "host memory: no table, the step fits the GPU\n";
        }
        if let Some(without) = answer.predicted.without {
            text += &format!("the predicted step is without {without}\n");
        }
        text += "\n";
        text += &table(&["", "predicted", "measured", "best possible"], &self.rows(answer));
        for doubt in answer.predicted.doubts {
            text += &format!("! {doubt}\n");
        }
        if let Some(path) = answer.checkpoint {
            text += &format!("\ncheckpoint {}\n", path.display());
        }
        for (name, path) in [("recording", answer.record), ("timeline", answer.timeline)] {
            if let Some(path) = path {
                text += &format!("\n{name} {}\n", path.display());
            }
        }
        text
    }

    /// Name, predicted, measured and best possible number of each row.
    fn rows(&self, answer: &Answer<'_>) -> Vec<[String; 4]> {
        let row = |name: &str, predicted: String, measured: String| {
            [name.to_owned(), predicted, measured, String::new()]
        };
        let (time, samples) = match self.predicted {
            Ok(StepTime { ms, interval_ms: [low, high], .. }) => (
                format!("{ms:.3} ms, {low:.3} .. {high:.3}"),
                format!("{:.0}", answer.batch as f64 * answer.accumulate as f64 * 1e3 / ms),
            ),
            Err(reason) => (reason.clone(), reason.clone()),
        };
        let measured = &answer.measured;
        let mut rows = vec![row(
            "memory of the step",
            megabytes(answer.predicted.step_bytes),
            megabytes(measured.step_bytes),
        )];
        if let Some(bytes) = measured.process_bytes {
            rows.push(row("memory of the process", String::new(), megabytes(bytes)));
        }
        if let Some(RowCache { hit_rate, fetched, written }) = measured.row_cache {
            let predicted = answer.predicted.row_copies.map_or_else(String::new, |RowCopies { rows, ms }| {
                format!("{rows:.0} to the GPU and back, {ms:.3} ms")
            });
            rows.extend([
                row("rows found in the cache", String::new(), format!("{:.1} %", 100.0 * hit_rate)),
                row("rows copied, a batch", predicted, format!("{fetched:.0} to the GPU, {written:.0} back")),
            ]);
        }
        if let Some(steps) = &measured.steps {
            let range = format!("{:.3} .. {:.3} ms", steps.min_ms, steps.max_ms);
            rows.extend([
                row("step, median", time, format!("{:.3} ms", steps.median_ms)),
                row("step, shortest and longest", String::new(), range),
                row("waiting for data, a step", String::new(), format!("{:.3} ms", steps.waiting_ms)),
                row("samples a second", samples, format!("{:.0}", steps.samples_per_second)),
                row("steps", String::new(), (answer.first_step + steps.steps as u64).to_string()),
                row(
                    "loss, first and last step",
                    String::new(),
                    format!("{:.5}, {:.5}", steps.first_loss, steps.loss),
                ),
                row("loss, mean of all steps", String::new(), format!("{:.5}", steps.mean_loss)),
            ]);
        }
        let ms = |time: Option<f64>| time.map_or_else(String::new, |ms| format!("{ms:.3} ms"));
        if answer.ranks.len() > 1 {
            rows.extend(answer.ranks.iter().map(|of| {
                let name = format!("rank {}, {} tables", of.rank, of.tables.len());
                let parts = of.predicted_parts.map_or_else(String::new, |parts| format!(": {parts}"));
                row(&name, ms(of.predicted_ms) + &parts, ms(of.median_ms))
            }));
        }
        rows.extend(self.measures());
        rows
    }

    fn measures(&self) -> Vec<[String; 4]> {
        let row = |name: &str, measured: String, best: Option<f64>| {
            let best = best.map_or_else(String::new, |best| format!("{best:.5}"));
            [name.to_owned(), String::new(), measured, best]
        };
        let Some(Evaluated { measures, .. }) = self.evaluations.last() else {
            let reason = if self.has_labels { "no validation rows" } else { "no labels" };
            return vec![row("AUC, log loss", reason.to_owned(), None)];
        };
        let number =
            |value: Option<f64>| value.map_or_else(|| "undefined".to_owned(), |value| format!("{value:.5}"));
        vec![
            row("rows of the evaluation", measures.samples.to_string(), None),
            row("AUC", number(measures.auc), self.best.map(|best| best.auc)),
            row("log loss", number(measures.log_loss), self.best.map(|best| best.log_loss)),
            row("calibration", number(measures.calibration), None),
        ]
    }
}

fn names(rules: &[Arc<dyn Rule>]) -> Vec<&'static str> {
    rules.iter().map(|rule| rule.name()).collect()
}

fn megabytes(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}
