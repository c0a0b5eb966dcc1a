//! The ranks of a job, together.

mod assembled;
mod doubts;
mod meetings;
mod pace;
mod predicted;
mod recorded;
mod slowest;
mod spread;
mod stragglers;
mod work;

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use steptime_aten::OpSet;
use steptime_cost::network::CollectiveCall;
use steptime_eager::{Home, Model};
use steptime_graph::{Job, Rendezvous, StepGraph};
use steptime_trace::{Input, Options, Recording, Want};

pub(crate) use self::assembled::{Assembled, PricedRank};
pub use self::meetings::CollectiveMet;
pub use self::predicted::{JobPrediction, RankPrediction};
pub use self::recorded::{JobRecorded, RankRecorded};
pub use self::slowest::SlowestHost;
pub use self::spread::{Keeps, Spread, World};
pub use self::stragglers::Straggler;
pub use self::work::{LateCause, Reason};
use crate::error::Error;
use crate::input::{described, open_input};
use crate::step::{Choice, Step, is_timed, one_job};

/// All ranks of a job that were recorded, in order, and where they meet.
#[derive(Debug)]
pub struct Ranks {
    /// The folder.
    pub path: PathBuf,
    /// The step of each.
    pub steps: Vec<Step>,
    /// Which activities of theirs are one collective.
    pub job: Job,
    /// Of each step how many ranks of the job do the same: one of those that were recorded.
    pub alike: Vec<u32>,
    /// How many GPUs a node has, where that was said; else as many as nodes of such GPUs usually have.
    pub node: Option<u32>,
    /// What of its tables lies in hosts' memory; none where nothing does.
    pub in_hosts: Option<InHosts>,
}

/// Tables of a described job in the memory of hosts, behind caches of their rows on the GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InHosts {
    /// How many tables.
    pub tables: usize,
    /// How many rows a step brings to all GPUs together, as computed; as many go back.
    pub misses: i64,
}

impl InHosts {
    fn of(model: &Model) -> Option<InHosts> {
        let misses = |home: &Home| -> Option<i64> {
            let mut caches = home.caches().peekable();
            caches.peek()?;
            Some(caches.map(|(_, cache)| cache.misses).sum())
        };
        let each: Vec<i64> = model.homes().iter().filter_map(misses).collect();
        (!each.is_empty()).then(|| InHosts { tables: each.len(), misses: each.iter().sum() })
    }
}

/// Of a described job with more ranks than this, one of those that do the same stands for all.
const FOLDED: u32 = 16;

impl Ranks {
    /// The ranks of a described job.
    ///
    /// # Errors
    /// Where its collectives do not match.
    pub fn of_model(path: &Path, model: &Model) -> Result<Ranks, Error> {
        let lists = if model.gpus() > FOLDED {
            model.alike()
        } else {
            (0..model.gpus()).map(|rank| vec![rank]).collect()
        };
        let first: Vec<u32> = lists.iter().filter_map(|list| list.first().copied()).collect();
        let alike = lists.iter().map(|list| u32::try_from(list.len()).unwrap_or(u32::MAX)).collect();
        let node = model.nodes().map(|nodes| model.gpus() / nodes.max(1));
        let in_hosts = InHosts::of(model);
        Ok(Ranks { alike, node, in_hosts, ..Ranks::of_input(described(path, model, &first, true))? })
    }

    /// Opens a folder of ranks and matches their collectives.
    ///
    /// # Errors
    /// Where it cannot be read, is not one job, or its collectives do not match.
    pub fn open(path: &Path) -> Result<Ranks, Error> {
        Ranks::open_with(path, &Options { want: Want::TIMING, ..Options::default() })
    }

    /// The same, read so.
    ///
    /// # Errors
    /// As [`Ranks::open`].
    pub fn open_with(path: &Path, options: &Options<'_>) -> Result<Ranks, Error> {
        Ranks::of_input(open_input(path, options)?)
    }

    /// Of an input that is open already.
    ///
    /// # Errors
    /// As [`Ranks::open`].
    pub fn of_input(input: Input) -> Result<Ranks, Error> {
        let (path, choice) = (input.path, Choice::default());
        one_job(&path, &input.recordings, &choice)?;
        // Of a job that was described nothing is timed.
        let any_timed = input.recordings.iter().any(is_timed);
        let here =
            |recording: &Recording| is_timed(recording) || (!any_timed && recording.execution.is_some());
        let timed: Vec<Recording> = input.recordings.into_iter().filter(here).collect();
        let (ranks, ops) = (timed.len(), OpSet::standard());
        // Each is read once more by its own number where more of it is needed.
        let step = |recording: Recording| {
            let own = Choice { rank: recording.rank, ..choice };
            Step::of_recording(&path, recording, ranks, &own, &ops)
        };
        let steps: Result<Vec<Step>, Error> = timed.into_par_iter().map(step).collect();
        let mut steps = steps?;
        if steps.is_empty() {
            return Err(Error::NoTiming { path });
        }
        steps.sort_by_key(|step| step.rank);
        let graphs: Vec<(u32, &StepGraph)> = steps.iter().map(|step| (number(step), &step.graph)).collect();
        let job = Job::of(&graphs).map_err(|source| Error::Job { path: path.clone(), source })?;
        Ok(Ranks { path, alike: vec![1; steps.len()], steps, job, node: None, in_hosts: None })
    }

    /// Steps that were made, and not recorded, each of so many ranks that do the same.
    pub(crate) fn of_steps(path: PathBuf, steps: Vec<Step>, alike: Vec<u32>) -> Result<Ranks, Error> {
        let graphs: Vec<(u32, &StepGraph)> = steps.iter().map(|step| (number(step), &step.graph)).collect();
        let job = Job::of(&graphs).map_err(|source| Error::Job { path: path.clone(), source })?;
        Ok(Ranks { path, steps, job, alike, node: None, in_hosts: None })
    }

    /// Their graphs, and where they meet.
    #[must_use]
    pub fn crew(&self) -> Crew<'_> {
        Crew {
            numbers: self.steps.iter().map(number).collect(),
            graphs: self.steps.iter().map(|step| &step.graph).collect(),
            job: &self.job,
        }
    }

    /// Samples a step, all ranks together: as recorded for the job, else the sum of the ranks' own; `None` where one is not known.
    #[must_use]
    pub fn batch(&self) -> Option<u64> {
        let metas = || self.steps.iter().map(|step| step.meta.as_ref());
        let global = metas().next().flatten().and_then(|meta| meta.global_batch);
        global.or_else(|| metas().map(|meta| meta?.batch).sum())
    }

    /// What to call it: the folder's name.
    #[must_use]
    pub fn title(&self) -> String {
        let folder = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        folder.unwrap_or_else(|| self.path.display().to_string())
    }
}

/// The ranks of a job as graphs.
#[derive(Debug, Clone)]
pub struct Crew<'g> {
    /// Their numbers.
    pub numbers: Vec<u32>,
    /// Their steps.
    pub graphs: Vec<&'g StepGraph>,
    /// Which activities of theirs are one collective.
    pub job: &'g Job,
}

impl Crew<'_> {
    /// Whether any of them meet.
    #[must_use]
    pub fn meet(&self) -> bool {
        self.job.rendezvous.iter().any(|met| met.members.len() > 1)
    }

    /// How many ranks the job has: as its largest process group says, else as many as are here.
    #[must_use]
    pub fn world(&self) -> usize {
        let sizes = self.job.rendezvous.iter().filter_map(|met| met.group.size);
        sizes.max().map_or(0, |size| size as usize).max(self.graphs.len())
    }
}

/// A rendezvous as a collective to be priced, among all ranks of its group.
pub(crate) fn call(met: &Rendezvous) -> CollectiveCall {
    let here = u32::try_from(met.members.len()).unwrap_or(u32::MAX);
    CollectiveCall { kind: met.kind, ranks: met.group.size.unwrap_or(here).max(here), bytes: met.bytes }
}

/// The number of a rank; zero where it is not known, as of one trace alone.
fn number(step: &Step) -> u32 {
    step.rank.unwrap_or(0)
}
