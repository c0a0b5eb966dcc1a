//! Two sides of a comparison, in one table.

use steptime_answers::what_if::Side;
use steptime_sim::IdleCause;

use super::format::ms;
use super::table::Columns;

/// Returns the table of both sides and their differences.
pub fn sides(before: &Side, after: &Side, names: [&str; 2]) -> Columns {
    let mut columns =
        Columns::new(&["~ms", &format!(">{}", names[0]), &format!(">{}", names[1]), ">difference"]);
    let mut row = |what: String, was: f64, is: f64| {
        if was != 0.0 || is != 0.0 {
            columns.row([what, ms(was), ms(is), format!("{:+.3}", is - was)]);
        }
    };
    row("step".into(), before.step_ms, after.step_ms);
    row("device active".into(), before.active_ms, after.active_ms);
    for ((cause, was), (_, is)) in before.idle_ms.iter().zip(&after.idle_ms) {
        row(format!("device idle: {}", cause_name(cause)), *was, *is);
    }
    columns
}

/// Returns the name of a cause of idle time, by its key in JSON.
pub fn cause_name(key: &'static str) -> &'static str {
    IdleCause::from_key(key).map_or(key, IdleCause::name)
}
