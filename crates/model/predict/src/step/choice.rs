//! Selection of a recording of an input, and of its trace with the times.

use std::path::Path;

use steptime_trace::{Meta, Recording, Trace};

use crate::error::Error;

/// Selection of a part of an input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Choice {
    /// Only this step, by its number.
    pub step: Option<u32>,
    /// This rank; `None` for the lowest.
    pub rank: Option<u32>,
}

/// The trace to take times from: of those with device activity, the one without shapes, else the one with;
/// where none has any, the first.
pub fn timing(recording: &Recording) -> Option<&Trace> {
    let mut all = [&recording.timing, &recording.shaped].into_iter().flatten();
    let first = all.clone().next();
    all.find(|trace| !trace.activities.is_empty()).or(first)
}

/// Whether a recording has device activity: one made on a CPU has times of the CPU only.
#[must_use]
pub fn is_timed(recording: &Recording) -> bool {
    timing(recording).is_some_and(|trace| !trace.activities.is_empty())
}

/// Checks that recordings in one folder are the ranks of one job: each has a rank, and no two the same.
/// Execution traces that belong to none of them are ignored.
///
/// # Errors
/// Fails where they are not, and the choice does not select one of them.
pub fn one_job(path: &Path, recordings: &[Recording], choice: &Choice) -> Result<(), Error> {
    let any_timed = recordings.iter().any(|recording| timing(recording).is_some());
    let all: Vec<&Recording> =
        recordings.iter().filter(|recording| !any_timed || timing(recording).is_some()).collect();
    let same = |rank: Option<u32>| all.iter().filter(|other| other.rank == rank).count();
    let told_apart = all.iter().all(|recording| recording.rank.is_some() && same(recording.rank) == 1);
    let chosen = choice.rank.is_some_and(|rank| same(Some(rank)) == 1);
    if all.len() < 2 || told_apart || chosen {
        return Ok(());
    }
    let names = all.iter().map(|recording| recording.name.clone()).collect();
    Err(Error::NotOneJob { path: path.into(), names })
}

/// The recording of a rank, else the first.
pub(super) fn pick(recordings: &[Recording], rank: Option<u32>) -> Option<&Recording> {
    let Some(wanted) = rank else { return recordings.first() };
    let alone = recordings.len() == 1;
    recordings.iter().find(|r| r.rank == Some(wanted) || (alone && r.rank.is_none() && wanted == 0))
}

/// Lists the existing ranks, in words.
pub fn listed(ranks: &[Option<u32>]) -> String {
    let known: Vec<String> = ranks.iter().flatten().map(u32::to_string).collect();
    if known.is_empty() { "no ranks, only one trace".into() } else { format!("ranks {}", known.join(", ")) }
}

/// Generic names of files and folders.
const SAY_NOTHING: [&str; 8] =
    ["et", "kineto", "kineto_et", "step", "trace", "traces", "recording", "profile"];

/// Title of a recording: its name, but where that is generic its model, else the folder that contains it.
pub fn title(name: &str, path: &Path, meta: Option<&Meta>) -> String {
    let says_nothing = |name: &str| SAY_NOTHING.contains(&name.to_ascii_lowercase().as_str());
    if !says_nothing(name) {
        return name.to_owned();
    }
    let folders = || path.ancestors().skip(1).filter_map(|folder| folder.file_name()?.to_str());
    let model = meta.and_then(|meta| meta.model.clone());
    let folder = || folders().find(|folder| !says_nothing(folder)).map(str::to_owned);
    model.or_else(folder).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_a_models_name_and_never_et_or_step() {
        let of = |name: &str, path: &str, model: Option<&str>| {
            let meta = Meta { model: model.map(str::to_owned), ..Meta::default() };
            title(name, Path::new(path), Some(&meta))
        };
        assert_eq!(of("dlrm_2048", "x/dlrm_2048", Some("dlrm")), "dlrm_2048");
        assert_eq!(of("step", "x/step", Some("dlrm")), "dlrm");
        assert_eq!(of("et", "x/dlrm_2048/et.json.gz", None), "dlrm_2048");
        assert_eq!(of("et", "x/step/et.json.gz", None), "x");
        assert_eq!(of("et", "et.json.gz", None), "et");
    }
}
