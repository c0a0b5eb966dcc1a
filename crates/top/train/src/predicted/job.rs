//! Prediction of the step of several GPUs.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use steptime_cost::device::DeviceProfile;
use steptime_eager::Model;
use steptime_predict::pricing::{self, shipped_for};
use steptime_predict::{JobPrediction, Query, RankSet, Step, described_input};
use steptime_rewrite::Rule;

use super::{NO_PROFILE, RankChanges, StepTime, longer_by_sequence};
use crate::arguments::Train;

/// Predicted times of a rank within the step of its job, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankTime {
    /// Time with work of its own.
    pub work_ms: f64,
    /// Time of exchanges with other ranks without own work beside them.
    pub exchange_ms: f64,
    /// Time in which exchanges wait for other ranks without own work beside them.
    pub waiting_ms: f64,
}

impl fmt::Display for RankTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RankTime { work_ms, exchange_ms, waiting_ms } = self;
        write!(f, "{work_ms:.3} work, {exchange_ms:.3} exchanges alone, {waiting_ms:.3} waiting alone")
    }
}

/// Predicts the step of a job on GPUs of a name: all ranks together, each with its own changes.
pub(super) fn predict_on(
    gpu: &str,
    args: &Train,
    model: &Model,
    changes: &[Arc<RankChanges>],
) -> Result<StepTime, String> {
    let device = shipped_for(gpu).ok_or(NO_PROFILE)?;
    let profile = Arc::new(pricing::device(device).map_err(|error| error.to_string())?);
    let path = args.model.as_deref().unwrap_or(Path::new(""));
    let ranks = RankSet::from_input(&described_input(path, model)).map_err(|error| error.to_string())?;
    let changed = |rules: Vec<Vec<&dyn Rule>>| -> Result<JobPrediction, String> {
        let asked = |step| Ok(query(step, device, &profile));
        ranks.predict_changed(asked, &rules).map_err(|error| error.to_string())
    };
    let sequence = changed(changes.iter().map(|rank| rank.sequence()).collect())?;
    let found = changed(changes.iter().map(|rank| rank.parallel()).collect())?;
    let [low, high] = found.interval.map(|time| time.as_millis());
    let times = found.ranks.iter().map(|rank| RankTime {
        work_ms: rank.parts.computes.as_millis(),
        exchange_ms: rank.parts.moves.as_millis(),
        waiting_ms: rank.parts.waits.as_millis(),
    });
    Ok(StepTime {
        ms: found.step.as_millis(),
        interval_ms: [low, high.max(high * longer_by_sequence(sequence.step, found.step))],
        row_copies: None,
        doubts: found.doubts.iter().map(|doubt| doubt.text.clone()).collect(),
        ranks: times.collect(),
    })
}

fn query<'s>(step: &'s Step, device: &str, profile: &Arc<DeviceProfile>) -> Query<'s> {
    step.predict().on_read(device, Arc::clone(profile)).on_a_typical_host()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use clap::Parser;
    use steptime_eager::TableLayout;
    use steptime_runtime::{Rank, Target};

    use super::*;
    use crate::arguments::Arguments;
    use crate::placement;
    use crate::plan::Plan;

    const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
    const GPU: &str = "NVIDIA H200";

    /// A run of a model's job.
    struct Job {
        args: Train,
        model: Model,
    }

    impl Job {
        fn new(name: &str, gpus: u32, batch: u64, precision: &str) -> Job {
            let folders = ["examples/models", "benches/train_models"];
            let files = folders.map(|folder| Path::new(ROOT).join(folder).join(format!("{name}.toml")));
            let file = files.into_iter().find(|file| file.exists()).expect("a model of this name");
            let (gpus, batch) = (gpus.to_string(), batch.to_string());
            let words = ["steptime-train", file.to_str().expect("a path"), "--dtype", precision];
            let words = words.into_iter().chain(["--batch", &batch, "--gpus", &gpus]);
            let args = Arguments::try_parse_from(words).expect("arguments").train;
            let model = placement::place(Model::read(&file).expect("a model"), &args).expect("a placement");
            Job { args, model }
        }

        /// The same job with each table whole on the rank that `rank` returns.
        fn placed(mut self, rank: impl Fn(usize) -> u32) -> Job {
            let tables = self.model.tables();
            let whole = tables.iter().enumerate();
            let homes = whole.map(|(at, table)| TableLayout::whole(rank(at), table.rows, table.columns));
            self.model = self.model.on(self.args.gpus.get(), homes.collect()).expect("a placement");
            self
        }

        /// The predicted step, and planned and predicted bytes of each rank, with or without direct exchanges.
        fn predicted(&self, direct: bool) -> (StepTime, Vec<[u64; 2]>) {
            let (args, model) = (&self.args, &self.model);
            let compiled = |rank: Rank| {
                let target = (Target::Cuda, direct);
                let compiled = Plan::compile(model, &rank, &args.plan, args.dtype, target);
                let (plan, program) = compiled.map_err(|error| error.to_string()).expect("a plan");
                let bytes = [plan.planned_bytes, plan.predicted_bytes];
                (Arc::new(RankChanges::new(args, &plan, &program)), bytes)
            };
            let ranks: Vec<_> = thread::scope(|scope| {
                let group = Rank::group(args.gpus.get() as usize).into_iter();
                let threads: Vec<_> = group.map(|rank| scope.spawn(move || compiled(rank))).collect();
                threads.into_iter().map(|thread| thread.join().expect("a rank")).collect()
            });
            let (changes, bytes): (Vec<_>, Vec<_>) = ranks.into_iter().unzip();
            (predict_on(GPU, args, model, &changes).expect("a prediction"), bytes)
        }
    }

    /// `cargo test -p steptime-train-cli two_gpus -- --nocapture` prints the table.
    #[test]
    fn steps_on_two_gpus() {
        for (name, batch, precision) in [
            ("dlrm_nvidia", 65_536, "tf32"),
            ("dlrm_nvidia", 65_536, "bf16"),
            ("dlrm_nvidia", 2_048, "tf32"),
            ("dlrm_default", 2_048, "f32"),
            ("dcn_v2", 8_192, "tf32"),
            ("deepfm", 8_192, "tf32"),
            ("two_towers", 4_096, "tf32"),
            ("wide_and_deep", 4_096, "f32"),
        ] {
            let (one, _) = Job::new(name, 1, batch, precision).predicted(false);
            let job = Job::new(name, 2, 2 * batch, precision);
            let (found, bytes) = job.predicted(false);
            let (direct, _) = job.predicted(true);
            let (worse, _) = job.placed(|_| 0).predicted(false);
            let all = [
                ("one GPU", &one),
                ("two", &found),
                ("direct", &direct),
                ("all tables on one of two", &worse),
            ];
            for (title, of) in all {
                let [low, high] = of.interval_ms;
                println!("{name} {batch} {precision}, {title}: {:.3} ms, {low:.3} to {high:.3}", of.ms);
                of.ranks.iter().for_each(|rank| println!("  {rank}"));
                assert!(low < of.ms && of.ms < high, "{of:?}");
            }
            for [planned, predicted] in bytes {
                assert!((predicted as f64 / planned as f64 - 1.0).abs() < 0.02, "{predicted} of {planned} B");
            }
            // The rank with all tables looks up those of both.
            assert!(found.ms < worse.ms, "{name}: {found:?} {worse:?}");
            assert!(worse.ranks[0].work_ms > worse.ranks[1].work_ms, "{worse:?}");
            for rank in found.ranks.iter().chain(&worse.ranks) {
                assert!(rank.work_ms + rank.exchange_ms + rank.waiting_ms <= found.ms.max(worse.ms) + 1e-6);
            }
        }
    }

    #[test]
    fn a_job_of_one_rank_has_the_step_of_one_gpu() {
        for (name, precision) in [("dlrm_nvidia", "bf16"), ("dcn_v2", "tf32")] {
            let job = Job::new(name, 1, 8_192, precision);
            let (args, model) = (&job.args, &job.model);
            let rank = Rank::group(1).remove(0);
            let (plan, program) =
                Plan::compile(model, &rank, &args.plan, args.dtype, (Target::Cuda, false)).expect("a plan");
            let changes = RankChanges::new(args, &plan, &program);
            let alone = super::super::predict_on(GPU, args, model, &plan, &changes).expect("a prediction");
            let found = predict_on(GPU, args, model, &[Arc::new(changes)]).expect("a prediction");
            assert!((found.ms / alone.ms - 1.0).abs() < 1e-3, "{name}: {found:?} {alone:?}");
        }
    }
}
