//! Two recordings on one screen.

use serde_json::json;
use steptime_answers::{
    Difference,
    difference::{ComparedStep, KernelPair, OpPair},
};

use crate::output::name;
use crate::report::csv::Table;
use crate::report::format::{self, ms, percent};
use crate::report::sides::sides;
use crate::report::table::Columns;
use crate::report::width::{prose, shorten, width, wrapped};

/// Number of ops to show.
const OPS: usize = 12;
/// Number of kernels to show.
const KERNELS: usize = 8;
/// Smallest difference to show, milliseconds.
const LEAST: f64 = 0.0005;

/// Returns the answer as text.
pub fn text(answer: &Difference) -> String {
    let mut text = format!("{}{}", headline("a", &answer.a), headline("b", &answer.b));
    let share = percent(answer.longer.abs());
    let words = if answer.longer < 0.0 { "shorter" } else { "longer" };
    text += &format!(
        "b takes {share} {words} than a\n\n{}",
        sides(&answer.a.step, &answer.b.step, ["a", "b"]).text()
    );
    text += "\nthe largest differences, ms:\n";
    if let Some(ops) = ops(&answer.ops) {
        text += &format!("\n{}", ops.text());
    }
    if let Some(kernels) = kernels(&answer.kernels) {
        text += &format!("\n{}", kernels.text());
    }
    text
}

/// Returns the parts, ops and kernels of two steps as CSV, the largest differences first.
pub fn csv(answer: &Difference) -> Table {
    let columns = "table name nth_a=nth/0 nth_b=nth/1 count_a=count/0 count_b=count/1 host_ms_a=host_ms/0 host_ms_b=host_ms/1 \
                   device_ms_a=device_ms/0 device_ms_b=device_ms/1 critical_ms_a=critical_ms/0 critical_ms_b=critical_ms/1";
    let mut table = Table::new(columns);
    let (a, b) = (&answer.a.step, &answer.b.step);
    table.row(&json!({"table": "step", "name": "step", "critical_ms": [a.step_ms, b.step_ms]}));
    table.row(&json!({"table": "step", "name": "active", "device_ms": [a.active_ms, b.active_ms]}));
    for ((cause, was), (_, is)) in a.idle_ms.iter().zip(&b.idle_ms) {
        table.row(&json!({"table": "idle", "name": cause, "device_ms": [was, is]}));
    }
    for (what, pairs) in [("annotation", &answer.annotations), ("op", &answer.ops)] {
        for pair in pairs {
            table.row_with(&json!({"table": what}), pair);
        }
    }
    for pair in &answer.kernels {
        table.row_with(&json!({"table": "kernel"}), pair);
    }
    table
}

fn headline(letter: &str, of: &ComparedStep) -> String {
    let device = name(of.device.as_deref().unwrap_or("an unnamed device"));
    let [low, high] = of.step.interval_ms;
    let line = format!(
        "{letter}: {} on {device}, step {} ms ({} to {})",
        name(&of.title),
        ms(of.step.step_ms),
        ms(low),
        ms(high)
    );
    let doubts =
        of.doubts.iter().map(|doubt| wrapped(&format!("! {letter}: {}", doubt.text), prose(), 2) + "\n");
    format!("{}\n{}", shorten(&line, width()), doubts.collect::<String>())
}

/// Returns the table of the ops that differ most.
fn ops(pairs: &[OpPair]) -> Option<Columns> {
    let mut columns = Columns::new(&["~op", "in", ">critical a", ">b", ">device a", ">b", ">difference"]);
    let apart = |[a, b]: [f64; 2]| b - a;
    let shown = pairs
        .iter()
        .filter(|pair| apart(pair.critical_ms).abs() >= LEAST || apart(pair.device_ms).abs() >= LEAST);
    let mut any = false;
    for pair in shown.take(OPS) {
        any = true;
        let most = if apart(pair.critical_ms).abs() >= apart(pair.device_ms).abs() {
            apart(pair.critical_ms)
        } else {
            apart(pair.device_ms)
        };
        columns.row([
            which(pair),
            place(pair.nth),
            ms(pair.critical_ms[0]),
            ms(pair.critical_ms[1]),
            ms(pair.device_ms[0]),
            ms(pair.device_ms[1]),
            format!("{most:+.3}"),
        ]);
    }
    any.then_some(columns)
}

/// Returns the name of an op and, from the second on, its number.
fn which(pair: &OpPair) -> String {
    let nth = pair.nth[0].or(pair.nth[1]).unwrap_or(1);
    let short = format::op(&pair.name);
    if nth > 1 { format!("{short} #{nth}") } else { short.to_owned() }
}

fn place<T>(of: [Option<T>; 2]) -> String {
    match of {
        [Some(_), Some(_)] => "both",
        [Some(_), None] => "a",
        [None, _] => "b",
    }
    .to_owned()
}

/// Returns the table of kernels that run in only one of the two, and those that differ most.
fn kernels(pairs: &[KernelPair]) -> Option<Columns> {
    let mut columns = Columns::new(&["~kernel", "in", ">count a", ">b", ">device a", ">b", ">difference"]);
    let apart = |pair: &KernelPair| pair.device_ms[1] - pair.device_ms[0];
    let shown = pairs.iter().filter(|pair| apart(pair).abs() >= LEAST);
    let mut any = false;
    for pair in shown.take(KERNELS) {
        any = true;
        let there = pair.count.map(|count| (count > 0).then_some(()));
        columns.row([
            format::kernel(&pair.name).to_string(),
            place(there),
            pair.count[0].to_string(),
            pair.count[1].to_string(),
            ms(pair.device_ms[0]),
            ms(pair.device_ms[1]),
            format!("{:+.3}", apart(pair)),
        ]);
    }
    any.then_some(columns)
}
