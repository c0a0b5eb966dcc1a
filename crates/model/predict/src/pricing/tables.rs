//! Predicted kernel times compared with tables, for any GPU with a known profile.

use std::collections::BTreeMap;

use steptime_aten::OpSet;
use steptime_cost::device::paper::roofline;
use steptime_cost::device::{DeviceProfile, DeviceSpec, Estimate, ModelChoice, Observation, families};
use steptime_sweep::{Observations, Sweep, observe};
use steptime_trace::Nanos;

use super::catalog::{device, devices, is_named, shipped_for};
use crate::error::Error;
use crate::score::Score;

/// A row of a table: an op, predicted and measured. Times in microseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    /// The GPU, as the table names it.
    pub device: String,
    /// The generator of a sweep, or the kind of op in a table.
    pub group: String,
    /// The family of its kernels.
    pub family: &'static str,
    /// The op.
    pub op: String,
    /// Shapes of its inputs, as JSON.
    pub dims: String,
    /// Predicted.
    pub predicted_us: f64,
    /// Measured.
    pub measured_us: f64,
    /// The 90 % interval.
    pub interval_us: [f64; 2],
    /// Roofline time: operations or bytes at the specification's rates, whichever takes longer.
    pub roofline_us: f64,
    /// Source of the prediction.
    pub source: &'static str,
}

/// The rows of one kind, of one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct TableScore {
    /// The GPU, as the table names it.
    pub device: String,
    /// The kind.
    pub group: String,
    /// Number of rows.
    pub rows: usize,
    /// Errors relative to measured times.
    pub score: Score,
    /// Sum of predicted times over the sum of measured times.
    pub total: f64,
    /// Share of rows whose measured time is inside the 90 % interval.
    pub inside: f64,
    /// Median half-width of the 90 % interval, of the logarithm of time.
    pub half_width: f64,
    /// Mean error of the roofline.
    pub roofline: f64,
}

/// Prices the rows of tables. Without a profile, each GPU's rows are priced by the shipped profile of its name.
///
/// # Errors
/// Fails where a GPU has no profile, or where the profile is not of any of the tables' GPUs.
pub fn rows(sweeps: &[Sweep], profile: Option<&DeviceProfile>) -> Result<Vec<TableRow>, Error> {
    let mut rows = Vec::new();
    let named = |sweep: &Sweep| sweep.meta.get("device").unwrap_or_default().to_owned();
    for sweep in sweeps {
        let name = named(sweep);
        match profile {
            Some(profile) if is_profile_of(&name, profile) => priced(sweep, &name, profile, &mut rows)?,
            Some(_) => {}
            None => {
                let shipped =
                    shipped_for(&name).ok_or_else(|| Error::UnknownDevice { device: name.clone() })?;
                priced(sweep, &name, &device(shipped)?, &mut rows)?;
            }
        }
    }
    match profile {
        Some(profile) if rows.is_empty() => {
            let mut of: Vec<String> = sweeps.iter().map(named).collect();
            of.dedup();
            Err(Error::OfOtherDevices { profile: profile.spec.name.clone(), of: of.join(", ") })
        }
        _ => Ok(rows),
    }
}

/// Whether a profile is of a GPU. A shipped one is not where another shipped one matches better: an A100 PCIe of 40 GB, and one of 80.
fn is_profile_of(name: &str, profile: &DeviceProfile) -> bool {
    let nearer = shipped_for(name).is_some_and(|nearest| nearest != profile.name);
    is_named(name, &profile.spec.name) && !(nearer && devices().any(|shipped| shipped == profile.name))
}

fn priced(
    sweep: &Sweep,
    device: &str,
    profile: &DeviceProfile,
    rows: &mut Vec<TableRow>,
) -> Result<(), Error> {
    let Observations { observations, rows: places, .. } =
        observe(std::slice::from_ref(sweep), &OpSet::standard());
    plausible(sweep, &observations, &profile.spec)?;
    let calls: Vec<_> = observations.iter().map(|row| (&row.call, &row.ctx)).collect();
    let estimates = profile.price_all(&calls, ModelChoice::Best);
    for ((observation, estimate), &(_, at)) in observations.iter().zip(&estimates).zip(&places) {
        let row = &sweep.rows[at];
        rows.push(TableRow {
            device: device.to_owned(),
            group: row.family.clone(),
            family: observation.call.kernel.family(),
            op: observation.op.clone(),
            dims: row.dims.clone(),
            predicted_us: estimate.time.as_micros(),
            measured_us: observation.time.as_micros(),
            interval_us: Estimate::interval(estimate).map(Nanos::as_micros),
            roofline_us: roofline(&observation.call, &profile.spec),
            source: estimate.source.name(),
        });
    }
    Ok(())
}

/// Minimum number of rows to judge the unit of times.
const ROWS_OF_A_UNIT: usize = 20;
/// Factor between the median time and the formulas from which times are taken to be in another unit.
const ANOTHER_UNIT: f64 = 50.0;

/// Rejects times that are physically implausible: milliseconds taken for microseconds, or the other way round.
///
/// # Errors
/// Fails where the median row is far from the formulas over the specification.
pub fn plausible(sweep: &Sweep, observations: &[Observation], spec: &DeviceSpec) -> Result<(), Error> {
    let ratio = |row: &Observation| {
        let formula = families::find(&row.call.kernel).analytic(&row.call, &row.ctx, spec);
        row.time.as_micros() / formula
    };
    let mut ratios: Vec<f64> = observations.iter().map(ratio).filter(|ratio| ratio.is_finite()).collect();
    if ratios.len() < ROWS_OF_A_UNIT {
        return Ok(());
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    if (1.0 / ANOTHER_UNIT..ANOTHER_UNIT).contains(&median) {
        return Ok(());
    }
    Err(Error::AnotherUnit { path: sweep.path.clone(), median, device: spec.name.clone() })
}

/// Scores rows by GPU and by the name that `group` returns.
#[must_use]
pub fn scores<'a>(rows: &'a [TableRow], group: impl Fn(&'a TableRow) -> &'a str) -> Vec<TableScore> {
    let mut groups: BTreeMap<(&str, &str), Vec<&TableRow>> = BTreeMap::new();
    for row in rows {
        groups.entry((&row.device, group(row))).or_default().push(row);
    }
    groups.into_iter().map(|((device, group), rows)| score(device, group, &rows)).collect()
}

fn score(device: &str, group: &str, rows: &[&TableRow]) -> TableScore {
    let sum = |of: fn(&TableRow) -> f64| rows.iter().map(|row| of(row)).sum::<f64>();
    let inside = rows.iter().filter(|row| {
        let [low, high] = row.interval_us;
        low <= row.measured_us && row.measured_us <= high
    });
    let mut widths: Vec<f64> = rows.iter().map(|row| (row.interval_us[1] / row.predicted_us).ln()).collect();
    widths.sort_by(f64::total_cmp);
    TableScore {
        device: device.to_owned(),
        group: group.to_owned(),
        rows: rows.len(),
        score: Score::from_errors(rows.iter().map(|row| row.predicted_us / row.measured_us - 1.0)),
        total: sum(|row| row.predicted_us) / sum(|row| row.measured_us),
        inside: inside.count() as f64 / rows.len() as f64,
        half_width: widths[widths.len() / 2],
        roofline: Score::from_errors(rows.iter().map(|row| row.roofline_us / row.measured_us - 1.0)).mean,
    }
}
