//! What came of a grid of changes.

pub mod plot;

use steptime::answers::Gridded;

use super::format::ms;
use super::table::Columns;
use super::width::{prose, wrapped};
use crate::output::name;

/// The answer as text.
pub fn text(answer: &Gridded) -> String {
    let mut head = format!("{}: {} points in {}", name(&answer.title), answer.points, name(&answer.output));
    if answer.resumed > 0 {
        head += &format!(", {} of them from before", answer.resumed);
    }
    if answer.not_applicable > 0 {
        head += &format!("; to {} of them their change does not apply", answer.not_applicable);
    }
    let mut columns = Columns::new(&[">point", "~change", ">step ms", ">90 % interval", ">samples/s"]);
    for best in &answer.best {
        let keys: Vec<String> = best.keys.iter().map(|(key, value)| format!("{key} {value}")).collect();
        let row = &best.row;
        columns.row([
            row.point.to_string(),
            keys.join(", "),
            row.step_ms.map_or_else(String::new, ms),
            row.interval_ms.map_or_else(String::new, |[low, high]| format!("{low:.2}-{high:.2}")),
            row.samples_per_s.map_or_else(String::new, |rate| format!("{rate:.0}")),
        ]);
    }
    format!("{}\n\n{}", wrapped(&head, prose(), 2), columns.text())
}
