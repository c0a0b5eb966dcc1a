//! Checkpoints of a run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use steptime_dataset::Position;
use steptime_runtime::Session;
use steptime_train::checkpoint::{self, Checkpoint, Entry, Options, State, Store};
use steptime_train::schedule::Schedule;

use crate::Failure;
use crate::arguments::Train;
use crate::error::Error;

/// The folder of a run's checkpoints.
pub struct Checkpoints {
    store: Store,
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
        Ok((Checkpoints { store, model: model.to_owned(), last }, opened))
    }

    /// Writes a checkpoint, unless the last one is of this step.
    pub fn save(
        &mut self,
        session: &mut Session,
        settings: &Settings,
        position: Position,
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
        let entries = named.iter().zip(&values).map(|(tensor, values)| {
            let shape: Vec<u64> = tensor.shape.iter().map(|&size| size as u64).collect();
            Entry::from_slice(&*tensor.name, &shape, values)
        });
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        let written = self.store.write(&state, &self.model, &entries)?;
        if let Err(error) = written.removed {
            eprintln!("note: an old checkpoint remains: {error}");
        }
        self.last = Some((step, written.path));
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

/// Sets parameters, optimizer states and the number of steps of a session.
pub fn restore(checkpoint: &Checkpoint, session: &mut Session) -> Result<(), Failure> {
    let refused = |reason: String| Error::Checkpoint { path: checkpoint.folder().to_owned(), reason };
    let remedy = "continue with the model, the plan and the optimizer of its run";
    let named = session.tensors();
    for stored in checkpoint.tensors() {
        if !named.iter().any(|tensor| tensor.name == stored.name) {
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
        if !stored.shape.iter().eq(tensor.shape.iter().map(|&size| size as u64).collect::<Vec<_>>().iter()) {
            let (own, other) = (&tensor.shape, &stored.shape);
            return Err(
                refused(format!("{name} is {other:?} there, and {own:?} in the model: {remedy}")).into()
            );
        }
        session.write(name, &checkpoint.read::<f32>(name)?)?;
    }
    session.set_steps(checkpoint.state().step);
    Ok(())
}
