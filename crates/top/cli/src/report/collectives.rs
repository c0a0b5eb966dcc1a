//! Collectives as a table.

use steptime_answers::CollectivePricesReport;

use super::csv::Table;
use super::format::{grouped, percent};
use super::table::Columns;
use super::width::{prose, wrapped};

/// Returns the answer as text.
pub fn text(answer: &CollectivePricesReport) -> String {
    let scaled = if answer.borrowed { ", curves of another GPU scaled to its link" } else { "" };
    let head = format!(
        "{}: {} a node, {}, {} GB/s a GPU in one direction; network {} GB/s a GPU{scaled}",
        answer.device, answer.gpus_per_node, answer.link, answer.link_gbs, answer.network_gbs
    );
    let mut text = wrapped(&head, prose(), 2) + "\n\n";
    if answer.against.is_empty() {
        let interval = format!(">{:.0} % interval", 100.0 * answer.interval_level);
        let mut columns =
            Columns::new(&["collective", ">GPUs", ">bytes", ">us", &interval, ">GB/s", "?>in a step, us"]);
        for row in &answer.rows {
            let [low, high] = row.interval_us;
            columns.row([
                row.op.to_owned(),
                row.ranks.to_string(),
                grouped(row.bytes),
                us(row.time_us),
                format!("{}-{}", us(low), us(high)),
                format!("{:.0}", row.bus_gbs),
                us(row.in_step_us),
            ]);
        }
        text.push_str(&columns.text());
        return text;
    }
    let mut columns =
        Columns::new(&["collective", ">rows", ">launch us", ">GMAE", ">mean", ">90th", ">worst", ">inside"]);
    for score in &answer.against {
        let errors = &score.errors;
        columns.row([
            score.op.to_owned(),
            score.rows.to_string(),
            us(score.launch_us),
            percent(errors.gmae),
            percent(errors.mean),
            percent(errors.p90),
            percent(errors.max),
            percent(score.inside),
        ]);
    }
    text.push_str(&columns.text());
    text.push_str(&wrapped(
        "launch: time in the sweep besides the collective, found from small sizes; inside: share of rows in the interval",
        prose(),
        2,
    ));
    text.push('\n');
    text
}

/// Returns the answer as CSV.
pub fn csv(answer: &CollectivePricesReport) -> Table {
    let columns =
        "op ranks bytes time_us low_us=interval_us/0 high_us=interval_us/1 bus_gbs in_step_us measured_us";
    Table::from_rows(columns, &answer.rows)
}

fn us(time: f64) -> String {
    if time < 100.0 { format!("{time:.1}") } else { grouped(time.round() as u64) }
}
