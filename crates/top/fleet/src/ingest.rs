//! Ingest of traces into a lake: several in parallel, each read once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;
use steptime_trace::{KinetoFile, Note, Trace, read_kineto_file_windowed};

use crate::error::Error;
use crate::lake::{Input, Lake, RankFile, Rows, VERSION};
use crate::plan::{self, Shard, Work};
use crate::report::{FileResult, Outcome, Report};
use crate::write;

/// Inputs and options of an ingest.
#[derive(Debug, Clone)]
pub struct Ingest<'a> {
    /// The runs, each a trace, a recording, or a folder of ranks.
    pub runs: &'a [PathBuf],
    /// The name of a single run; by default runs are named after their paths.
    pub name: Option<&'a str>,
    /// Number of traces read in parallel.
    pub workers: usize,
    /// The part of the files to read.
    pub shard: Shard,
}

/// Reads all traces that are not in the lake yet; `progress` is called with the bytes done and their total.
///
/// A trace that cannot be read, is cut off or repeats a rank is skipped and named in the report. The report is also written
/// into the lake, one file per run and shard. An interrupted ingest is resumed.
///
/// # Errors
/// When a run holds no traces or cannot be named, when the lake is of another version or cannot be written, or when not one
/// trace of all could be read.
pub fn ingest(what: &Ingest<'_>, lake: &Path, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Report, Error> {
    let runs = plan::runs(what.runs, what.name)?;
    let lake = Lake::open(lake)?;
    let work = plan::work(&runs, what.shard);
    let total: u64 = work.iter().map(|item| item.bytes).sum();
    let done = Mutex::new(0);
    let known = KnownRanks::read(&lake, &runs)?;
    let files = each(&work, what.workers, |item| {
        let found = one(&lake, &known, item);
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        *done += item.bytes;
        progress(*done, total);
        found
    })?;
    let report = Report::new(files);
    for (run, _) in &runs {
        let own = report.files.iter().filter(|file| file.run == *run).cloned().collect();
        lake.write_json(&lake.report(run, what.shard.part, what.shard.of), &Report::new(own))?;
    }
    let useful = report.count(Outcome::Ingested) + report.count(Outcome::Kept);
    match report.files.iter().find_map(|file| Some((file.path.clone(), file.reason.clone()?))) {
        // A shard may consist of damaged files only.
        Some((path, first)) if useful == 0 && what.shard == Shard::WHOLE => {
            Err(Error::Nothing { count: report.files.len(), path: path.into(), first })
        }
        _ => Ok(report),
    }
}

/// Runs the work on at most `workers` threads; the results have the order of the work. After an error no more work is
/// started.
fn each(
    work: &[Work],
    workers: usize,
    one: impl Fn(&Work) -> Result<FileResult, Error> + Sync,
) -> Result<Vec<FileResult>, Error> {
    // Reading is limited by the processors: more threads only take memory.
    let most = std::thread::available_parallelism().map_or(1, |processors| processors.get() * 4);
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let results: Mutex<Vec<(usize, Result<FileResult, Error>)>> = Mutex::new(Vec::with_capacity(work.len()));
    let worker = || {
        while !stop.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = work.get(at) else { break };
            let result = one(item);
            stop.fetch_or(result.is_err(), Ordering::Relaxed);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers.min(most).clamp(1, work.len().max(1)) {
            if std::thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        worker();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The ranks in the lake, and those that files of this ingest have claimed.
struct KnownRanks {
    made: FxHashMap<(String, String), (u32, RankFile)>,
    claimed: Mutex<FxHashMap<(String, u32), PathBuf>>,
}

impl KnownRanks {
    fn read(lake: &Lake, runs: &[(String, Vec<KinetoFile>)]) -> Result<KnownRanks, Error> {
        let mut made = FxHashMap::default();
        for (run, _) in runs {
            for (rank, file) in lake.ranks(run)? {
                made.insert((run.clone(), file.input.path.clone()), (rank, file));
            }
        }
        Ok(KnownRanks { made, claimed: Mutex::default() })
    }

    /// Returns the rank that was made from a file in its present state.
    fn made_of(&self, run: &str, input: &Input) -> Option<&(u32, RankFile)> {
        self.made.get(&(run.to_owned(), input.path.clone())).filter(|(_, file)| file.input == *input)
    }

    /// Returns the reason why a file cannot become a rank: another file has it, in the lake and still on disk, or in this ingest.
    fn conflict(&self, lake: &Lake, item: &Work, rank: u32, input: &Input) -> Result<Option<String>, Error> {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (item.run.clone(), rank);
        if let Some(other) = claimed.get(&key) {
            return Ok(Some(format!(
                "it is rank {rank}, and so is {}: give it a run of its own",
                other.display()
            )));
        }
        if let Some(file) = lake.rank_file(&item.run, rank)?
            && file.input.path != input.path
            && Path::new(&file.input.path).exists()
        {
            let (other, folder) = (&file.input.path, lake.rank(&item.run, rank));
            return Ok(Some(format!(
                "it is rank {rank}, and so is {other}: give it a run of its own by --run, or remove {}",
                folder.display()
            )));
        }
        claimed.insert(key, item.path.clone());
        Ok(None)
    }
}

/// Ingests one file. Errors are those of the lake; a defect of the file is a result.
fn one(lake: &Lake, known: &KnownRanks, item: &Work) -> Result<FileResult, Error> {
    let found = |outcome, rank, reason: Option<String>| FileResult {
        path: item.path.display().to_string(),
        run: item.run.clone(),
        rank,
        outcome,
        reason,
        bytes: item.bytes,
        repairs: 0,
        rows: Rows::default(),
    };
    let input = match Input::read(&item.path) {
        Ok(input) => input,
        Err(error) => return Ok(found(Outcome::Skipped, None, Some(error.to_string()))),
    };
    if let Some((rank, kept)) = known.made_of(&item.run, &input) {
        let there = found(Outcome::Kept, Some(*rank), None);
        return Ok(FileResult { repairs: kept.repairs, rows: kept.rows, ..there });
    }
    if item.archive {
        let reason = "it is an archive: unpack it, and ingest its folder";
        return Ok(found(Outcome::Skipped, None, Some(reason.to_owned())));
    }
    let trace = match read_kineto_file_windowed(&item.path) {
        Ok(trace) => trace,
        Err(error) => {
            use steptime_trace::Error as Trace;
            let other =
                matches!(error, Trace::WrongKind { .. } | Trace::NotATrace { .. } | Trace::NotJson { .. });
            let outcome = if other && !item.named { Outcome::Ignored } else { Outcome::Skipped };
            return Ok(found(outcome, None, Some(error.to_string())));
        }
    };
    let rank = rank_of(&trace, item);
    if let Some(reason) = unfit(&trace) {
        return Ok(found(Outcome::Skipped, Some(rank), Some(reason)));
    }
    if let Some(reason) = known.conflict(lake, item, rank, &input)? {
        return Ok(found(Outcome::Skipped, Some(rank), Some(reason)));
    }
    let repairs = trace.notes.repairs();
    let folder = lake.unfinished()?;
    let rows = match write::tables(trace, folder.path()) {
        Err(Error::Ops(error)) => return Ok(found(Outcome::Skipped, Some(rank), Some(error.to_string()))),
        rows => rows?,
    };
    let tables = BTreeMap::new();
    let file = RankFile { steptime_lake: VERSION, input, repairs, rows, tables };
    lake.place(folder, &item.run, rank, file)?;
    Ok(FileResult { repairs, rows, ..found(Outcome::Ingested, Some(rank), None) })
}

/// Returns the rank of a trace: as recorded, else by its file name, else by its place.
fn rank_of(trace: &Trace, item: &Work) -> u32 {
    let own = trace.distributed.as_ref().and_then(|distributed| distributed.rank);
    own.or(item.rank).unwrap_or(item.place)
}

/// Returns the reason why a trace would distort sums over ranks: it holds several processes, or only its beginning.
fn unfit(trace: &Trace) -> Option<String> {
    let processes = trace.stepping_processes().len();
    if processes > 1 {
        return Some(format!(
            "{processes} processes marked steps in it, and a rank is one: give one file per process"
        ));
    }
    let notes = [Note::Truncated, Note::DamagedCompression, Note::BrokenTail];
    let note = notes.into_iter().find(|note| trace.notes.count(*note) > 0)?;
    Some(format!("{}: only its front part could be read; copy it again", note.message()))
}
