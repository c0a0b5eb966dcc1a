//! A predicted step of a job.

use serde::Serialize;
use steptime_predict::{HostSlowdown, INTERVAL_LEVEL, JobPrediction, RankPrediction, RankSet, format};
use steptime_trace::Nanos;

use super::super::doubts::{DoubtEntry, host_doubt, worst_first};
use super::super::predict::process;
use super::super::shared::{PeakMemory, SCHEMA, as_object, ms, samples_per_s};
use super::super::stretch_names;
use super::{CollectiveEntry, DeviceParts};

/// A predicted step of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobPredictionReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `predict`.
    pub command: &'static str,
    /// The input, as given.
    pub input: String,
    /// Title of the job.
    pub name: String,
    /// The GPU predicted for.
    pub device: Option<String>,
    /// Number of ranks of the job.
    pub world: usize,
    /// `simulate`.
    pub method: &'static str,
    /// Source of the hosts' times: `own`, `default`, or a file.
    pub host: String,
    /// Assumed slowness of the hosts, where one factor gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_slower_than: Option<HostSlowdown>,
    /// The state of the processes: `profiled` or `fresh`.
    pub process: &'static str,
    /// Source of the kernels' times: `measured`, or the device as given.
    pub kernels: String,
    /// Source of the collectives' times: `measured`, the device as given, or the GPU recorded on, whose collectives are priced by a model
    /// of nccl-tests on such GPUs.
    pub collective_times: String,
    /// Time from one step to the next, milliseconds.
    pub step_ms: f64,
    /// Interval of the step time at `interval_level`, milliseconds.
    pub interval_ms: [f64; 2],
    /// Probability of the interval.
    pub interval_level: f64,
    /// Assumptions and doubts, worst first.
    pub doubts: Vec<DoubtEntry>,
    /// Changes made to a single rank's step to make it a step of a job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// Rank with the slowest host, where hosts' times are not each rank's own.
    pub slowest_host: Option<SlowestHostEntry>,
    /// Relative error of the replay of the recorded steps, the profiler's cost left in.
    pub replay_error: Option<f64>,
    /// Samples per step of all ranks together, where known.
    pub batch: Option<u64>,
    /// Samples per second.
    pub samples_per_s: Option<f64>,
    /// Each rank that was recorded.
    pub ranks: Vec<PredictedRank>,
    /// The collectives of a step, in order.
    pub collectives: Vec<PredictedCollective>,
    /// The critical path over all ranks, in order.
    pub critical_path: Vec<JobPiece>,
}

/// The slowest host of a job.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SlowestHostEntry {
    /// The rank.
    pub rank: u32,
    /// Its host's time relative to that of a median host.
    pub times: f64,
}

/// One rank of a predicted job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PredictedRank {
    /// Its number.
    pub rank: u32,
    /// Time of its device, by activity.
    #[serde(flatten)]
    pub parts: DeviceParts,
    /// Idle time of its device, milliseconds by cause.
    #[serde(serialize_with = "as_object")]
    pub idle_ms: Vec<(&'static str, f64)>,
    /// Its step if it never waited for another rank, milliseconds.
    pub alone_ms: f64,
    /// Its part of the critical path, milliseconds.
    pub critical_ms: f64,
    /// Number of collectives at which it arrives last.
    pub last: usize,
    /// Number of collectives in which it meets other ranks.
    pub meets: usize,
    /// Its own host gaps relative to those of the shipped profile.
    pub host_slowness: Option<f64>,
    /// Peak device memory of its tensors, megabytes: total, and by kind; absent where unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_mb: Option<PeakMemory>,
}

/// A collective of a predicted step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PredictedCollective {
    /// Operation, group and size.
    #[serde(flatten)]
    pub what: CollectiveEntry,
    /// Time once all ranks have arrived, milliseconds.
    pub moves_ms: f64,
    /// The rank that arrives last.
    pub last: u32,
    /// Waiting time of each rank, milliseconds.
    pub waits_ms: Vec<f64>,
}

/// A stretch of a job's critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobPiece {
    /// The rank; for data on its way between ranks, one of them.
    pub rank: u32,
    /// `host`, `device`, `launch`, `return`, or `exchange` for data on its way between ranks.
    pub place: &'static str,
    /// The op, kernel, call or collective.
    pub what: String,
    /// The part of the step.
    pub phase: &'static str,
    /// Length, milliseconds.
    pub ms: f64,
}

impl JobPredictionReport {
    /// Makes the answer. `ranks` are the predicted ranks.
    #[must_use]
    pub fn new(ranks: &RankSet, predicted: &JobPrediction) -> JobPredictionReport {
        let step_ms = ms(predicted.step);
        let batch = ranks.batch();
        JobPredictionReport {
            schema: SCHEMA,
            command: "predict",
            input: ranks.path.display().to_string(),
            name: ranks.title(),
            device: match &predicted.asked.device {
                Some(device) => Some(device.name.clone()),
                None => ranks.steps.first().and_then(|step| step.graph.device.clone()),
            },
            world: ranks.crew().world(),
            method: "simulate",
            host: predicted.asked.host.clone(),
            host_slower_than: predicted.asked.host_slower_than.clone(),
            process: process(predicted.asked.process),
            kernels: predicted.asked.kernels.clone(),
            collective_times: predicted.collectives.clone(),
            step_ms,
            interval_ms: predicted.interval.map(ms),
            interval_level: INTERVAL_LEVEL,
            doubts: doubts(predicted),
            changes: Vec::new(),
            slowest_host: predicted.slowest.map(|slowest| SlowestHostEntry {
                rank: ranks.crew().numbers[slowest.rank],
                times: slowest.times,
            }),
            replay_error: predicted.replay.as_ref().map(steptime_sim::Replay::error),
            batch,
            samples_per_s: samples_per_s(batch, predicted.step),
            ranks: ranks_of(ranks, predicted),
            collectives: collectives(ranks, predicted),
            critical_path: pieces(ranks, predicted),
        }
    }

    /// Adds the changes that led to it.
    #[must_use]
    pub fn with_changes(self, changes: &[String]) -> JobPredictionReport {
        JobPredictionReport { changes: changes.to_vec(), ..self }
    }
}

/// Assumptions and doubts, worst first.
fn doubts(predicted: &JobPrediction) -> Vec<DoubtEntry> {
    let found = predicted.doubts.iter().map(DoubtEntry::new);
    worst_first(found.chain(host_doubt(&predicted.asked)).collect())
}

fn ranks_of(ranks: &RankSet, predicted: &JobPrediction) -> Vec<PredictedRank> {
    let row = |(rank, of): (u32, &RankPrediction)| PredictedRank {
        rank,
        parts: DeviceParts::new(&of.parts),
        idle_ms: of.idle.iter().map(|(cause, time)| (cause.key(), ms(time))).collect(),
        alone_ms: ms(of.alone),
        critical_ms: ms(of.critical),
        last: of.last,
        meets: of.meets,
        host_slowness: of.slowness,
        peak_mb: of.peak.as_ref().map(PeakMemory::new),
    };
    ranks.crew().numbers.into_iter().zip(&predicted.ranks).map(row).collect()
}

fn collectives(ranks: &RankSet, predicted: &JobPrediction) -> Vec<PredictedCollective> {
    let numbers = ranks.crew().numbers;
    let row = |(at, met): (steptime_graph::RendezvousId, &steptime_graph::Rendezvous)| {
        let meeting = &predicted.world.rendezvous[at];
        PredictedCollective {
            what: CollectiveEntry::new(&numbers, met),
            moves_ms: ms(predicted.moving[at]),
            last: numbers[met.members[meeting.last()].rank],
            waits_ms: (0..met.members.len()).map(|place| ms(meeting.waited(place))).collect(),
        }
    };
    ranks.job.rendezvous.iter_enumerated().map(row).collect()
}

/// Merges neighbouring stretches with the same text, in order.
fn pieces(ranks: &RankSet, predicted: &JobPrediction) -> Vec<JobPiece> {
    let numbers = ranks.crew().numbers;
    let mut pieces: Vec<(JobPiece, Nanos)> = Vec::new();
    for passage in &predicted.path {
        let graph = &ranks.steps[passage.rank].graph;
        let stretch = passage.stretch;
        let (place, what) = match passage.meets {
            Some(at) => ("exchange", ranks.job.rendezvous[at].kind.name()),
            None => (stretch_names::kind(stretch.place), stretch_names::what(graph, stretch.place)),
        };
        let piece = JobPiece {
            rank: numbers[passage.rank],
            place,
            what: format::op(what).to_owned(),
            phase: stretch_names::phase(graph, stretch.place).name(),
            ms: 0.0,
        };
        let time = stretch.to - stretch.from;
        match pieces.last_mut() {
            Some((last, sum)) if *last == piece => *sum += time,
            _ => pieces.push((piece, time)),
        }
    }
    pieces.into_iter().map(|(piece, time)| JobPiece { ms: ms(time), ..piece }).collect()
}
