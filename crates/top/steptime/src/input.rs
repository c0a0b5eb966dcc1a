//! Opens inputs: what was recorded, or a model that was described.

use std::path::Path;

use steptime_eager::Model;
use steptime_trace::{Input, Meta, Options, Recording};

use crate::error::Error;

/// Opens an input. A file whose name ends in `.toml` describes a model: it is the execution trace of a step of it.
///
/// # Errors
/// Where it cannot be read, holds no trace, or describes no model.
pub fn open_input(path: &Path, options: &Options<'_>) -> Result<Input, Error> {
    if path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("toml")) || path.is_dir() {
        return Ok(steptime_trace::open_with(path, options)?);
    }
    let model = Model::read(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let meta = Meta {
        model: Some(model.name().map_or_else(|| name.clone(), str::to_owned)),
        batch: Some(model.batch()),
        params: Some(model.parameters()),
        ..Meta::default()
    };
    let execution = options.want.execution.then(|| model.record());
    let recording =
        Recording { path: path.into(), name, meta: Some(meta), execution, ..Recording::default() };
    Ok(Input { path: path.into(), recordings: vec![recording], ..Input::default() })
}
