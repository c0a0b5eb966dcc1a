//! Prediction of the step that is run on a GPU, by the same rules.

mod job;

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use steptime_aten::OpSet;
use steptime_eager::Model;
use steptime_predict::pricing::{self, shipped_for};
use steptime_predict::{Change, Choice, Step, described_input};
use steptime_rewrite::{
    CudaGraph, DirectExchanges, Facts, ParallelGraph, PrefetchInputs, Rule, StagedInputs, Tf32,
};
use steptime_runtime::{Program, Rank};
use steptime_step::NodeOrder;
use steptime_trace::{Nanos, Options};

pub use self::job::RankTime;
use crate::Failure;
use crate::arguments::Train;
use crate::plan::Plan;
use crate::processor::{Precision, Processor};
use crate::row_copies::RowCopies;

/// Share of the difference between the sequence of nodes and their prediction at once that counts as unknown.
const UNKNOWN_SHARE: f64 = 0.5;
const NO_PROFILE: &str = "no profile of this GPU ships";

/// Predicted time of a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepTime {
    /// Time of a step, in milliseconds.
    pub ms: f64,
    /// Its 90 % interval.
    pub interval_ms: [f64; 2],
    /// Copies of rows of tables in host memory, which run beside the kernels of the step before; `None` without such tables, or where the
    /// distribution of indices is not known.
    pub row_copies: Option<RowCopies>,
    /// What is uncertain about it, worst first.
    pub doubts: Vec<String>,
    /// Times of each rank; empty for one GPU.
    pub ranks: Vec<RankTime>,
}

/// Changes of a rank's step, and the order of the nodes of its CUDA graphs.
#[derive(Debug)]
struct RankChanges {
    rules: Vec<Arc<dyn Rule>>,
    nodes: ParallelGraph,
}

impl RankChanges {
    fn new(args: &Train, plan: &Plan, program: &Program) -> RankChanges {
        let mut rules: Vec<Arc<dyn Rule>> = plan.applied.iter().chain(&plan.of_device).cloned().collect();
        if args.dtype == Precision::Tf32 {
            rules.push(Arc::new(Tf32));
        }
        // A GPU's session does all of these in every plan. A rank without tables may have no inputs.
        let is_prefetched = rules.iter().any(|rule| rule.name() == PrefetchInputs.name());
        let ops = OpSet::standard();
        let facts = Facts::new(&ops, None);
        let has_inputs = is_prefetched || PrefetchInputs.patches(&plan.step, &facts).is_ok();
        let copies: [Arc<dyn Rule>; 2] = [Arc::new(PrefetchInputs), Arc::new(StagedInputs)];
        let always = copies.into_iter().filter(|_| has_inputs).chain([Arc::new(CudaGraph) as Arc<dyn Rule>]);
        for rule in always {
            if rules.iter().all(|other| other.name() != rule.name()) {
                rules.push(rule);
            }
        }
        // Where all tables are on every rank nothing is sent.
        if plan.direct && DirectExchanges.patches(&plan.step, &facts).is_ok() {
            rules.push(Arc::new(DirectExchanges));
        }
        RankChanges { rules, nodes: ParallelGraph { order: NodeOrder { places: program.used_bytes() } } }
    }

    /// The rules, with nodes in sequence.
    fn sequence(&self) -> Vec<&dyn Rule> {
        self.rules.iter().map(|rule| &**rule).collect()
    }

    /// The rules, with nodes ordered by the bytes that they use.
    fn parallel(&self) -> Vec<&dyn Rule> {
        let mut rules = self.sequence();
        rules.push(&self.nodes);
        rules
    }
}

/// Predicts the step of a run from the description of its model and the applied rules, or returns the reason why it cannot. Each rank of a job
/// calls it, and all get the prediction of the first one.
///
/// # Errors
/// Where another rank failed. The reason is of a CPU, of a GPU without a shipped profile, or of the engine.
pub fn predict(
    args: &Train,
    processor: &Processor,
    model: &Model,
    plan: &Plan,
    program: &Program,
    rank: &Rank,
) -> Result<Result<StepTime, String>, Failure> {
    if !processor.is_gpu() {
        return Ok(Err("none on a CPU".to_owned()));
    }
    let changes = RankChanges::new(args, plan, program);
    if rank.ranks() == 1 {
        return Ok(predict_on(processor.name(), args, model, plan, &changes));
    }
    let all = rank.gather(changes, None)?;
    let first = (rank.rank() == 0).then(|| job::predict_on(processor.name(), args, model, &all));
    let found = rank.gather(first, None)?;
    Ok(found.first().and_then(|first| (**first).clone()).ok_or("the first rank predicts no step")?)
}

/// Predicts the step of a run on a GPU by its name.
fn predict_on(
    gpu: &str,
    args: &Train,
    model: &Model,
    plan: &Plan,
    changes: &RankChanges,
) -> Result<StepTime, String> {
    let device = shipped_for(gpu).ok_or(NO_PROFILE)?;
    let path = args.model.as_deref().unwrap_or(Path::new(""));
    let mut input = described_input(path, model);
    let step = Step::from_input(&mut input, &Choice::default(), &Options::default())
        .map_err(|error| error.to_string())?;
    let query = step.predict().on(device).map_err(|error| error.to_string())?.on_a_typical_host();
    let asked = query.what_ifs().map_err(|error| error.to_string())?;
    let changed = |rules: &[&dyn Rule]| {
        let found = asked.changed(&Change { rules, host_times: None });
        found.map(|found| found.after).map_err(|error| error.to_string())
    };
    let (sequence, after) = (changed(&changes.sequence())?, changed(&changes.parallel())?);
    let ([mut low, high], mut ms) = (after.interval.map(|time| time.as_millis()), after.step.as_millis());
    let mut high = high.max(high * longer_by_sequence(sequence.step, after.step));
    let row_copies = match &plan.host {
        Some(host) => {
            let profile = pricing::device(device).map_err(|error| error.to_string())?;
            RowCopies::predict(host, &args.data, model.batch(), &profile.spec.transfer)
        }
        None => None,
    };
    if let Some(copies) = row_copies {
        // At best they run beside the step, at worst before it.
        (low, ms, high) = (low.max(copies.ms), ms.max(copies.ms), high + copies.ms);
    }
    let doubts = after.doubts.iter().map(|doubt| doubt.text.clone()).collect();
    Ok(StepTime { ms, interval_ms: [low, high], row_copies, doubts, ranks: Vec::new() })
}

/// Factor on the upper end of an interval: nodes may hold one another up to the sequence.
fn longer_by_sequence(sequence: Nanos, parallel: Nanos) -> f64 {
    1.0 + UNKNOWN_SHARE * (sequence.as_millis() / parallel.as_millis() - 1.0)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::Parser;
    use serde_json::Value;
    use steptime_runtime::Target;

    use super::*;
    use crate::arguments::Arguments;

    const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

    /// The model of a row of measurements.
    fn file(name: &str) -> PathBuf {
        let folders = ["examples/models", "benches/train_models"];
        let files = folders.map(|folder| Path::new(ROOT).join(folder).join(format!("{name}.toml")));
        files.into_iter().find(|file| file.exists()).expect("a model of this name")
    }

    /// The prediction of a row, its planned memory and its predicted one.
    fn predicted(row: &Value, gpu: &str) -> (StepTime, [f64; 2]) {
        let file = file(row["model"].as_str().expect("a name"));
        let (batch, precision) = (row["batch"].to_string(), row["precision"].as_str().expect("a precision"));
        let words =
            ["steptime-train", file.to_str().expect("a path"), "--dtype", precision, "--batch", &*batch];
        let args = Arguments::try_parse_from(words).expect("arguments").train;
        let model = Model::read(&file).expect("a model").on_gpus(1).expect("one GPU");
        let model = model.with_batch(args.batch.expect("a batch").get()).expect("another batch");
        let (plan, program) =
            Plan::compile(&model, &Rank::group(1).remove(0), &args.plan, args.dtype, (Target::Cuda, false))
                .expect("a plan");
        let bytes = [plan.planned_bytes, plan.predicted_bytes].map(|bytes| bytes as f64);
        let changes = RankChanges::new(&args, &plan, &program);
        (predict_on(gpu, &args, &model, &plan, &changes).expect("a prediction"), bytes)
    }

    /// `cargo test -p steptime-train-cli predictions_of -- --nocapture` prints the table.
    #[test]
    fn predictions_of_measured_steps() {
        let text = std::fs::read_to_string(Path::new(ROOT).join("benches/results/train_h200.json"));
        let all: Value = serde_json::from_str(&text.expect("the measurements")).expect("JSON");
        let gpu = all["gpu"].as_str().expect("a GPU");
        let (mut errors, mut held) = (Vec::new(), 0);
        for row in all["predicted"].as_array().expect("rows") {
            let measured = row["measured_ms"].as_f64().expect("a time");
            let (found, [planned, bytes]) = predicted(row, gpu);
            let ([low, high], error) = (found.interval_ms, found.ms / measured - 1.0);
            println!(
                "{} {} {}: measured {measured:.3}, predicted {:.3} ({:+.1} %), {low:.3} to {high:.3} ms",
                row["model"],
                row["batch"],
                row["precision"],
                found.ms,
                100.0 * error
            );
            assert!((bytes / planned - 1.0).abs() < 0.02, "{row}: {bytes} of {planned} B");
            errors.push(error.abs());
            held += usize::from((low..=high).contains(&measured));
        }
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        println!("mean error {:.1} %, {held} of {} hold", 100.0 * mean, errors.len());
        assert!(mean < 0.25, "{errors:?}");
    }
}
