//! `steptime device transfer`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use steptime_answers::CorrectionEntry;
use steptime_aten::OpSet;
use steptime_cost::device::{DeviceProfile, FitOptions, MeasuredGpu, Observation, fit_across, without_host};
use steptime_sweep::{self, Sweep};

use super::{Failure, read_tables, report};
use crate::console::Console;
use crate::output;
use crate::progress::Progress;

/// Options of the command.
pub struct TransferOptions<'a> {
    pub tables: &'a [PathBuf],
    pub from: &'a str,
    pub without: &'a [String],
    pub most: usize,
    pub output: &'a Path,
    pub seed: u64,
}

/// Fits corrections of transferred models.
pub fn run(wanted: &TransferOptions<'_>, console: &Console<'_>) -> Result<(), Failure> {
    let place = wanted.output;
    let name = place.file_name().ok_or_else(|| format!("{} does not name a folder", place.display()))?;
    let lender = steptime_predict::pricing::own(wanted.from)?;
    for left_out in wanted.without {
        steptime_predict::pricing::own(left_out)?;
    }
    let sweeps = read_tables(wanted.tables)?;
    let mut gpus: BTreeMap<&'static str, Vec<Table>> = BTreeMap::new();
    for sweep in &sweeps {
        let device = sweep.meta.get("device").unwrap_or_default();
        let Some(shipped) = steptime_predict::pricing::shipped_for(device) else {
            output::warn(&format!(
                "{}: no profile for {device:?}: its rows are left out",
                sweep.path.display()
            ));
            continue;
        };
        if wanted.without.iter().any(|left_out| left_out == shipped) {
            continue;
        }
        let observed = steptime_sweep::observe(std::slice::from_ref(sweep), &OpSet::standard());
        let spec = steptime_predict::pricing::own(shipped)?.spec;
        steptime_predict::pricing::tables::plausible(sweep, &observed.observations, &spec)?;
        let of_calls = sweep.meta.get(steptime_sweep::OF_CALLS).is_some();
        gpus.entry(shipped).or_default().push(Table { rows: observed.observations, of_calls });
    }
    if gpus.len() < GPUS {
        let found: Vec<&str> = gpus.keys().copied().collect();
        let words = format!(
            "corrections are learnt from tables of at least {GPUS} GPUs; these tables are of: {}",
            found.join(", ")
        );
        return Err(words.into());
    }
    let mut profiles: Vec<(DeviceProfile, Vec<Observation>)> = Vec::new();
    let mut words = BTreeMap::from([("tables".to_owned(), tables(&sweeps))]);
    for (name, mut tables) in gpus {
        let of_calls = tables.iter_mut().filter(|table| table.of_calls);
        let mut rows: Vec<&mut Observation> = of_calls.flat_map(|table| &mut table.rows).collect();
        without_host(&mut rows, &steptime_predict::pricing::own(name)?.spec);
        let rows = drawn(tables, wanted.most);
        words.insert(format!("rows_{name}"), rows.len().to_string());
        let profile = match name == wanted.from {
            true => steptime_predict::pricing::own(name)?,
            false => steptime_predict::pricing::transferred(wanted.from, name, None)?,
        };
        profiles.push((profile, rows));
    }
    let elsewhere: Vec<MeasuredGpu> =
        profiles.iter().map(|(profile, rows)| MeasuredGpu { profile, rows }).collect();
    let progress = Progress::families();
    let options = FitOptions {
        seed: wanted.seed,
        name: name.to_string_lossy().into_owned(),
        sweep: words,
        progress: &|_, done, of| progress.report(done as u64, of as u64),
        ..FitOptions::default()
    };
    let fitted = fit_across(&elsewhere, &lender, &options)?;
    if fitted.families().is_empty() {
        return Err(format!(
            "nothing is written: no kind of kernel has enough rows on {GPUS} GPUs to learn from"
        )
        .into());
    }
    output::uninterrupted(|| fitted.write(place))?;
    console.print(&format!(
        "{}\nwritten to {}\n",
        report::corrections(&CorrectionEntry::all(fitted.families(), "other GPUs").collect::<Vec<_>>()),
        place.display()
    ))?;
    Ok(())
}

struct Table {
    rows: Vec<Observation>,
    /// Whether its times are of calls, and include host time.
    of_calls: bool,
}

/// Minimum number of GPUs that corrections are learnt from.
const GPUS: usize = 3;

/// Returns the sources of the tables.
fn tables(sweeps: &[Sweep]) -> String {
    let mut of: Vec<&str> =
        sweeps.iter().map(|sweep| sweep.meta.get(steptime_sweep::TABLE).unwrap_or("steptime")).collect();
    of.sort_unstable();
    of.dedup();
    of.join(", ")
}

/// Returns at most `most` rows of all tables together, every n-th of each. Cases of different tables stay distinct.
fn drawn(tables: Vec<Table>, most: usize) -> Vec<Observation> {
    let all: usize = tables.iter().map(|table| table.rows.len()).sum();
    let step = all.div_ceil(most.max(1)).max(1);
    let mut rows = Vec::new();
    let mut first = 0;
    for Table { rows: table, .. } in tables {
        let cases = table.iter().map(|row| row.case + 1).max().unwrap_or(0);
        let kept = table.into_iter().step_by(step).map(|row| Observation { case: first + row.case, ..row });
        rows.extend(kept);
        first += cases;
    }
    rows
}
