//! What bounds a step, and what would make it shorter.

use steptime::answers::Explained;

use super::format::{ms, percent};
use super::table::Columns;
use super::what_if::warned;
use super::width::{prose, shorten, width, wrapped};
use crate::output::name;

/// Places on the critical path that are named.
const PLACES: usize = 3;

/// The answer as text.
pub fn text(answer: &Explained) -> String {
    let device = name(answer.device.as_deref().unwrap_or("an unnamed device"));
    let mut text = format!("{}\n", shorten(&format!("{} on {device}", name(&answer.title)), width()));
    let places: Vec<String> =
        answer.bound.iter().take(PLACES).map(|by| format!("{} {}", by.place, percent(by.share))).collect();
    let head = format!(
        "step {} ms, device active {} ms; critical path: {}",
        ms(answer.before.step_ms),
        ms(answer.before.active_ms),
        places.join(", ")
    );
    text += &format!("{}\n", wrapped(&head, prose(), 2));
    for doubt in &answer.doubts {
        text += &format!("{}\n", wrapped(&format!("! {}", doubt.text), prose(), 2));
    }
    let mut columns = Columns::new(&["change", ">saves ms", ">step ms", ">90 % interval"]);
    for found in &answer.suggestions {
        let [low, high] = found.after.interval_ms;
        columns.row([
            found.name.to_owned(),
            format!("{:+.3}", found.saves_ms),
            ms(found.after.step_ms),
            format!("{low:.2}-{high:.2}"),
        ]);
    }
    if let Some(all) = &answer.together {
        let [low, high] = all.after.interval_ms;
        columns.row([
            all.names.join(" + "),
            format!("{:+.3}", all.saves_ms),
            ms(all.after.step_ms),
            format!("{low:.2}-{high:.2}"),
        ]);
    }
    text += &format!("\n{}\n", columns.text());
    for found in &answer.suggestions {
        let line = format!(
            "{}: {}. Effort: {}. Risk: {}.",
            found.name,
            found.what.join("; "),
            found.effort,
            found.risk
        );
        text += &format!("{}\n", wrapped(&line, prose(), 2));
    }
    for not in &answer.not_applicable {
        text +=
            &format!("{}\n", wrapped(&format!("{} does not apply: {}", not.name, not.reason), prose(), 2));
    }
    text += &warned(&answer.warnings);
    text
}
