//! The placement of tables, with a bar of each GPU's load.

use steptime_answers::{
    PlacementReport,
    shard::{CachedTable, GpuContents},
};

use crate::report::csv::Table;
use crate::report::format::{counted, grouped, ms, percent};
use crate::report::job;
use crate::report::table::Columns;
use crate::report::width::{prose, shorten, wrapped};

/// Number of GPUs and of tables to show; of more the busiest are shown.
const ROWS: usize = 16;
/// Width of the longest bar, in columns.
const BAR: usize = 20;

/// Returns the answer as text.
pub fn text(answer: &PlacementReport) -> String {
    let mut text = job::headline(&answer.predicted);
    if let Some(found) = found(answer) {
        text.push_str(&found);
    }
    text.push('\n');
    text.push_str(&gpus(answer).text());
    if answer.gpus.len() > ROWS {
        text.push_str(&format!("... and {} more, in --json\n", answer.gpus.len() - ROWS));
    }
    let more = cut(answer) + &in_hosts(answer);
    if !more.is_empty() {
        text.push('\n');
        text.push_str(&more);
    }
    text
}

/// Returns the placements of tables as CSV.
pub fn csv(answer: &PlacementReport) -> Table {
    let columns = "table rows columns lookups cut gpus cached_rows=cached/rows misses=cached/misses";
    Table::from_rows(columns, &answer.tables)
}

/// Returns the method that found the plan, and its expected regret.
fn found(answer: &PlacementReport) -> Option<String> {
    let by = answer.found_by?;
    let others: Vec<String> =
        answer.others.iter().map(|other| format!("{} {} ms", other.found_by, ms(other.step_ms))).collect();
    let others = if others.is_empty() { "no other".to_owned() } else { others.join(", ") };
    let changed = match answer.changes {
        0 => String::new(),
        changes => format!(", then {} that simulations found", counted(changes, "change")),
    };
    let near = answer.simulated.saturating_sub(1 + answer.others.len());
    let near = if near > 0 { format!(", and {near} that differ by one change") } else { String::new() };
    let bound = match answer.bound_ms {
        Some(bound) => format!("; lower bound of all plans, from loads that add up: {} ms", ms(bound)),
        None => String::new(),
    };
    let how = format!("plan by {by}{changed}; others simulated: {others}{near}{bound}");
    let regret = answer.regret.map_or_else(String::new, |regret| {
        let words = format!(
            "expected regret at most {}: the mean saving of a plan at that bound, {} below, with an error of {} in differences of plans ({})",
            percent(regret.expected),
            percent(regret.above_bound),
            percent(regret.spread),
            regret.spread_from
        );
        wrapped(&words, prose(), 2) + "\n"
    });
    Some(format!("{}\n{regret}", wrapped(&how, prose(), 2)))
}

fn gpus(answer: &PlacementReport) -> Columns {
    let longest = answer.gpus.iter().map(|gpu| gpu.alone_ms).fold(0.0, f64::max);
    let mut columns =
        Columns::new(&[">GPU", "alone", ">ms", ">compute ms", ">wait ms", ">peak GB", "~tables"]);
    let mut shown: Vec<&GpuContents> = answer.gpus.iter().collect();
    shown.sort_by(|a, b| b.alone_ms.total_cmp(&a.alone_ms));
    shown.truncate(ROWS);
    shown.sort_by_key(|gpu| gpu.gpu);
    for gpu in shown {
        let like = if gpu.alike > 1 {
            format!("{} (and {} alike)", gpu.gpu, gpu.alike - 1)
        } else {
            gpu.gpu.to_string()
        };
        let tables: Vec<String> = gpu.tables.iter().map(usize::to_string).collect();
        let tables = if tables.is_empty() { "none".to_owned() } else { tables.join(" ") };
        columns.row([
            like,
            bar(gpu.alone_ms, longest),
            ms(gpu.alone_ms),
            ms(gpu.computes_ms),
            ms(gpu.waits_ms),
            gpu.peak_mb.map_or_else(|| "-".to_owned(), |mb| format!("{:.1}", mb / 1e3)),
            shorten(&tables, 40),
        ]);
    }
    columns
}

fn bar(value: f64, longest: f64) -> String {
    let full = if longest > 0.0 { (value / longest * BAR as f64).round() as usize } else { 0 };
    "#".repeat(full.min(BAR))
}

/// Returns the tables that are not whole on one GPU.
fn cut(answer: &PlacementReport) -> String {
    let of = |cut: &str| -> Vec<String> {
        answer.tables.iter().filter(|table| table.cut == cut).map(|table| table.table.to_string()).collect()
    };
    let kinds = [
        ("columns", "cut into columns"),
        ("rows", "cut into rows over all GPUs"),
        ("grid", "cut into rows over some GPUs"),
        ("copies", "copied to all GPUs"),
    ];
    let mut text = String::new();
    for (cut, words) in kinds {
        let tables = of(cut);
        if !tables.is_empty() {
            let line = format!("{} {words}: {}", counted(tables.len(), "table"), tables.join(" "));
            text.push_str(&(wrapped(&line, prose(), 2) + "\n"));
        }
    }
    text
}

/// Returns the tables in host memory, grouped by equal caches, and their memory.
fn in_hosts(answer: &PlacementReport) -> String {
    let mut alike: Vec<(CachedTable, Vec<String>)> = Vec::new();
    for (table, cached) in answer.tables.iter().filter_map(|table| Some((table.table, table.cached?))) {
        match alike.iter_mut().find(|(own, _)| *own == cached) {
            Some((_, tables)) => tables.push(table.to_string()),
            None => alike.push((cached, vec![table.to_string()])),
        }
    }
    if alike.is_empty() {
        return String::new();
    }
    let count = alike.iter().map(|(_, tables)| tables.len()).sum();
    let kinds = alike.iter().map(|(cached, tables)| {
        let (rows, misses) = (cached.rows.unsigned_abs(), cached.misses.unsigned_abs());
        let each = if tables.len() > 1 { " each" } else { "" };
        format!(
            "{} ({} rows{each} on GPUs, {} missed a step)",
            tables.join(" "),
            grouped(rows),
            grouped(misses)
        )
    });
    let most = answer.hosts_mb.iter().fold(0.0, |most: f64, mb| most.max(*mb)) / 1e3;
    let of = if answer.hosts_mb.len() > 1 { "at most " } else { "" };
    let kinds: Vec<String> = kinds.collect();
    let line =
        format!("{} in host memory, {of}{most:.1} GB a node: {}", counted(count, "table"), kinds.join(", "));
    wrapped(&line, prose(), 2) + "\n"
}
