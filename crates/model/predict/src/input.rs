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
    let model = Model::read(path)?;
    let ranks: Vec<u32> = (0..model.gpus()).collect();
    Ok(described(path, &model, &ranks, options.want.execution))
}

/// Makes the input that recording some ranks of a model would give; with their steps where `steps` is set.
pub(crate) fn described(path: &Path, model: &Model, ranks: &[u32], steps: bool) -> Input {
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
        execution: steps.then(|| model.record_rank(rank)),
        ..Recording::default()
    };
    let recordings = ranks.par_iter().map(of_rank).collect();
    Input { path: path.into(), recordings, ..Input::default() }
}
