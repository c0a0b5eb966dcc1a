//! The ranks of a job, predicted together.

mod assembled_job;
mod changed;
mod doubts;
mod expand_to_job;
mod host_pace;
mod longer_work;
mod predicted;
mod recorded;
mod rendezvous;
mod slowest_host;
mod stragglers;

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use steptime_aten::OpSet;
use steptime_cost::network::CollectiveCall;
use steptime_eager::{Model, TableLayout};
use steptime_graph::{Job, Rendezvous, StepGraph};
use steptime_trace::{Input, Options, Recording, Want};

pub(crate) use self::assembled_job::{AssembledJob, PricedRank};
pub use self::expand_to_job::{KeptState, Spread, World};
pub use self::longer_work::{LateCause, Reason};
pub use self::predicted::{JobPrediction, RankPrediction};
pub use self::recorded::{JobRecording, MeasuredRank};
pub use self::rendezvous::CollectiveMeeting;
pub use self::slowest_host::SlowestHost;
pub use self::stragglers::Straggler;
use crate::error::Error;
use crate::input::{described, open_input};
use crate::step::{Choice, Step, is_timed, one_job};

/// All recorded ranks of a job, in order, and their common collectives.
#[derive(Debug)]
pub struct RankSet {
    /// The folder.
    pub path: PathBuf,
    /// The step of each rank.
    pub steps: Vec<Step>,
    /// Matches the activities of ranks that belong to one collective.
    pub job: Job,
    /// Number of ranks in the job that each step represents: ranks with the same work share one step.
    pub alike: Vec<u32>,
    /// GPUs per node, where given; else the usual number for nodes of such GPUs.
    pub node: Option<u32>,
    /// Tables in hosts' memory; `None` where there are none.
    pub in_hosts: Option<HostResidentTables>,
}

/// Tables of a described job in hosts' memory, with caches of their rows on the GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostResidentTables {
    /// Number of tables.
    pub tables: usize,
    /// Rows copied per step to all GPUs together, as computed; the same number is written back.
    pub misses: i64,
}

impl HostResidentTables {
    fn from_model(model: &Model) -> Option<HostResidentTables> {
        let misses = |home: &TableLayout| -> Option<i64> {
            let mut caches = home.caches().peekable();
            caches.peek()?;
            Some(caches.map(|(_, cache)| cache.misses).sum())
        };
        let each: Vec<i64> = model.homes().iter().filter_map(misses).collect();
        (!each.is_empty()).then(|| HostResidentTables { tables: each.len(), misses: each.iter().sum() })
    }
}

/// Number of ranks of a described job above which ranks with the same work share one step.
const FOLDED: u32 = 16;

impl RankSet {
    /// Makes the ranks of a described job.
    ///
    /// # Errors
    /// Fails where its collectives do not match.
    pub fn from_model(path: &Path, model: &Model) -> Result<RankSet, Error> {
        let lists = if model.gpus() > FOLDED {
            model.alike()
        } else {
            (0..model.gpus()).map(|rank| vec![rank]).collect()
        };
        let first: Vec<u32> = lists.iter().filter_map(|list| list.first().copied()).collect();
        let alike = lists.iter().map(|list| u32::try_from(list.len()).unwrap_or(u32::MAX)).collect();
        let node = model.nodes().map(|nodes| model.gpus() / nodes.max(1));
        let in_hosts = HostResidentTables::from_model(model);
        Ok(RankSet { alike, node, in_hosts, ..RankSet::from_input(&described(path, model, &first))? })
    }

    /// Opens a folder of ranks, with the times and the ops of each, and matches their collectives.
    ///
    /// # Errors
    /// Fails where the folder cannot be read, is not one job, or its collectives do not match.
    pub fn open(path: &Path) -> Result<RankSet, Error> {
        RankSet::open_with(path, &Options { want: Want::STEP, ..Options::default() })
    }

    /// Opens a folder of ranks with these options. A prediction for another GPU needs the ops of every rank.
    ///
    /// # Errors
    /// As [`RankSet::open`].
    pub fn open_with(path: &Path, options: &Options<'_>) -> Result<RankSet, Error> {
        RankSet::from_input(&open_input(path, options)?)
    }

    /// Matches the collectives of an opened input.
    ///
    /// # Errors
    /// As [`RankSet::open`].
    pub fn from_input(input: &Input) -> Result<RankSet, Error> {
        let (path, choice) = (input.path.clone(), Choice::default());
        one_job(&path, &input.recordings, &choice)?;
        // A described job has no times.
        let any_timed = input.recordings.iter().any(is_timed);
        let here =
            |recording: &&Recording| is_timed(recording) || (!any_timed && recording.execution.is_some());
        let timed: Vec<&Recording> = input.recordings.iter().filter(here).collect();
        let (ranks, ops) = (timed.len(), OpSet::standard());
        let step = |recording| Step::from_recording(&path, recording, ranks, &choice, &ops);
        let steps: Result<Vec<Step>, Error> = timed.into_par_iter().map(step).collect();
        let mut steps = steps?;
        if steps.is_empty() {
            return Err(Error::NoTiming { path });
        }
        steps.sort_by_key(|step| step.rank);
        let graphs: Vec<(u32, &StepGraph)> = steps.iter().map(|step| (number(step), &step.graph)).collect();
        let job = Job::from_ranks(&graphs).map_err(|source| Error::Job { path: path.clone(), source })?;
        Ok(RankSet { path, alike: vec![1; steps.len()], steps, job, node: None, in_hosts: None })
    }

    /// Joins made (not recorded) steps, each representing `alike` ranks with the same work.
    pub(crate) fn from_steps(path: PathBuf, steps: Vec<Step>, alike: Vec<u32>) -> Result<RankSet, Error> {
        let graphs: Vec<(u32, &StepGraph)> = steps.iter().map(|step| (number(step), &step.graph)).collect();
        let job = Job::from_ranks(&graphs).map_err(|source| Error::Job { path: path.clone(), source })?;
        Ok(RankSet { path, steps, job, alike, node: None, in_hosts: None })
    }

    /// Graphs of the ranks with their matched collectives.
    #[must_use]
    pub fn crew(&self) -> JobGraphs<'_> {
        JobGraphs {
            numbers: self.steps.iter().map(number).collect(),
            graphs: self.steps.iter().map(|step| &step.graph).collect(),
            job: &self.job,
        }
    }

    /// Samples per step of all ranks together: as recorded for the job, else the sum over the ranks; `None` where one is unknown.
    #[must_use]
    pub fn batch(&self) -> Option<u64> {
        let metas = || self.steps.iter().map(|step| step.meta.as_ref());
        let global = metas().next().flatten().and_then(|meta| meta.global_batch);
        global.or_else(|| metas().map(|meta| meta?.batch).sum())
    }

    /// Title: the folder's name.
    #[must_use]
    pub fn title(&self) -> String {
        let folder = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        folder.unwrap_or_else(|| self.path.display().to_string())
    }
}

/// The ranks of a job as graphs.
#[derive(Debug, Clone)]
pub struct JobGraphs<'g> {
    /// Their rank numbers.
    pub numbers: Vec<u32>,
    /// Their steps.
    pub graphs: Vec<&'g StepGraph>,
    /// Matches the activities of ranks that belong to one collective.
    pub job: &'g Job,
}

impl JobGraphs<'_> {
    /// Whether any of them have a common collective.
    #[must_use]
    pub fn share_collectives(&self) -> bool {
        self.job.rendezvous.iter().any(|met| met.members.len() > 1)
    }

    /// Number of ranks of the job: the size of its largest process group, at least the number of ranks given.
    #[must_use]
    pub fn world(&self) -> usize {
        let sizes = self.job.rendezvous.iter().filter_map(|met| met.group.size);
        sizes.max().map_or(0, |size| size as usize).max(self.graphs.len())
    }
}

/// A rendezvous as a collective to price, among all ranks of its group.
pub fn call(met: &Rendezvous) -> CollectiveCall {
    let here = u32::try_from(met.members.len()).unwrap_or(u32::MAX);
    CollectiveCall { kind: met.kind, ranks: met.group.size.unwrap_or(here).max(here), bytes: met.bytes }
}

/// Number of a rank; zero where unknown, as for a single trace.
fn number(step: &Step) -> u32 {
    step.rank.unwrap_or(0)
}
