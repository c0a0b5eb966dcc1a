//! Devices and the prices of their kernels.

use steptime_answers::{DeviceEntry, KernelsReport, TableScoreEntry};
use steptime_predict::pricing::tables::TableRow;

use super::Table;

/// Returns the column names of [`kernels`].
pub fn kernels_names() -> Table {
    let names = ["query", "op", "family", "time_us", "low_us", "high_us", "source", "extrapolated", "error"];
    Table::new(&names)
}

/// Returns the kernels of the query on a line of the input.
pub fn kernels(line: usize, answer: &KernelsReport) -> Table {
    let mut table = Table::without_names();
    if let Some(error) = &answer.error {
        table.row((line, ["", "", "", "", "", "", ""], error));
    }
    for row in &answer.kernels {
        let [low, high] = row.interval_us;
        table.row((line, &row.op, row.family, row.time_us, low, high, row.source, row.extrapolated, ""));
    }
    table
}

/// Rows of tables, predicted and measured.
pub fn table_rows(rows: &[TableRow]) -> Table {
    let names = [
        "device",
        "kind",
        "family",
        "op",
        "dims",
        "measured_us",
        "predicted_us",
        "low_us",
        "high_us",
        "source",
    ];
    let mut table = Table::new(&names);
    for row in rows {
        let what = (&row.device, &row.group, row.family, &row.op, &row.dims);
        table.row((what, row.measured_us, row.predicted_us, row.interval_us, row.source));
    }
    table
}

/// Scores of tables.
pub fn table_scores(answer: &[TableScoreEntry]) -> Table {
    let names =
        ["device", "kind", "rows", "gmae", "mean", "p90", "total", "inside", "half_width", "roofline"];
    let mut table = Table::new(&names);
    for row in answer {
        let errors = (row.gmae, row.mean, row.p90, row.total, row.inside, row.half_width, row.roofline);
        table.row((&row.device, &row.kind, row.rows, errors));
    }
    table
}

/// Device profiles.
pub fn devices(answer: &[DeviceEntry]) -> Table {
    let names = [
        "name",
        "device",
        "architecture",
        "memory_gb",
        "memory_gb_s",
        "f32_tflop_s",
        "bf16_tflop_s",
        "fitted_families",
    ];
    let mut table = Table::new(&names);
    for row in answer {
        let rates = (row.memory_gb, row.memory_gb_s, row.f32_tflop_s, row.bf16_tflop_s);
        table.row((&row.name, &row.device, &row.architecture, rates, row.families));
    }
    table
}
