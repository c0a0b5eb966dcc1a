//! Prediction of the step that is run on a GPU, by the same rules.

use std::path::Path;

use serde::Serialize;
use steptime_eager::Model;
use steptime_predict::pricing::{self, shipped_for};
use steptime_predict::{Change, Choice, Step, described_input};
use steptime_rewrite::{CudaGraph, ParallelGraph, PrefetchInputs, Rule, StagedInputs, Tf32};
use steptime_runtime::Program;
use steptime_step::NodeOrder;
use steptime_trace::Options;

use crate::arguments::Train;
use crate::plan::Plan;
use crate::processor::{Precision, Processor};
use crate::row_copies::RowCopies;

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
}

/// Predicts the step of a run from the description of its model and the applied rules, or returns the reason why it cannot.
///
/// # Errors
/// On a CPU; where no profile of the GPU ships; where the engine refuses the description.
pub fn predict(
    args: &Train,
    processor: &Processor,
    model: &Model,
    plan: &Plan,
    program: &Program,
) -> Result<StepTime, String> {
    if !processor.is_gpu() {
        return Err("none on a CPU".to_owned());
    }
    predict_on(processor.name(), args, model, plan, program)
}

/// Predicts the step of a run on a GPU by its name.
fn predict_on(
    gpu: &str,
    args: &Train,
    model: &Model,
    plan: &Plan,
    program: &Program,
) -> Result<StepTime, String> {
    let device = shipped_for(gpu).ok_or("no profile of this GPU ships")?;
    let path = args.model.as_deref().unwrap_or(Path::new(""));
    let mut input = described_input(path, model);
    let step = Step::from_input(&mut input, &Choice::default(), &Options::default())
        .map_err(|error| error.to_string())?;
    let query = step.predict().on(device).map_err(|error| error.to_string())?.on_a_typical_host();
    let mut rules: Vec<&dyn Rule> =
        plan.applied.iter().chain(&plan.of_device).map(|rule| &**rule).collect();
    if args.dtype == Precision::Tf32 {
        rules.push(&Tf32);
    }
    // A GPU's session does all three in every plan.
    let nodes = ParallelGraph { order: NodeOrder { places: program.used_bytes() } };
    for rule in [&PrefetchInputs as &dyn Rule, &CudaGraph, &StagedInputs, &nodes] {
        if rules.iter().all(|other| other.name() != rule.name()) && !(rule.name() == "parallel-graph" && std::env::var("SEQ").is_ok()) {
            rules.push(rule);
        }
    }
    let found =
        query.changed(&Change { rules: &rules, host_times: None }).map_err(|error| error.to_string())?;
    let after = &found.after;
    if std::env::var("DUMP").is_ok() {
        let (graph, time) = (&found.scheduled.graph, &after.timeline);
        let (flat, through) = (found.uncaptured.as_ref(), &found.scheduled);
        let _ = through;
        let mut all: Vec<_> = graph.activities.keys().collect();
        all.sort_by_key(|&at| time.starts[at]);
        let zero = all.first().map(|&at| time.starts[at]);
        let flat_call: Vec<_> = flat.map(|flat| flat.graph.calls_by_hand_off().into_iter().flat_map(|call| flat.graph.calls[call].activities()).filter(|&at| flat.graph.activities[at].stream.0 == 0 || true).collect()).unwrap_or_default();
        let order: Vec<_> = graph.calls_by_hand_off().into_iter().flat_map(|call| graph.calls[call].activities()).collect();
        for at in all {
            let row = &graph.activities[at];
            let place = order.iter().position(|&own| own == at).unwrap();
            let name = flat.map(|flat| { let own = flat_call[place]; let call = flat.graph.activities[own].call; let op = flat.graph.calls[call].op; op.map(|op| { let o = flat.ops[op]; let shapes: Vec<String> = found.step.call(o).map(|c| c.inputs.iter().chain(&c.outputs).flat_map(|a| a.tensors().iter().take(3).map(|t| format!("{:?}", &t.shape[..])).collect::<Vec<_>>()).collect()).unwrap_or_default(); format!("{} {}", flat.graph.op_name(op), shapes.join(" ")) }).unwrap_or_default() }).unwrap_or_default();
            println!("{:8.1} {:7.2} s{:<3} {:?} {}", (time.starts[at] - zero.unwrap()).as_micros(), (time.ends[at] - time.starts[at]).as_micros(), row.stream.0, row.kind, name.chars().take(150).collect::<String>());
        }
    }
    let ([mut low, mut high], mut ms) = (after.interval.map(|time| time.as_millis()), after.step.as_millis());
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
    Ok(StepTime { ms, interval_ms: [low, high], row_copies, doubts })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use steptime_runtime::Target;

    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn measured() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
        let only = std::env::var("ONLY").unwrap_or_default();
        for gpu in ["h200", "h100"] {
            let text = std::fs::read_to_string(format!("{root}/benches/results/train_{gpu}.json")).unwrap();
            let all: serde_json::Value = serde_json::from_str(&text).unwrap();
            let rows = all["predicted"].as_array().unwrap().iter().chain(all["steps_ms"].as_array().unwrap().iter().filter(|r| r["model"] != "two_towers"));
            for row in rows {
                let name = row["model"].as_str().unwrap();
                let (batch, precision) = (row["batch"].as_u64().unwrap(), row["precision"].as_str().unwrap());
                let case = format!("{gpu} {name} {batch} {precision}");
                if !case.contains(&only) { continue }
                let file = [format!("{root}/examples/models/{name}.toml"), format!("{root}/benches/train_models/{name}.toml")];
                let file = file.iter().find(|file| Path::new(file).exists()).unwrap();
                let batch = batch.to_string();
                let words = ["steptime-train", file, "--dtype", precision, "--batch", &batch];
                let args = Arguments::try_parse_from(words).unwrap().train;
                let model = Model::read(Path::new(file)).unwrap().on_gpus(1).unwrap().with_batch(args.batch.unwrap().get()).unwrap();
                let (plan, program) = Plan::compile(&model, &args.plan, args.dtype, Target::Cuda).unwrap();
                if std::env::var("PRINT").is_ok() { println!("{program}"); }
                let found = predict_on(all["gpu"].as_str().unwrap(), &args, &model, &plan, &program).unwrap();
                let (measured, before) = (row["measured_ms"].as_f64().or(row["steptime"].as_f64()).unwrap(), row["predicted_ms"].as_f64().unwrap_or(f64::NAN));
                println!("{case:36} measured {measured:.3} before {before:.3} ({:+.0} %) now {:.3} ({:+.1} %) {:.3} to {:.3} memory {:.1} planned {:.1}  {:?}", 100.0 * (before / measured - 1.0), found.ms, 100.0 * (found.ms / measured - 1.0), found.interval_ms[0], found.interval_ms[1],
                    plan.predicted_bytes as f64 / 1e6, plan.planned_bytes as f64 / 1e6, plan.applied.iter().map(|r| r.name()).collect::<Vec<_>>());
            }
        }
    }
}
