//! Device profiles, listed and shown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use steptime_answers::{CorrectionEntry, DeviceEntry, DeviceProfileReport, TableScoreEntry};
use steptime_predict::pricing::tables::TableRow;

use crate::output::name;
use crate::report::csv::Table;
use crate::report::format::{factor, percent};
use crate::report::table::Columns;
use crate::report::width::{prose, wrapped};

/// Returns the list of profiles as a table.
pub fn listed(list: &[DeviceEntry]) -> String {
    let kernels = |row: &DeviceEntry| match (row.families, &row.models_of) {
        (count, None) => format!("{count} families"),
        (0, Some(from)) => format!("transferred from {from}"),
        (count, Some(from)) => format!("transferred from {from}, {count} corrected"),
    };
    let columns = Columns::from_rows(
        &[
            ("~name", |row: &DeviceEntry| row.name.clone()),
            ("~device", |row| row.device.clone()),
            ("?architecture", |row| row.architecture.clone()),
            (">GB", |row| format!("{:.0}", row.memory_gb)),
            (">GB/s", |row| format!("{:.0}", row.memory_gb_s)),
            (">fp32", |row| format!("{:.1}", row.f32_tflop_s)),
            (">bf16", |row| format!("{:.1}", row.bf16_tflop_s)),
            ("kernels", kernels),
        ],
        list,
    );
    let head = "rates are achieved rates; fp32 and bf16: matrix products, TFLOP/s; kernels: families fitted on this GPU; or the GPU from \
                which models are transferred, and families corrected by a sweep of this GPU";
    format!("{}\n\n{}", wrapped(head, prose(), 2), columns.text())
}

/// Returns the errors of predictions of tables.
pub fn scored(scores: &[TableScoreEntry]) -> String {
    let columns = Columns::from_rows(
        &[
            ("~device", |row: &TableScoreEntry| row.device.clone()),
            ("~kind", |row| row.kind.clone()),
            (">rows", |row| row.rows.to_string()),
            (">GMAE", |row| percent(row.gmae)),
            (">mean", |row| percent(row.mean)),
            ("?>p90", |row| percent(row.p90)),
            (">total", |row| format!("{:.2}", row.total)),
            (">inside", |row| percent(row.inside)),
            (">x/÷", |row| factor(row.half_width.exp())),
            (">roofline", |row| percent(row.roofline)),
        ],
        scores,
    )
    .tight();
    let head = "errors of predicted times; total: sum of predicted over sum of measured times; inside: rows in the 90 % interval; roofline: \
                its mean error";
    format!("{}\n\n{}", wrapped(head, prose(), 2), columns.text())
}

/// Returns the list of device profiles as CSV.
pub fn listed_csv(list: &[DeviceEntry]) -> Table {
    let columns =
        "name device architecture memory_gb memory_gb_s f32_tflop_s bf16_tflop_s fitted_families=families";
    Table::from_rows(columns, list)
}

/// Returns the scores of tables as CSV.
pub fn scored_csv(scores: &[TableScoreEntry]) -> Table {
    Table::from_rows("device kind rows gmae mean p90 total inside half_width roofline", scores)
}

/// Returns the rows of tables, predicted and measured, as CSV.
pub fn rows_csv(rows: &[TableRow]) -> Table {
    let columns = "device kind family op dims measured_us predicted_us low_us=interval_us/0 high_us=interval_us/1 source";
    let entry = |row: &TableRow| {
        json!({
            "device": row.device,
            "kind": row.group,
            "family": row.family,
            "op": row.op,
            "dims": row.dims,
            "measured_us": row.measured_us,
            "predicted_us": row.predicted_us,
            "interval_us": row.interval_us,
            "source": row.source,
        })
    };
    Table::from_rows(columns, rows.iter().map(entry))
}

/// Returns the held-out errors of transferred models before and after corrections, by kind.
pub fn corrections(corrected: &[CorrectionEntry]) -> String {
    let names = ["~family", "~kind", "by", ">rows", ">before", ">after", ">taken"];
    let mut columns = Columns::new(&names).tight();
    for row in corrected {
        columns.row([
            row.family.clone(),
            row.kind.clone(),
            row.by.to_owned(),
            row.rows.to_string(),
            percent(row.before),
            percent(row.after),
            percent(row.taken),
        ]);
    }
    let head = "mean errors of transferred models before and after corrections, on held-out data: each of the other GPUs in turn, or \
                cases of this one";
    format!("{}\n\n{}", wrapped(head, prose(), 2), columns.text())
}

/// Returns a profile as text.
pub fn profile_text(profile: &DeviceProfileReport) -> String {
    let mut text: String =
        specification(profile).iter().map(|line| wrapped(&name(line), prose(), 2) + "\n").collect();
    if let Some(from) = &profile.models_of {
        let swept = profile.corrected.iter().any(|row| row.by == "this GPU");
        let wider = profile.wider.map_or_else(String::new, |wider| {
            format!("; without measurements, intervals are wider by {}", percent(wider.exp() - 1.0))
        });
        let words = match swept {
            false => format!(
                "no kernel was measured on it: times come from the models of {from}, evaluated with this specification{wider}"
            ),
            true => format!(
                "times come from the models of {from}, evaluated with this specification, and corrected by measurements on this \
                 GPU{wider}"
            ),
        };
        text.push_str(&format!("\n{}\n", wrapped(&words, prose(), 2)));
        if !profile.corrected.is_empty() {
            text.push_str(&format!("\n{}", corrections(&profile.corrected)));
        }
        return text;
    }
    text.push_str(&format!("\nerrors on rows held out of the fit\n{}", in_use(profile).text()));
    text.push_str(&format!("\nGMAE / mean of every model, in %\n{}", every(profile).text()));
    text.push_str(&format!("\n{}\n", papers(profile)));
    text
}

/// Returns the lines of the specification, with the sources of the rates.
fn specification(profile: &DeviceProfileReport) -> Vec<String> {
    let spec = &profile.device;
    let mut lines = vec![
        format!(
            "{}: {}, {} multiprocessors at {:.0} MHz ({})",
            profile.name, spec.name, spec.multiprocessors, spec.clock_mhz, spec.source
        ),
        format!(
            "memory {:.0} GB at {:.0} GB/s ({}); L2 {:.0} MB, of which {:.0} MB hold reused data, at {:.0} GB/s",
            spec.memory.bytes as f64 / 1e9,
            spec.memory.rate_gb_s,
            spec.memory.source,
            spec.l2.bytes as f64 / 1e6,
            spec.l2.effective_bytes as f64 / 1e6,
            spec.l2.rate_gb_s,
        ),
        format!(
            "matrix products, TFLOP/s: fp32 {:.1}, TF32 {:.0}, bf16 {:.0}, fp16 {:.0} ({})",
            spec.peak.f32_tflop_s,
            spec.peak.tf32_tflop_s,
            spec.peak.bf16_tflop_s,
            spec.peak.f16_tflop_s,
            spec.peak.source
        ),
        format!("shortest kernel {:.2} us", spec.launch.floor_us),
    ];
    lines.extend(profile.sweep.iter().map(|(key, value)| format!("{key}: {value}")));
    lines
}

/// Returns the table of the model in use for each family.
fn in_use(profile: &DeviceProfileReport) -> Columns {
    let names = ["~family", ">rows", "model", ">GMAE", ">mean", ">p90", ">inside", ">x/÷"];
    let mut columns = Columns::new(&names).tight();
    for row in &profile.families {
        columns.row([
            row.family.clone(),
            row.rows.to_string(),
            row.model.to_owned(),
            percent(row.gmae),
            percent(row.mean),
            percent(row.p90),
            percent(row.inside),
            factor(row.half_width.exp()),
        ]);
    }
    columns
}

/// Returns the table of all models of each family; a star marks the one in use.
fn every(profile: &DeviceProfileReport) -> Columns {
    let models: BTreeSet<&str> = profile.families.iter().flat_map(|row| row.scores.keys().copied()).collect();
    let heads: Vec<String> = models.iter().map(|model| format!(">{model}")).collect();
    let mut names = vec!["~family"];
    names.extend(heads.iter().map(String::as_str));
    let mut columns = Columns::new(&names);
    for row in &profile.families {
        let score = |model: &&str| match row.scores.get(*model) {
            None => "-".to_owned(),
            Some([gmae, mean]) => {
                let star = if row.model == *model { "*" } else { "" };
                format!("{star}{:.1} / {:.1}", 100.0 * gmae, 100.0 * mean)
            }
        };
        let mut cells = vec![row.family.clone()];
        cells.extend(models.iter().map(score));
        columns.row(cells);
    }
    columns
}

/// Returns the meaning of `paper` for each family.
fn papers(profile: &DeviceProfileReport) -> String {
    let mut names: BTreeMap<&'static str, Vec<&str>> = BTreeMap::new();
    for row in profile.families.iter().filter(|row| row.scores.contains_key("paper")) {
        names.entry(row.paper).or_default().push(&row.family);
    }
    let each: Vec<String> = names.iter().map(|(what, of)| format!("{what} ({})", of.join(", "))).collect();
    wrapped(&format!("paper is: {}", each.join("; ")), prose(), 2)
}
