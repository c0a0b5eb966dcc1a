//! Work of a job's ranks as recorded.

use serde::Serialize;
use steptime_cost::network::Topology;
use steptime_predict::{CollectiveMeeting, JobGraphs, JobRecording, MeasuredRank, Straggler, job::call};
use steptime_trace::Bytes;

use super::super::shared::ms;
use super::{CollectiveEntry, DeviceParts};

/// The recorded steps of a job, the profiler's cost included.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobRecordingReport {
    /// Number of ranks of the job.
    pub world: usize,
    /// Number of steps that all ranks recorded.
    pub steps: usize,
    /// Time from one step to the next, milliseconds: like all times here, the mean of the middle half of the steps.
    pub period_ms: f64,
    /// One row per rank.
    pub ranks: Vec<MeasuredRankEntry>,
    /// The collectives of a step, in order.
    pub collectives: Vec<RecordedCollective>,
    /// Ranks that others waited for, worst first.
    pub stragglers: Vec<StragglerEntry>,
    /// Warnings about the recording.
    pub warnings: Vec<String>,
}

/// One rank of a recorded job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredRankEntry {
    /// Its number.
    pub rank: u32,
    /// Time of its device, by activity.
    #[serde(flatten)]
    pub parts: DeviceParts,
    /// Lead of its clock over the first rank's, microseconds.
    pub clock_ahead_us: f64,
}

/// A collective as recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordedCollective {
    /// Operation, group and size.
    #[serde(flatten)]
    pub what: CollectiveEntry,
    /// Median time once all ranks had arrived, milliseconds.
    pub moves_ms: f64,
    /// Time by the model of nccl-tests on such GPUs, milliseconds; `None` where unknown.
    pub expected_ms: Option<f64>,
    /// Mean waiting time of each rank, milliseconds.
    pub waits_ms: Vec<f64>,
    /// Number of steps in which each rank arrived last.
    pub last: Vec<usize>,
}

/// A rank that others waited for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StragglerEntry {
    /// Its number.
    pub rank: u32,
    /// Waiting time that it causes per step: the mean over the other ranks, all collectives together, milliseconds.
    pub keeps_waiting_ms: f64,
    /// Share of all collectives at which it arrived last.
    pub last: f64,
    /// `host` where its host takes longer, `device` where its device does.
    pub by: &'static str,
    /// Part that takes longer: `input` (the host gets the batch), `host` (the rest of the host), `copies`, `kernels`.
    pub cause: &'static str,
    /// Time of that part per step, milliseconds; where no part takes longer, all of the host's or of the device's own work.
    pub busy_ms: f64,
    /// The same for the median of the other ranks.
    pub others_busy_ms: f64,
    /// Ops or kernels that take longer than on the other ranks, largest difference first.
    pub reasons: Vec<ReasonEntry>,
}

/// An op or kernel on which a straggler spends more time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReasonEntry {
    /// The op or kernel.
    pub what: String,
    /// Its extra time over the median of the other ranks, milliseconds.
    pub longer_ms: f64,
}

impl JobRecordingReport {
    /// Summarises the ranks of a job; `None` where they do not meet, or where no step was recorded by all.
    #[must_use]
    pub fn from_crew(crew: &JobGraphs<'_>) -> Option<JobRecordingReport> {
        let recorded = crew.share_collectives().then(|| crew.recorded()).flatten()?;
        let numbers = &crew.numbers;
        let rank = |(&rank, of): (&u32, &MeasuredRank)| MeasuredRankEntry {
            rank,
            parts: DeviceParts::new(&of.parts),
            clock_ahead_us: of.ahead.0 as f64 / 1e3,
        };
        let device = crew.graphs.first().and_then(|graph| graph.device.as_deref());
        let topology = device.and_then(|device| Topology::find(device).ok());
        let collective = |met: &CollectiveMeeting| RecordedCollective {
            what: CollectiveEntry::new(numbers, &crew.job.rendezvous[met.at]),
            moves_ms: ms(met.moving),
            expected_ms: topology
                .as_ref()
                .filter(|_| crew.job.rendezvous[met.at].bytes > Bytes(0))
                .map(|topology| ms(topology.price(&call(&crew.job.rendezvous[met.at])).time)),
            waits_ms: met.waited.iter().map(|&time| ms(time)).collect(),
            last: met.last.clone(),
        };
        Some(JobRecordingReport {
            world: crew.world(),
            steps: recorded.steps,
            period_ms: ms(recorded.period),
            ranks: numbers.iter().zip(&recorded.ranks).map(rank).collect(),
            collectives: recorded.collectives.iter().map(collective).collect(),
            // Waiting between ranks of different runs has no meaning.
            stragglers: recorded
                .stragglers
                .iter()
                .filter(|_| recorded.is_one_run())
                .map(straggler_entry)
                .collect(),
            warnings: warnings(crew, &recorded),
        })
    }
}

fn straggler_entry(straggler: &Straggler) -> StragglerEntry {
    StragglerEntry {
        rank: straggler.rank,
        keeps_waiting_ms: ms(straggler.keeps_waiting),
        last: straggler.last,
        by: if straggler.cause.is_on_host() { "host" } else { "device" },
        cause: straggler.cause.name(),
        busy_ms: ms(straggler.busy),
        others_busy_ms: ms(straggler.others_busy),
        reasons: straggler
            .reasons
            .iter()
            .map(|reason| ReasonEntry { what: reason.what.clone(), longer_ms: ms(reason.longer) })
            .collect(),
    }
}

fn warnings(crew: &JobGraphs<'_>, recorded: &JobRecording) -> Vec<String> {
    let (here, all) = (crew.graphs.len(), crew.world());
    let missing = (here < all).then(|| {
        format!("{here} of {all} ranks are given: waiting for the others counts as time of collectives")
    });
    let apart = (!recorded.is_one_run()).then(|| {
        "the ends of collectives vary between ranks from step to step: these ranks are of different runs, or their clocks drift; which rank \
         waited for which is not known"
            .to_owned()
    });
    missing.into_iter().chain(apart).collect()
}
