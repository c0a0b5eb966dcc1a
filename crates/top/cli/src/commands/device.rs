//! `steptime device fit`, `score`, `transfer`, `list` and `show`.

mod args;
mod report;
mod transfer;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use steptime_answers::{DeviceEntry, DeviceProfileReport, TableScoreEntry};
use steptime_aten::OpSet;
use steptime_cost::device::fit::without;
use steptime_cost::device::{
    DeviceProfile, DeviceSpec, FitOptions, Indices, Observation, Search as Networks, fit, fit_onto,
};
use steptime_predict::{Step, pricing::tables};
use steptime_sweep::{self, Sweep};
use steptime_trace::Want;

pub use self::args::Device;
use self::args::{GroupBy, Search};
use super::{Failure, load};
use crate::cli::Form;
use crate::console::Console;
use crate::output;
use crate::progress::Progress;

/// Runs one of the subcommands.
pub fn run(args: &Device, console: &Console<'_>) -> Result<(), Failure> {
    match args {
        Device::Fit { sweeps, steps, spec, onto, without, families, output, search, seed } => {
            let (spec, onto) = (spec.as_deref(), onto.as_deref());
            let from = FitData { sweeps, steps, spec, onto, without, families };
            fit_profile(&from, output, *search, *seed, console)
        }
        Device::Transfer { tables, from, without, most, output, seed } => transfer::run(
            &transfer::TransferOptions { tables, from, without, most: *most, output, seed: *seed },
            console,
        ),
        Device::Score { tables, device, lent, corrections, by, rows, form } => {
            let chosen = |name: &str| chosen(name, lent.as_deref(), corrections.as_deref());
            let profile = device.as_deref().map(chosen).transpose()?;
            score(tables, profile.as_ref(), *by, *rows, *form, console)
        }
        Device::List { form } => list(*form, console),
        Device::Show { name, json } => show(name, *json, console),
    }
}

/// Data that a profile is fitted on.
struct FitData<'a> {
    sweeps: &'a [PathBuf],
    steps: &'a [PathBuf],
    spec: Option<&'a Path>,
    onto: Option<&'a str>,
    without: &'a [PathBuf],
    families: &'a [String],
}

fn fit_profile(
    from: &FitData,
    place: &Path,
    search: Search,
    seed: u64,
    console: &Console<'_>,
) -> Result<(), Failure> {
    let name = place.file_name().ok_or_else(|| format!("{} does not name a folder", place.display()))?;
    let read =
        from.sweeps.iter().chain(from.steps).chain(from.without).map(PathBuf::as_path).chain(from.spec);
    let read: Vec<&Path> = read.collect();
    for file in ["profile.toml", "models.bin.zst"] {
        output::separate(&place.join(file), read.iter().copied())?;
    }
    let onto = from.onto.map(steptime_predict::device).transpose()?;
    let sweeps = steptime_sweep::read_all(from.sweeps)?;
    let mut observed = steptime_sweep::observe(&sweeps, &OpSet::standard());
    for (op, count) in &observed.unknown {
        output::warn(&format!("{op} is not known: its {count} rows are priced by their bytes"));
    }
    for (op, count) in &observed.unexpected {
        output::warn(&format!("{op} should launch nothing by itself: its {count} rows are left out"));
    }
    for (op, (count, reason)) in &observed.unread {
        output::warn(&format!("{count} rows of {op} are left out: {reason}"));
    }
    let spec = match (&onto, from.spec, sweeps.first()) {
        (Some(profile), _, Some(first)) => same_device(profile, first)?,
        (None, Some(path), _) => read_spec(path)?,
        (None, None, Some(first)) => steptime_sweep::spec(first, &observed)?,
        (_, _, None) => return Err("give at least one sweep".into()),
    };
    let mut words = measured(&sweeps);
    if !from.steps.is_empty() {
        let in_steps = observe_steps(from.steps, &spec, &observed.observations)?;
        words.insert("steps".into(), format!("{} ops of recorded steps", in_steps.len()));
        observed.observations.extend(in_steps);
    }
    let rows = leave_out(observed.observations, from.without, &mut words)?;
    let rows = only(rows, from.families, &mut words)?;
    let progress = Progress::families();
    let options = FitOptions {
        seed,
        search: match search {
            Search::Shipped => Networks::Shipped,
            Search::Full => Networks::Full,
        },
        name: name.to_string_lossy().into_owned(),
        sweep: words,
        progress: &|_, done, of| progress.report(done as u64, of as u64),
        ..FitOptions::default()
    };
    let profile = match onto {
        Some(profile) => fit_onto(&rows, profile, &options)?,
        None => fit(&rows, &spec, &options)?,
    };
    output::uninterrupted(|| profile.write(place))?;
    console.print(&format!(
        "{}\nwritten to {}\n",
        report::profile_text(&DeviceProfileReport::new(&profile)),
        place.display()
    ))?;
    Ok(())
}

/// Returns the rows of the given families, or all if none is given.
fn only(
    mut rows: Vec<Observation>,
    families: &[String],
    words: &mut BTreeMap<String, String>,
) -> Result<Vec<Observation>, Failure> {
    let measured: BTreeSet<&str> = rows.iter().map(|row| row.call.kernel.family()).collect();
    if let Some(name) = families.iter().find(|name| !measured.contains(name.as_str())) {
        let there = measured.into_iter().collect::<Vec<_>>().join(", ");
        return Err(format!("no kernel of the family {name:?} was measured; there are {there}").into());
    }
    if !families.is_empty() {
        rows.retain(|row| families.iter().any(|name| name == row.call.kernel.family()));
        words.insert("families".into(), families.join(", "));
        words.insert("rows".into(), rows.len().to_string());
    }
    Ok(rows)
}

/// Returns the specification of a profile, if the sweep is of the same device.
fn same_device(profile: &DeviceProfile, sweep: &Sweep) -> Result<DeviceSpec, Failure> {
    match sweep.meta.get("device") {
        Some(device) if !steptime_predict::pricing::is_named(device, &profile.spec.name) => {
            Err(format!("the profile is of {}, and the sweep of {device}", profile.spec.name).into())
        }
        _ => Ok(profile.spec.clone()),
    }
}

/// Removes the rows that run a kernel of the recordings, and notes their number in `words`.
fn leave_out(
    rows: Vec<Observation>,
    recordings: &[PathBuf],
    words: &mut BTreeMap<String, String>,
) -> Result<Vec<Observation>, Failure> {
    if recordings.is_empty() {
        return Ok(rows);
    }
    let recordings: Vec<Step> = load::recordings(recordings, Want::STEP)?;
    let scored = steptime_predict::observations(&recordings, &Indices::Unknown, 0);
    let (before, of) = (rows.len(), recordings.len());
    let kept = without(rows, scored.iter().map(|row| &row.call));
    words.insert(
        "left_out".into(),
        format!("{} rows of kernels of {of} scored recordings", before - kept.len()),
    );
    Ok(kept)
}

/// Reads the ops of recorded steps, which must be from the swept device.
fn observe_steps(
    paths: &[PathBuf],
    spec: &DeviceSpec,
    swept: &[Observation],
) -> Result<Vec<Observation>, Failure> {
    let recordings: Vec<Step> = load::recordings(paths, Want::STEP)?;
    for recorded in &recordings {
        let named = recorded.meta.as_ref().and_then(|meta| meta.device.as_deref());
        let device = named.or(recorded.graph.device.as_deref());
        if let Some(device) = device.filter(|device| *device != spec.name) {
            return Err(format!(
                "{} was recorded on {device}, and the sweep on {}",
                recorded.name, spec.name
            )
            .into());
        }
    }
    let first = swept.iter().map(|row| row.case + 1).max().unwrap_or(0);
    Ok(steptime_predict::observations(&recordings, &Indices::Unknown, first))
}

/// Returns the device, versions and time of the measurements.
fn measured(sweeps: &[Sweep]) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    let Some(first) = sweeps.first() else { return words };
    for key in ["device", "driver", "cuda", "cudnn", "torch", "started"] {
        if let Some(value) = first.meta.get(key) {
            words.insert(key.to_owned(), value.to_owned());
        }
    }
    let seeds: Vec<&str> = sweeps.iter().filter_map(|sweep| sweep.meta.get("seed")).collect();
    words.insert("seeds".into(), seeds.join(", "));
    words.insert("rows".into(), sweeps.iter().map(|sweep| sweep.rows.len()).sum::<usize>().to_string());
    words
}

fn read_spec(path: &Path) -> Result<DeviceSpec, Failure> {
    let text = steptime_trace::read_text(path, 64 << 20)
        .map_err(|source| format!("{}: {source}", path.display()))?;
    let spec: DeviceSpec = toml::from_str(&text).map_err(|source| format!("{}: {source}", path.display()))?;
    spec.check().map_err(|what| format!("{}: {what}", path.display()))?;
    Ok(spec)
}

/// Reads tables, with a warning about rows that are left out.
fn read_tables(paths: &[PathBuf]) -> Result<Vec<Sweep>, Failure> {
    let mut sweeps: Vec<Sweep> = Vec::new();
    for path in paths {
        for sweep in steptime_sweep::read_table(path)? {
            if let Some(why) = sweep.meta.get(steptime_sweep::LEFT_OUT) {
                let device = sweep.meta.get("device").unwrap_or_default();
                output::warn(&format!("{}, {device}: left out are {why}", path.display()));
            }
            sweeps.push(sweep);
        }
    }
    Ok(sweeps)
}

/// Returns a profile, with its own models or transferred ones.
fn chosen(name: &str, lent: Option<&str>, corrections: Option<&Path>) -> Result<DeviceProfile, Failure> {
    Ok(match lent {
        Some(from) => steptime_predict::pricing::transferred(
            from,
            name,
            corrections.map(DeviceProfile::read).transpose()?,
        )?,
        None => steptime_predict::device(name)?,
    })
}

fn score(
    paths: &[PathBuf],
    profile: Option<&DeviceProfile>,
    by: GroupBy,
    rows: bool,
    form: Form,
    console: &Console<'_>,
) -> Result<(), Failure> {
    let sweeps = read_tables(paths)?;
    let priced = tables::rows(&sweeps, profile)?;
    if rows {
        return Ok(console.print(&report::rows_csv(&priced).text())?);
    }
    let scores: Vec<TableScoreEntry> = tables::scores(&priced, |row| match by {
        GroupBy::Kind => &row.group,
        GroupBy::Family => row.family,
        GroupBy::Op => &row.op,
    })
    .iter()
    .map(TableScoreEntry::new)
    .collect();
    Ok(console.print_answer(
        form,
        &scores,
        |scores| report::scored(scores),
        |scores| report::scored_csv(scores),
    )?)
}

fn list(form: Form, console: &Console<'_>) -> Result<(), Failure> {
    let lender = steptime_predict::pricing::transfer_source()?;
    let listed = steptime_predict::devices()
        .map(|name| Ok(DeviceEntry::new(name, &steptime_predict::pricing::own(name)?, &lender)))
        .collect::<Result<Vec<DeviceEntry>, Failure>>()?;
    Ok(console.print_answer(form, &listed, |list| report::listed(list), |list| report::listed_csv(list))?)
}

fn show(name: &str, json: bool, console: &Console<'_>) -> Result<(), Failure> {
    let shown = DeviceProfileReport::new(&steptime_predict::device(name)?);
    if json {
        console.print_json(&shown)?
    } else {
        console.print(&report::profile_text(&shown))?
    }
    Ok(())
}
