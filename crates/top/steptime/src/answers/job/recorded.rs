//! What the ranks of a job did as recorded.

use serde::Serialize;
use steptime_cost::network::Topology;
use steptime_trace::Bytes;

use super::super::shared::ms;
use super::{CollectiveSaid, DeviceParts};
use crate::job::{Crew, JobRecorded, Straggler, call};

/// The recorded steps of a job, the profiler's cost included.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordedJob {
    /// How many ranks the job has.
    pub world: usize,
    /// How many steps all ranks recorded.
    pub steps: usize,
    /// From one step to the next, milliseconds: the mean of the middle half of the steps, as all times here.
    pub period_ms: f64,
    /// What each rank did.
    pub ranks: Vec<RecordedRank>,
    /// The collectives of a step, in order.
    pub collectives: Vec<RecordedCollective>,
    /// Ranks that others waited for, the worst first.
    pub stragglers: Vec<StragglerSaid>,
    /// What speaks against it.
    pub warnings: Vec<String>,
}

/// One rank of a recorded job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordedRank {
    /// Its number.
    pub rank: u32,
    /// What its device did.
    #[serde(flatten)]
    pub parts: DeviceParts,
    /// By how much its clock is ahead of the first rank's, microseconds.
    pub clock_ahead_us: f64,
}

/// A collective as recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordedCollective {
    /// What, among whom.
    #[serde(flatten)]
    pub what: CollectiveSaid,
    /// How long it took once all were there: the median, milliseconds.
    pub moves_ms: f64,
    /// How long nccl-tests take for it on such GPUs, milliseconds; `None` where that is not known.
    pub expected_ms: Option<f64>,
    /// How long each rank waited for others: the mean, milliseconds.
    pub waits_ms: Vec<f64>,
    /// In how many steps each rank came last.
    pub last: Vec<usize>,
}

/// A rank that others waited for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StragglerSaid {
    /// Its number.
    pub rank: u32,
    /// How long the others wait for it in a step: the mean over them, all collectives together, milliseconds.
    pub keeps_waiting_ms: f64,
    /// At which share of all collectives it came last.
    pub last: f64,
    /// `host` where its host takes longer, `device` where its device does.
    pub by: &'static str,
    /// What there takes longer: `input` (the host gets the batch), `host` (anything else of it), `copies`, `kernels`.
    pub cause: &'static str,
    /// How long that takes a step; where nothing takes longer, all of the host's or of the device's own work. Milliseconds.
    pub busy_ms: f64,
    /// The same of the middle one of the others.
    pub others_busy_ms: f64,
    /// What takes it longer than the others, the most first.
    pub reasons: Vec<ReasonSaid>,
}

/// What a straggler spends more time on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReasonSaid {
    /// The op or kernel.
    pub what: String,
    /// How much longer it takes than on the middle one of the others, milliseconds.
    pub longer_ms: f64,
}

impl RecordedJob {
    /// Of the ranks of a job; `None` where they do not meet, or no step was recorded by all.
    #[must_use]
    pub fn of(crew: &Crew<'_>) -> Option<RecordedJob> {
        let recorded = crew.meet().then(|| crew.recorded()).flatten()?;
        let numbers = &crew.numbers;
        let rank = |(&rank, of): (&u32, &crate::job::RankRecorded)| RecordedRank {
            rank,
            parts: DeviceParts::new(&of.parts),
            clock_ahead_us: of.ahead.0 as f64 / 1e3,
        };
        let device = crew.graphs.first().and_then(|graph| graph.device.as_deref());
        let topology = device.and_then(|device| Topology::of(device).ok());
        let collective = |met: &crate::job::CollectiveMet| RecordedCollective {
            what: CollectiveSaid::new(numbers, &crew.job.rendezvous[met.at]),
            moves_ms: ms(met.moving),
            expected_ms: topology
                .as_ref()
                .filter(|_| crew.job.rendezvous[met.at].bytes > Bytes(0))
                .map(|topology| ms(topology.price(&call(&crew.job.rendezvous[met.at])).time)),
            waits_ms: met.waited.iter().map(|&time| ms(time)).collect(),
            last: met.last.clone(),
        };
        Some(RecordedJob {
            world: crew.world(),
            steps: recorded.steps,
            period_ms: ms(recorded.period),
            ranks: numbers.iter().zip(&recorded.ranks).map(rank).collect(),
            collectives: recorded.collectives.iter().map(collective).collect(),
            // Across runs waiting means nothing.
            stragglers: recorded.stragglers.iter().filter(|_| recorded.is_one_run()).map(said).collect(),
            warnings: warnings(crew, &recorded),
        })
    }
}

fn said(straggler: &Straggler) -> StragglerSaid {
    StragglerSaid {
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
            .map(|reason| ReasonSaid { what: reason.what.clone(), longer_ms: ms(reason.longer) })
            .collect(),
    }
}

fn warnings(crew: &Crew<'_>, recorded: &JobRecorded) -> Vec<String> {
    let (here, all) = (crew.graphs.len(), crew.world());
    let missing = (here < all).then(|| {
        format!("{here} of {all} ranks are here: waiting for the others counts as time of their collectives")
    });
    let apart = (!recorded.is_one_run()).then(|| {
        "the ends of collectives lie differently from step to step: these ranks are of different runs, or their clocks run \
         apart; who waited for whom is not known"
            .to_owned()
    });
    missing.into_iter().chain(apart).collect()
}
