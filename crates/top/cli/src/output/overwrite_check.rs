//! Separation of outputs from inputs, and from one another: a command never overwrites a file that it reads.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use steptime_predict::Error;

use super::file::{folder_of, is_special, target};
use crate::cli::OutputFile;

/// Refuses a command line whose outputs are among its inputs, or are one file. Every argument that is an existing path
/// counts as an input, unless its type is [`OutputFile`].
///
/// # Errors
/// Names the output.
pub fn separate_typed(typed: &ArgMatches) -> Result<(), Error> {
    let mut typed = typed;
    while let Some((_, inner)) = typed.subcommand() {
        typed = inner;
    }
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for id in typed.ids().map(clap::Id::as_str) {
        match typed.try_get_many::<OutputFile>(id) {
            Ok(files) => outputs.extend(files.into_iter().flatten().map(|file| (id, &**file))),
            Err(_) => inputs.extend(typed.try_get_raw(id).into_iter().flatten().flatten().map(path_of)),
        }
    }
    separate_all(&outputs, &inputs)
}

/// Refuses outputs, each with the name of its option, that are among the inputs, or are one file.
///
/// # Errors
/// Names the output.
pub fn separate_all(outputs: &[(&str, &Path)], inputs: &[&Path]) -> Result<(), Error> {
    for (at, &(id, output)) in outputs.iter().enumerate() {
        separate(output, inputs.iter().copied())?;
        if let Some((other, _)) = outputs[..at].iter().find(|(_, other)| is_one_place(output, other)) {
            let words = format!("--{other} and --{id} name the same file; give one of them another name");
            return Err(refused(output, words));
        }
    }
    Ok(())
}

/// Refuses an output that is an input, is a file of an input folder, or would become one.
///
/// # Errors
/// If it is one of these.
pub fn separate<'p>(output: &Path, inputs: impl IntoIterator<Item = &'p Path>) -> Result<(), Error> {
    for input in inputs {
        let Ok(found) = fs::metadata(input) else { continue };
        if found.is_file() && !is_special(input, &found) && is_one_place(output, input) {
            return Err(refused(
                output,
                "it is read by the same command; give the output another name".into(),
            ));
        }
        if !found.is_dir() {
            continue;
        }
        let read = read_of(input);
        if read.iter().any(|file| is_one_place(output, file)) {
            let words = format!(
                "it is read by the same command, as a file of {}; give the output another name",
                input.display()
            );
            return Err(refused(output, words));
        }
        let reserved = |file: &Path| file.file_name().is_some_and(is_reserved);
        if reserved(output) && read.iter().any(|file| reserved(file) && is_beside(output, file)) {
            let words = format!(
                "by its name it would become part of {}, which is read by the same command; give the output \
                 another name",
                input.display()
            );
            return Err(refused(output, words));
        }
    }
    Ok(())
}

fn refused(output: &Path, words: String) -> Error {
    Error::Write { path: output.into(), source: io::Error::other(words) }
}

/// Returns an argument as a path: `file:PATH` is a file of indices.
pub fn path_of(typed: &OsStr) -> &Path {
    Path::new(typed.to_str().and_then(|text| text.strip_prefix("file:")).map_or(typed, OsStr::new))
}

/// Whether two paths lead to one file, through hard or symbolic links, existing or not.
fn is_one_place(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(found), Ok(_)) if is_special(one, &found) => false,
        (Ok(found), Ok(beside)) => is_one_file(&found, &beside) || is_one_path(one, other),
        (Err(_), Err(_)) => is_one_path(one, other),
        _ => false,
    }
}

#[cfg(unix)]
fn is_one_file(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_one_file(_one: &fs::Metadata, _other: &fs::Metadata) -> bool {
    false
}

fn is_one_path(one: &Path, other: &Path) -> bool {
    resolved(one).is_some_and(|one| Some(one) == resolved(other))
}

/// Returns a path with the links of its target's folder resolved.
fn resolved(path: &Path) -> Option<PathBuf> {
    let place = target(path).ok()?;
    Some(folder_of(&place).canonicalize().ok()?.join(place.file_name()?))
}

fn is_beside(output: &Path, file: &Path) -> bool {
    let folder = |path: &Path| Some(resolved(path)?.parent()?.to_owned());
    folder(output).is_some_and(|place| Some(place) == folder(file))
}

/// Returns the files that are read from a folder: the reserved names of recordings and profiles, or, if there are none, all files
/// that look like traces.
fn read_of(folder: &Path) -> Vec<PathBuf> {
    let mut files = list(folder, 0);
    let reserved = |file: &PathBuf| file.file_name().is_some_and(is_reserved);
    let only_reserved = files.iter().any(reserved);
    files.retain(|file| match only_reserved {
        true => reserved(file),
        false => file.file_name().is_some_and(looks_like_trace),
    });
    files
}

/// Maximum depth of folders that are read: a folder of jobs, and their ranks.
const DEEPEST: u32 = 2;

fn list(folder: &Path, depth: u32) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() && depth < DEEPEST => files.extend(list(&path, depth + 1)),
            Ok(found) if found.is_file() => files.push(path),
            _ => {}
        }
    }
    files
}

/// Whether a name is reserved for a part of a recording or of a device profile, compressed or not.
fn is_reserved(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    matches!(
        plain,
        "kineto.json" | "kineto_et.json" | "et.json" | "meta.json" | "profile.toml" | "models.bin"
    )
}

fn looks_like_trace(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    [".json", ".tar", ".tgz"].iter().any(|ending| plain.ends_with(ending))
}
