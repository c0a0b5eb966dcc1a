//! Doubts about the prediction of a job.

use steptime_cost::PricedGraph;
use steptime_graph::names::HostMemory;
use steptime_graph::{ActivityId, CollectiveKind, Rendezvous, StepGraph};
use steptime_trace::{ActivityKind, Bytes, Nanos};

use super::{HostResidentTables, RankSet};
use crate::doubt::Doubt;
use crate::query_echo::QueryEcho;
use crate::step::Step;
use crate::uncertainty::{Interval, uncertainty};

impl RankSet {
    /// The doubt, where the trace of a rank ends in the middle, or was repaired otherwise.
    pub(super) fn cut(&self) -> Option<Doubt> {
        let of = |step: &Step| Some((super::number(step), step.repairs.clone()?));
        let (rank, repairs) = self.steps.iter().find_map(of)?;
        let text =
            format!("the trace of rank {rank} is damaged, and the missing part is not counted: {repairs}");
        let Interval { below, above } = uncertainty().doubts.damaged_rank;
        Some(Doubt { kind: "cut", text, below, above, no_estimate: false })
    }

    /// The doubt, where the ranks cannot be from one run.
    pub(super) fn several_runs_doubt(&self) -> Option<Doubt> {
        let recorded = self.crew().recorded().filter(|recorded| !recorded.is_one_run())?;
        let scatter = recorded.ranks.iter().map(|rank| rank.scatter).max().unwrap_or_default();
        let text = format!(
            "the ends of collectives vary by {:.3} ms between ranks from step to step: these ranks are of different runs, or their clocks \
             drift; which rank waited for which is not known",
            scatter.as_millis()
        );
        let width = uncertainty().doubts.several_runs.width;
        Some(Doubt { kind: "ranks", text, below: width, above: width, no_estimate: false })
    }

    /// The doubt, where collectives of unknown size are predicted for another GPU.
    pub(super) fn sizes_unknown(&self, asked: &QueryEcho) -> Option<Doubt> {
        let count = self.job.rendezvous.iter().filter(|met| has_no_size(met)).count();
        let width = uncertainty().doubts.unknown_sizes.width;
        (asked.device.is_some() && count > 0).then(|| Doubt {
            kind: "unpriced",
            text: format!(
                "{count} of {} collectives have no recorded size: their recorded time is kept; newer PyTorch records the size",
                self.job.rendezvous.len()
            ),
            below: width,
            above: width,
            no_estimate: false,
        })
    }

    /// The doubt, where only one step was recorded.
    pub(super) fn single_step_doubt(&self) -> Option<Doubt> {
        let least = self.steps.iter().map(|step| step.graph.samples.steps().len()).min()?;
        let width = uncertainty().doubts.single_step.width;
        (least == 1).then(|| Doubt {
            kind: "replay",
            text: "one step was recorded: the ranks' start times are not known, and nothing checks the prediction; record several steps"
                .into(),
            below: width,
            above: width,
            no_estimate: false,
        })
    }

    /// The doubt from caches of tables in hosts' memory, whose misses are computed: by the share of the step that the missing rows take to copy.
    pub(super) fn misses(&self, priced: &[PricedGraph<'_>], step: Nanos) -> Option<Doubt> {
        let HostResidentTables { tables, misses } = self.in_hosts?;
        let width = &uncertainty().doubts.host_tables;
        let of_rank = |rank: &PricedGraph<'_>| -> Nanos {
            let copies = rank.durations.iter_enumerated().filter(|(at, _)| is_pinned(rank.graph, *at));
            copies.map(|(_, time)| *time).sum()
        };
        let moved = priced.iter().map(of_rank).max().unwrap_or_default();
        let share = (moved.0 as f64 / (step.0 as f64).max(1.0)).clamp(0.0, 1.0);
        let are = if tables == 1 { "table is" } else { "tables are" };
        Some(Doubt {
            kind: "cache",
            text: format!(
                "{tables} {are} in host memory: cache misses, {misses} rows per step, follow from the distribution of indices (--indices; \
                 else uniform), and their copies, up to {:.3} ms on a GPU, are assumed to run at the link's rate",
                moved.as_millis()
            ),
            below: -(1.0 - width.below_share * share).ln(),
            above: (width.above_share * share).ln_1p(),
            no_estimate: false,
        })
    }

    /// The doubt, where ranks of the job are missing.
    pub(super) fn missing(&self) -> Option<Doubt> {
        let (here, all) = (self.alike.iter().sum::<u32>() as usize, self.crew().world());
        let Interval { below, above } = uncertainty().doubts.missing_ranks;
        (here < all).then(|| Doubt {
            kind: "ranks",
            text: format!(
                "{here} of {all} ranks are given: waiting for the others counts as time of collectives; give the folder of all ranks"
            ),
            below,
            above,
            no_estimate: false,
        })
    }
}

/// Whether an activity is a copy from or to pinned memory: in a described step these are copies of caches.
fn is_pinned(graph: &StepGraph, at: ActivityId) -> bool {
    graph.activities[at].kind == ActivityKind::Memcpy && graph.copy_name(at).host == HostMemory::Pinned
}

/// Whether the number of bytes of a collective is unknown.
pub(super) fn has_no_size(met: &Rendezvous) -> bool {
    met.bytes == Bytes(0) && met.kind != CollectiveKind::Barrier
}

/// Doubt from the replay of all ranks.
pub(super) fn replay_doubt(replay: &steptime_sim::Replay) -> Option<Doubt> {
    let error = replay.error();
    let width = (1.0 + error).max(1e-3).ln();
    (error.abs() > uncertainty().doubts.replay.threshold).then(|| Doubt {
        kind: "replay",
        text: format!(
            "replayed with the profiler's cost, the profiled steps of all ranks take {:.3} ms, but {:.3} ms were recorded ({:+.0} %): the \
             cause of a wait in them is not known",
            replay.simulated.as_millis(),
            replay.measured.as_millis(),
            100.0 * error,
        ),
        below: width.max(0.0),
        above: (-width).max(0.0),
        no_estimate: false,
    })
}
