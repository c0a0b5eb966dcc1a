//! The kernels of one query as lines.

use serde_json::json;
use steptime_answers::KernelsReport;

use crate::output::name;
use crate::report::csv::Table;
use crate::report::format::us;
use crate::report::width::{prose, shorten, text_width, width, wrapped};

/// Returns the answer as text, without the last line end.
pub fn text(answer: &KernelsReport) -> String {
    // Columns of a line left for the op and its family.
    let room = width() - 47;
    let family = 14;
    let mut text = wrapped(&name(answer.error.as_deref().unwrap_or_default()), prose(), 2);
    for kernel in &answer.kernels {
        let [low, high] = kernel.interval_us.map(us);
        text.push_str(&format!(
            "{}{} {:>10} us   {:<20} {}\n",
            padded(&kernel.op, room - family),
            padded(kernel.family, family),
            us(kernel.time_us),
            format!("{low} to {high}"),
            kernel.source,
        ));
        if kernel.extrapolated {
            text.push_str("  out of the range that its model was fitted on\n");
        }
    }
    if !answer.ignored.is_empty() {
        text.push_str(&wrapped(&format!("ignored: {}", name(&answer.ignored.join(", "))), prose(), 2));
        text.push('\n');
    }
    if let Some(total) = answer.total_us {
        text.push_str(&format!("{} {:>10} us", padded("total", room), us(total)));
    }
    text
}

/// Returns the CSV of the kernels of a query on a line of the input; without a query, only its names.
pub fn csv(query: Option<(usize, &KernelsReport)>) -> Table {
    let columns =
        "query op family time_us low_us=interval_us/0 high_us=interval_us/1 source extrapolated error";
    let mut table = Table::new(columns);
    if let Some((line, answer)) = query {
        if answer.error.is_some() {
            table.row_with(&json!({"query": line}), answer);
        }
        for kernel in &answer.kernels {
            table.row_with(&json!({"query": line}), kernel);
        }
    }
    table
}

/// Pads or shortens a name to a number of columns.
fn padded(text: &str, columns: usize) -> String {
    let text = shorten(text, columns - 1);
    let blanks = columns - text_width(&text);
    text + &" ".repeat(blanks)
}
