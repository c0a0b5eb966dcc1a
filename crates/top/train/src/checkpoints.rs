//! Checkpoints of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steptime_dataset::Position;
use steptime_runtime::{NamedShape, Rank, Session, TensorPart};
use steptime_train::checkpoint::{self, Checkpoint, Entry, Options, State, Store};
use steptime_train::schedule::Schedule;

use crate::Failure;
use crate::arguments::Train;
use crate::error::Error;

/// The folder of a run's checkpoints.
pub struct Checkpoints {
    /// The files, which the first rank writes.
    store: Option<Store>,
    /// The text of `model.toml`.
    model: String,
    last: Option<(u64, PathBuf)>,
}

/// Settings of a run that its continuation has too.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub seed: u64,
    /// Name of the data, and rows of a synthetic epoch.
    pub data: String,
    pub rate: Option<f64>,
    pub schedule: Option<Schedule>,
}

impl Checkpoints {
    /// Opens the folder of a run, and its last checkpoint where the run is a continuation.
    pub fn open(
        args: &Train,
        folder: &Path,
        model: &str,
    ) -> Result<(Checkpoints, Option<Checkpoint>), Failure> {
        let store = Store::open(folder, Options { keep: args.keep, ..Options::default() })?;
        let last = checkpoint::list(folder)?.pop();
        let refused = |reason: String| Error::Checkpoint { path: folder.to_owned(), reason };
        let opened = match (&last, args.resume) {
            (Some((_, path)), true) => Some(Checkpoint::open(path)?),
            (None, true) => {
                return Err(refused("it has no checkpoint: leave --resume out".to_owned()).into());
            }
            (Some((step, _)), false) => {
                let reason = format!(
                    "it has a checkpoint of step {step}: continue from it with --resume, or choose another folder"
                );
                return Err(refused(reason).into());
            }
            (None, false) => None,
        };
        Ok((Checkpoints { store: Some(store), model: model.to_owned(), last }, opened))
    }

    /// Opens the folder of a run for each rank.
    ///
    /// # Errors
    /// As [`Checkpoints::open`]; where another rank failed.
    pub fn open_on(
        args: &Train,
        folder: &Path,
        model: &str,
        rank: &Rank,
    ) -> Result<(Checkpoints, Option<Checkpoint>), Failure> {
        if rank.rank() == 0 {
            let (own, resumed) = Checkpoints::open(args, folder, model)?;
            let path = resumed.as_ref().map(|checkpoint| checkpoint.folder().to_owned());
            rank.gather((own.last.clone(), path), None)?;
            return Ok((own, resumed));
        }
        let all = rank.gather((None::<(u64, PathBuf)>, None::<PathBuf>), None)?;
        let (last, path) = all.first().map_or((None, None), |first| (**first).clone());
        let resumed = path.as_deref().map(Checkpoint::open_unhashed).transpose()?;
        Ok((Checkpoints { store: None, model: model.to_owned(), last }, resumed))
    }

    /// Writes a checkpoint with the tensors of all ranks, unless the last one is of this step. All ranks call it.
    pub fn save(
        &mut self,
        session: &mut Session,
        settings: &Settings,
        position: Position,
        rank: &Rank,
    ) -> Result<(), Failure> {
        let step = session.steps();
        if self.last.as_ref().is_some_and(|(last, _)| *last == step) {
            return Ok(());
        }
        let rate = settings.rate.map(|rate| ("rate".to_owned(), rate.to_string()));
        let more: BTreeMap<_, _> =
            rate.into_iter().chain([("data".to_owned(), settings.data.clone())]).collect();
        let state = State {
            step,
            epoch: position.epoch,
            seed: settings.seed,
            data_position: serde_json::to_string(&position)?,
            more,
            schedule: settings.schedule,
        };
        let named = session.tensors();
        let values = named.iter().map(|tensor| session.read(&tensor.name)).collect::<Result<Vec<_>, _>>()?;
        let all = rank.gather((named, values), None)?;
        let path = match &self.store {
            Some(store) => Some(write(store, &state, &self.model, &all)?),
            None => None,
        };
        drop(all);
        // Others wait for the file, and give their tensors up.
        let paths = rank.gather(path, None)?;
        self.last = paths.first().and_then(|first| (**first).clone()).map(|path| (step, path));
        Ok(())
    }

    /// Path of the last checkpoint.
    pub fn last(&self) -> Option<&Path> {
        self.last.as_ref().map(|(_, path)| &**path)
    }

    /// The last checkpoint in words.
    pub fn in_words(&self) -> String {
        match &self.last {
            Some((step, path)) => {
                format!(
                    "The last checkpoint is of step {step}, in {}: --resume continues from it",
                    path.display()
                )
            }
            None => "No checkpoint was written: --save-every N writes some".to_owned(),
        }
    }
}

/// Tensors of a rank with their elements.
type Tensors = (Vec<NamedShape>, Vec<Vec<f32>>);

/// Writes a checkpoint of the tensors of all ranks: parts of tables are joined. Returns its path.
fn write(store: &Store, state: &State, model: &str, all: &[Arc<Tensors>]) -> Result<PathBuf, Failure> {
    let mut joined: Vec<(&str, [usize; 2], Vec<f32>)> = Vec::new();
    for (tensor, values) in all.iter().flat_map(|rank| rank.0.iter().zip(&rank.1)) {
        let Some(TensorPart { offset: [row, column], whole: [rows, columns] }) = tensor.part else {
            continue;
        };
        let place = joined.iter().position(|(name, ..)| *name == tensor.name).unwrap_or_else(|| {
            joined.push((&tensor.name, [rows, columns], vec![0.0; rows * columns]));
            joined.len() - 1
        });
        let width = tensor.shape[1];
        let to = joined[place].2.chunks_exact_mut(columns.max(1)).skip(row);
        to.zip(values.chunks_exact(width.max(1)))
            .for_each(|(to, from)| to[column..column + width].copy_from_slice(from));
    }
    let entry = |name: &str, shape: &[usize], values| {
        let shape: Vec<u64> = shape.iter().map(|&size| size as u64).collect();
        Entry::from_slice(name, &shape, values)
    };
    // Of tensors that several ranks have, that of the first one is written.
    let mut seen = BTreeSet::new();
    let whole = all.iter().flat_map(|rank| rank.0.iter().zip(&rank.1));
    let whole = whole.filter(|(tensor, _)| tensor.part.is_none() && seen.insert(&tensor.name));
    let entries = whole.map(|(tensor, values)| entry(&tensor.name, &tensor.shape, values));
    let parts = joined.iter().map(|(name, shape, values)| entry(name, shape, values));
    let entries = entries.chain(parts).collect::<Result<Vec<_>, _>>()?;
    let written = store.write(state, model, &entries)?;
    if let Err(error) = written.removed {
        eprintln!("note: an old checkpoint remains: {error}");
    }
    Ok(written.path)
}

/// The settings of a checkpoint's run, replaced by those of the command line, and its position in the data.
pub fn continued(
    checkpoint: &Checkpoint,
    given: Settings,
    seed: Option<u64>,
) -> Result<(Settings, Position), Failure> {
    let state = checkpoint.state();
    let refused = |reason: String| Error::Checkpoint { path: checkpoint.folder().to_owned(), reason };
    if let Some(seed) = seed.filter(|seed| *seed != state.seed) {
        let own = state.seed;
        return Err(refused(format!("its run has the seed {own}, not {seed}: leave --seed out")).into());
    }
    if let Some(data) = state.more.get("data").filter(|data| **data != given.data) {
        let reason =
            format!("its run is on the data {data}, not {}: give the same --data and --rows", given.data);
        return Err(refused(reason).into());
    }
    let position = serde_json::from_str(&state.data_position).map_err(|error| {
        refused(format!("its position in the data is not known: {error}; use an earlier one"))
    })?;
    let rate = given.rate.or_else(|| state.more.get("rate")?.parse().ok());
    let schedule = given.schedule.or(state.schedule);
    Ok((Settings { seed: state.seed, rate, schedule, ..given }, position))
}

/// Sets parameters, optimizer states and the number of steps of a session: each rank takes its tables, and its parts of them.
pub fn restore(checkpoint: &Checkpoint, session: &mut Session, rank: &Rank) -> Result<(), Failure> {
    let refused = |reason: String| Error::Checkpoint { path: checkpoint.folder().to_owned(), reason };
    let remedy = "continue with the model, the plan and the optimizer of its run";
    let named = session.tensors();
    let names: Vec<String> = named.iter().map(|tensor| tensor.name.clone()).collect();
    let known = rank.gather(names, None)?;
    for stored in checkpoint.tensors() {
        if !known.iter().any(|names| names.contains(&stored.name)) {
            return Err(refused(format!(
                "it has the tensor {}, and the step has not: {remedy}",
                stored.name
            ))
            .into());
        }
    }
    for tensor in &named {
        let name = &tensor.name;
        let stored = checkpoint.tensor(name).map_err(|error| refused(format!("{error}: {remedy}")))?;
        let own = tensor.part.map_or_else(|| tensor.shape.clone(), |part| part.whole.to_vec());
        if !stored.shape.iter().eq(own.iter().map(|&size| size as u64).collect::<Vec<_>>().iter()) {
            let other = &stored.shape;
            return Err(
                refused(format!("{name} is {other:?} there, and {own:?} in the model: {remedy}")).into()
            );
        }
        let values = match tensor.part {
            None => checkpoint.read::<f32>(name)?,
            Some(TensorPart { offset: [row, column], whole: [_, columns] }) => {
                let rows = row as u64..(row + tensor.shape[0]) as u64;
                let rows = checkpoint.read_rows::<f32>(name, rows)?;
                let own = rows.chunks_exact(columns.max(1));
                own.flat_map(|row| &row[column..column + tensor.shape[1]]).copied().collect()
            }
        };
        session.write(name, &values)?;
    }
    session.set_steps(checkpoint.state().step);
    Ok(())
}
