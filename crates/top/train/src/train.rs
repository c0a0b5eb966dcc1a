//! A training run.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use steptime_dataset::{Batch, BatchOptions, Batches, Last, Position, Shuffle};
use steptime_eager::Model;
use steptime_ops::Cpu;
use steptime_runtime::{Numbers, Rank, Session};
use steptime_train::schedule::Schedule;

use crate::Failure;
use crate::arguments::{DataName, Train};
use crate::batches::RankBatches;
use crate::checkpoints::{self, Checkpoints, Settings};
use crate::data::{Data, Wanted, with_table};
use crate::error::Error;
use crate::evaluate::{Evaluated, evaluate};
use crate::feed::Feed;
use crate::host_memory;
use crate::measured::Steps;
use crate::plan::Plan;
use crate::predicted::predict;
use crate::processor::{DeviceName, Processor};
use crate::progress::Shown;
use crate::ranks::{Exchanges, Groups};
use crate::recording::{RecordedStep, Recording};
use crate::report::{RankReport, Report, RowCache};
use crate::{placement, ranks};

/// Steps of a run on endless data.
const STEPS: u64 = 1000;
/// First steps, in which a rank compiles and captures.
const COMPILING: u64 = 3;
/// Time after which a rank that did not end a step counts as failed.
const LATE: Duration = Duration::from_secs(30);
/// Steps on a GPU from one check of their inputs to the next.
const TOGETHER: u64 = 64;

/// Trains a model.
pub fn run(args: &Train) -> Result<(), Failure> {
    let ranks = args.gpus.get() as usize;
    let of_one = [
        (args.record.is_some(), "--record"),
        (args.timeline.is_some(), "--timeline"),
        (args.host_memory.is_some(), "--host-memory"),
    ];
    if let Some((_, option)) = of_one.iter().find(|(given, _)| *given && ranks > 1) {
        let reason = format!("{option} is for one GPU: leave it out, or leave --gpus out");
        return Err(Error::Options(reason).into());
    }
    if args.exchanges != Exchanges::Auto && (ranks == 1 || args.device == DeviceName::Cpu) {
        let reason = "--exchanges is for several GPUs: use --device cuda --gpus N, or leave it out";
        return Err(Error::Options(reason.to_owned()).into());
    }
    let path = args.model.as_deref().unwrap_or(Path::new(""));
    let text = read(path)?;
    let model = placement::place(Model::read(path)?, args)?;
    ranks::run(ranks, |rank, groups| run_rank(args, &model, &text, rank, groups))
}

/// Trains one rank of a model's job; the first one reports.
fn run_rank(args: &Train, model: &Model, text: &str, rank: &Rank, groups: &Groups) -> Result<(), Failure> {
    let processor = Processor::open(args.device.of_rank(rank.rank()), args.dtype)?;
    let mut settings = Settings {
        seed: args.seed.unwrap_or(0),
        data: args.rows.map_or_else(|| args.data.to_string(), |rows| format!("{}, {rows} rows", args.data)),
        rate: args.rate,
        schedule: args.schedule.as_deref().map(schedule).transpose()?,
    };
    let open = |folder| Checkpoints::open_on(args, folder, text, rank);
    let opened = args.output.as_deref().map(open).transpose()?;
    let (mut checkpoints, resumed) = opened.map_or((None, None), |(own, resumed)| (Some(own), resumed));
    let mut start = Position::default();
    if let Some(checkpoint) = &resumed {
        (settings, start) = checkpoints::continued(checkpoint, settings, args.seed)?;
    }
    let direct = processor.exchanges_directly(rank, args.exchanges)?;
    let target = (processor.target(), direct);
    let (mut plan, mut program) = Plan::compile(model, rank, &args.plan, args.dtype, target)?;
    if let Some(wanted) = &args.host_memory {
        program = host_memory::place(&mut plan, program, wanted, args.cache, &processor)?;
    }
    let cacheable = plan.host.is_none() && !program.cacheable_tables().is_empty();
    processor.check_memory(plan.needed_bytes(&program), rank.ranks() as u64, cacheable)?;
    let predicted = predict(args, &processor, model, &plan, &program, rank)?;
    let tables = model.tables();
    let feed = Feed::new(&program, &tables, model.batch() as usize, [rank.rank(), rank.ranks()])?;
    let cpu = match (args.threads, rank.ranks()) {
        (threads, 1) => Cpu::new(threads)?,
        // Ranks share the processor.
        (0, ranks) => Cpu::new((Cpu::new(0)?.threads() / ranks).max(1))?,
        (threads, ranks) => Cpu::new((threads / ranks).max(1))?,
    };
    let threads = cpu.threads();
    let recording = Recording::open(args, &processor, &plan.step, &program)?;
    let data = Data::open(&Wanted {
        name: &args.data,
        tables: &tables,
        dense: feed.dense(),
        seed: settings.seed,
        rows: args.rows.map(Into::into),
        eval_rows: args.eval_rows.map(Into::into),
        threads,
    })?;
    let mut session = processor.session(program, cpu, settings.seed, (rank, groups), direct)?;
    if let Some(checkpoint) = &resumed {
        checkpoints::restore(checkpoint, &mut session, rank)?;
    }
    drop(resumed);
    let numbers = *session.numbers();
    let rate = settings.rate.unwrap_or(numbers.rate);
    session.set_numbers(numbers.with_rate(rate))?;
    let first_step = session.steps();
    let ahead = processor.is_gpu();
    let mut run = Run {
        args,
        settings: &settings,
        numbers,
        rate,
        first_step,
        session,
        feed,
        data,
        threads,
        ahead,
        recording,
        rank,
    };
    let (steps, evaluations) = run.train(start, checkpoints.as_mut()).map_err(with_cache_size)?;
    run.session.leave_group()?;
    if let Some(recording) = run.recording.take() {
        recording.write()?;
    }
    let own = RankReport::new(processor.name(), model, rank.rank(), &steps, &plan, predicted.as_ref().ok());
    let all = rank.gather(own, None)?;
    if rank.rank() > 0 {
        return Ok(());
    }
    let report = Report {
        args,
        model,
        ranks: &all,
        plan: &plan,
        device: processor.name(),
        predicted: &predicted,
        settings: &settings,
        threads,
        rate,
        first_step,
        summary: steps.summary(run.feed.samples() as u64),
        rounds: run.feed.rounds(),
        row_cache: run.session.row_cache_statistics().map(RowCache::new),
        evaluations: &evaluations,
        best: run.data.best,
        has_labels: run.feed.has_labels(),
        checkpoint: checkpoints.as_ref().and_then(Checkpoints::last),
    };
    report.print()
}

/// Loss and time of a step, where they are known.
type Known = Option<(f32, Duration)>;

/// Way to make a step.
#[derive(Debug, Clone, Copy)]
enum Mode {
    /// As fast as possible; whether it waits for its own loss.
    Plain { waits: bool },
    /// With the times of its ops, after the wait for its batch.
    Recorded { begun: Instant, ready: Instant },
}

/// A session and its data.
struct Run<'a> {
    args: &'a Train,
    settings: &'a Settings,
    numbers: Numbers,
    rate: f64,
    /// Number of steps that were made before.
    first_step: u64,
    session: Session,
    feed: Feed,
    data: Data,
    threads: usize,
    /// Whether a step goes on while the next one is fed.
    ahead: bool,
    /// The recording of the last steps, where one is requested.
    recording: Option<Recording>,
    rank: &'a Rank,
}

impl Run<'_> {
    /// Makes all steps from a position in the data on.
    fn train(
        &mut self,
        start: Position,
        mut checkpoints: Option<&mut Checkpoints>,
    ) -> Result<(Steps, Vec<Evaluated>), Failure> {
        let mut batches = RankBatches::open(self.rank, start, || self.batches(start))?;
        let end = self.end(&batches)?;
        let every = |every: Option<std::num::NonZero<u64>>, step: u64| {
            every.is_some_and(|every| step.is_multiple_of(every.get()))
        };
        let (mut steps, mut evaluations) = (Steps::default(), Vec::new());
        let mut shown =
            Shown::new(end, self.session.steps(), self.feed.samples() as u64).hidden(self.rank.rank() > 0);
        self.feed.offsets(&mut self.session)?;
        while self.session.steps() < end {
            let begun = Instant::now();
            let Some(batch) = batches.next() else { break };
            let batch = batch.map_err(|error| with_table(error, &*self.data.train))?;
            let ready = Instant::now();
            let next = self.session.steps() + 1;
            let waits = !self.ahead
                || next == end
                || next.is_multiple_of(TOGETHER)
                || every(self.args.eval_every, next)
                || every(self.args.save_every, next);
            let recorded = self.recording.as_ref().is_some_and(|recording| end - next < recording.last());
            let how = if recorded { Mode::Recorded { begun, ready } } else { Mode::Plain { waits } };
            let losses = self.step(&batch, how, checkpoints.as_deref()).inspect_err(|_| shown.clear())?;
            let spent = begun.elapsed();
            steps.add(ready - begun, spent, &losses);
            let step = self.session.steps();
            // On a GPU the loss of the first step is not known yet.
            if let Some((loss, _)) = losses.last() {
                shown.step(step, *loss);
            }
            if every(self.args.eval_every, step) || step == end {
                evaluations.extend(self.evaluate(&mut shown)?);
            }
            if let Some(checkpoints) = checkpoints.as_deref_mut()
                && (every(self.args.save_every, step) || step == end)
            {
                checkpoints.save(&mut self.session, self.settings, batches.position(), self.rank)?;
            }
        }
        shown.clear();
        Ok((steps, evaluations))
    }

    /// Makes one step, and returns the losses that are known then and were not before, each with the time of its step: that of this step, if it
    /// waits for it, and that of the step before.
    fn step(
        &mut self,
        batch: &Batch,
        mode: Mode,
        checkpoints: Option<&Checkpoints>,
    ) -> Result<Vec<(f32, Duration)>, Failure> {
        let step = self.session.steps();
        let rate = self.settings.schedule.map_or(self.rate, |schedule| schedule.rate(self.rate, step));
        self.session.set_numbers(self.numbers.with_rate(rate))?;
        let [before, own] = match mode {
            Mode::Plain { waits } => self.plain(batch, waits)?,
            Mode::Recorded { begun, ready } => self.recorded(batch, [begun, ready])?,
        };
        let [before, own] = self.means([before, own])?;
        let all = [(step, before), (step + 1, own)];
        let Some((step, loss)) = all.into_iter().find_map(|(step, loss)| {
            loss.filter(|(loss, _)| !loss.is_finite()).map(|(loss, _)| (step, loss))
        }) else {
            return Ok(all.into_iter().filter_map(|(_, loss)| loss).collect());
        };
        let none = "There is no folder for checkpoints: -o FOLDER --save-every N writes some".to_owned();
        let checkpoint = checkpoints.map_or(none, Checkpoints::in_words);
        Err(Error::Diverged { step, loss, rate, checkpoint }.into())
    }

    /// Replaces losses of the own samples by their means over all ranks.
    fn means(&self, own: [Known; 2]) -> Result<[Known; 2], Failure> {
        if self.rank.ranks() == 1 {
            return Ok(own);
        }
        // The first steps compile and capture.
        let limit = (self.session.steps() > self.first_step + COMPILING).then_some(LATE);
        let all = self.rank.gather(own.map(|known| known.map(|(loss, _)| loss)), limit)?;
        let mean = |at: usize| {
            let sum: f64 = all.iter().filter_map(|losses| losses[at]).map(f64::from).sum();
            (sum / all.len() as f64) as f32
        };
        let [before, now] = own;
        Ok([before.map(|(_, time)| (mean(0), time)), now.map(|(_, time)| (mean(1), time))])
    }

    /// Makes one step; returns the loss and the time of the step before, and its own if it waits for it, where they were not known.
    fn plain(&mut self, batch: &Batch, waits: bool) -> Result<[Option<(f32, Duration)>; 2], Failure> {
        let begin = Instant::now();
        self.feed.batch_to(&mut self.session, batch)?;
        let copied = begin.elapsed();
        let begin = Instant::now();
        let before = self.session.start()?.map(|loss| (loss, self.session.step_time()));
        let own = if waits { self.session.finish()? } else { None };
        // On a CPU the copy to the inputs is a part of the step.
        let time = if self.ahead { self.session.step_time() } else { begin.elapsed() + copied };
        Ok([before, own.map(|loss| (loss, time))])
    }

    /// Makes one step with the times of its ops; `waited` has begin and end of the wait for its batch.
    fn recorded(
        &mut self,
        batch: &Batch,
        [begin, ready]: [Instant; 2],
    ) -> Result<[Option<(f32, Duration)>; 2], Failure> {
        let before = self.session.finish()?.map(|loss| (loss, self.session.step_time()));
        let copied = Instant::now();
        self.feed.batch_to(&mut self.session, batch)?;
        let copy = [copied, Instant::now()];
        let times = self.session.measured_step()?;
        // Reports errors in the inputs.
        self.session.finish()?;
        let copying = if self.ahead { Duration::ZERO } else { copy[1] - copy[0] };
        let own = (times.loss, copying + times.time());
        let number = self.session.steps();
        if let Some(recording) = &mut self.recording {
            recording.add(RecordedStep { number, begin, waiting: ready - begin, copy, times });
        }
        Ok([before, Some(own)])
    }

    fn evaluate(&mut self, shown: &mut Shown) -> Result<Option<Evaluated>, Failure> {
        let Some((source, rows)) = self.data.evaluation.as_ref().filter(|_| self.feed.has_labels()) else {
            return Ok(None);
        };
        let with = (self.threads.min(2), self.rank);
        let evaluated = evaluate(&mut self.session, &mut self.feed, source, *rows, with)?;
        shown.evaluated(&evaluated);
        Ok(Some(evaluated))
    }

    /// Batches for training from a position on.
    fn batches(&self, start: Position) -> Result<Batches, Failure> {
        let (batch, rows) = (self.feed.samples(), self.data.train.rows());
        if rows < batch as u64 {
            let most = rows / self.feed.rounds() as u64;
            let reason = format!(
                "there are {rows} rows for training, and a step takes {batch}: use --batch {most} or less"
            );
            return Err(Error::Options(reason).into());
        }
        let passes = match (self.args.epochs, self.args.steps) {
            (Some(_), _) if self.data.endless => {
                let reason = "--epochs of synthetic data needs its number of rows: --rows N";
                return Err(Error::Options(reason.to_owned()).into());
            }
            (Some(epochs), _) => epochs.get(),
            (None, None) if !self.is_synthetic() => 1,
            (None, _) => u64::MAX,
        };
        let shuffle = self.data.shuffled.then(|| Shuffle::new(self.settings.seed));
        // One reader for all ranks.
        let threads = (self.threads * self.rank.ranks()).min(2 * self.rank.ranks());
        let options = BatchOptions {
            shuffle,
            last: Last::Drop,
            epochs: passes,
            start,
            threads,
            ..BatchOptions::new(batch)
        };
        Ok(Batches::new(Arc::clone(&self.data.train), options)?)
    }

    fn is_synthetic(&self) -> bool {
        matches!(self.args.data, DataName::Synthetic { .. })
    }

    /// Number of steps at the end of the run.
    fn end(&self, batches: &RankBatches) -> Result<u64, Failure> {
        let done = self.session.steps();
        let default = (self.is_synthetic() && self.args.epochs.is_none()).then_some(STEPS);
        let limit = self.args.steps.map(std::num::NonZero::get).or(default).unwrap_or(u64::MAX);
        let end = limit.min(done.saturating_add(batches.remaining()));
        if end > done {
            return Ok(end);
        }
        let reason =
            format!("the checkpoint of step {done} is the end of this run: raise --steps or --epochs");
        Err(Error::Options(reason).into())
    }
}

/// Adds the option that makes caches larger to the error of a batch that does not fit them.
fn with_cache_size(failure: Failure) -> Failure {
    match failure.downcast::<steptime_runtime::Error>() {
        Ok(source) if matches!(*source, steptime_runtime::Error::RowCache(_)) => {
            Error::SmallCache { source }.into()
        }
        Ok(other) => other,
        Err(other) => other,
    }
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Reads the schedule of the learning rate.
fn schedule(path: &Path) -> Result<Schedule, Error> {
    let invalid = |source| Error::Schedule { path: path.to_owned(), source };
    let schedule: Schedule = toml::from_str(&read(path)?).map_err(|error| invalid(error.into()))?;
    schedule.check().map_err(|error| invalid(error.into()))?;
    Ok(schedule)
}
