//! Collectives as a table.

use steptime_answers::{
    CollectivePricesReport,
    collectives::{PricedCollective, SweepScore},
};

use crate::report::csv::Table;
use crate::report::format::{grouped, percent};
use crate::report::table::Columns;
use crate::report::width::{prose, wrapped};

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
        let columns = Columns::from_rows(
            &[
                ("collective", |row: &PricedCollective| row.op.to_owned()),
                (">GPUs", |row| row.ranks.to_string()),
                (">bytes", |row| grouped(row.bytes)),
                (">us", |row| us(row.time_us)),
                (&interval, |row| row.interval_us.map(us).join("-")),
                (">GB/s", |row| format!("{:.0}", row.bus_gbs)),
                ("?>in a step, us", |row| us(row.in_step_us)),
            ],
            &answer.rows,
        );
        text.push_str(&columns.text());
        return text;
    }
    let columns = Columns::from_rows(
        &[
            ("collective", |score: &SweepScore| score.op.to_owned()),
            (">rows", |score| score.rows.to_string()),
            (">launch us", |score| us(score.launch_us)),
            (">GMAE", |score| percent(score.errors.gmae)),
            (">mean", |score| percent(score.errors.mean)),
            (">90th", |score| percent(score.errors.p90)),
            (">worst", |score| percent(score.errors.max)),
            (">inside", |score| percent(score.inside)),
        ],
        &answer.against,
    );
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
