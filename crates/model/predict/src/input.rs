//! Opening of inputs: recordings, and model descriptions.

use std::path::Path;

use rayon::prelude::*;
use steptime_eager::Model;
use steptime_trace::{Input, Meta, Options, Recording};

use crate::error::Error;

/// Opens an input. A file whose name ends in `.toml` describes a model, and is opened as the execution trace of one of its steps.
///
/// # Errors
/// Fails where the input cannot be read, has no trace, or does not describe a model.
pub fn open_input(path: &Path, options: &Options<'_>) -> Result<Input, Error> {
    if path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("toml")) || path.is_dir() {
        return Ok(steptime_trace::open_with(path, options)?);
    }
    Ok(described_input(path, &Model::read(path)?))
}

/// Makes the input that recording all ranks of a model would give.
#[must_use]
pub fn described_input(path: &Path, model: &Model) -> Input {
    let ranks: Vec<u32> = (0..model.gpus()).collect();
    described(path, model, &ranks)
}

/// Makes the input that recording some ranks of a model would give.
pub(crate) fn described(path: &Path, model: &Model, ranks: &[u32]) -> Input {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let gpus = model.gpus();
    let meta = Meta {
        model: Some(model.name().map_or_else(|| name.clone(), str::to_owned)),
        batch: Some(model.batch() / u64::from(gpus)),
        global_batch: (gpus > 1).then(|| model.batch()),
        params: Some(model.parameters()),
        ..Meta::default()
    };
    let of_rank = |&rank: &u32| Recording {
        path: path.into(),
        name: name.clone(),
        rank: (gpus > 1).then_some(rank),
        meta: Some(meta.clone()),
        execution: Some(model.record_rank(rank)),
        ..Recording::default()
    };
    Input::from_recordings(path, ranks.par_iter().map(of_rank).collect())
}
