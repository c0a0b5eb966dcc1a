//! The ranks of a job, as predicted together and as recorded.

mod planned;
mod predicted;
mod recorded;
mod validated;

use serde::Serialize;
use steptime_graph::Rendezvous;
use steptime_sim::world::Parts;

pub use self::planned::{PlannerRow, PlannerValidationReport, RankingAccuracy};
pub use self::predicted::{
    JobPiece, JobPredictionReport, PredictedCollective, PredictedRank, SlowestHostEntry,
};
pub use self::recorded::{
    JobRecordingReport, MeasuredRankEntry, ReasonEntry, RecordedCollective, StragglerEntry,
};
pub use self::validated::{JobValidationReport, JobValidationRow};
use super::shared::ms;

/// Time of a rank's device in a step by activity, milliseconds; the first four add up to the step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceParts {
    /// Runs its own work.
    pub computes_ms: f64,
    /// Moves data to other ranks while nothing else runs: exposed communication.
    pub moves_ms: f64,
    /// Waits for other ranks inside collectives while nothing else runs.
    pub waits_ms: f64,
    /// Runs nothing.
    pub idles_ms: f64,
    /// Moves data while its own work runs: hidden communication.
    pub hidden_ms: f64,
    /// Waits for other ranks while its own work runs.
    pub waits_beside_ms: f64,
}

impl DeviceParts {
    fn new(parts: &Parts) -> DeviceParts {
        DeviceParts {
            computes_ms: ms(parts.computes),
            moves_ms: ms(parts.moves),
            waits_ms: ms(parts.waits),
            idles_ms: ms(parts.idles),
            hidden_ms: ms(parts.hidden),
            waits_beside_ms: ms(parts.waits_beside),
        }
    }
}

/// A collective of the step: operation, group and size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CollectiveEntry {
    /// `all_reduce`, `all_to_all`, ...
    pub op: &'static str,
    /// The process group's name.
    pub group: String,
    /// The recorded ranks of the group.
    pub ranks: Vec<u32>,
    /// Number of ranks in the group, where known; more than recorded where one rank represents others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// Largest number of bytes that one of them sends or receives.
    pub bytes: u64,
}

impl CollectiveEntry {
    fn new(numbers: &[u32], met: &Rendezvous) -> CollectiveEntry {
        CollectiveEntry {
            op: met.kind.name(),
            group: met.group.name.clone(),
            ranks: met.members.iter().map(|member| numbers[member.rank]).collect(),
            size: met.group.size,
            bytes: met.bytes.0,
        }
    }
}
