//! Replaces every op by itself, derived from its arguments, and compares the step with the recorded one.
//!
//!     cargo run --release -p steptime-predict --example derived -- RECORDING.. [--ops]
//!
//! For each recording: the calls and activities of both, the ops with different calls, and the difference of device time and
//! step in percent, in two comparisons. In the first, the recording keeps its measured times. In the second, both are priced by the
//! models of the GPU and the profile of the host, so that they differ where the derived calls do. `--ops` lists ops.

use std::collections::BTreeMap;
use std::path::Path;

use steptime_graph::{OpId, StepGraph};
use steptime_predict::{Choice, Error, Step, WhatIf};
use steptime_rewrite::Derive;

use steptime_trace::Options;

fn main() -> Result<(), Error> {
    let (flags, paths): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    println!(
        "recording                  calls        activities   other   measured: active   step  modelled: active   step"
    );
    for path in paths {
        if let Err(error) = show(Path::new(&path), flags.iter().any(|flag| flag == "--ops")) {
            println!("{path}: {error}");
        }
    }
    Ok(())
}

fn show(path: &Path, with_ops: bool) -> Result<(), Error> {
    let step = Step::open_with(path, &Choice::default(), &Options::default())?;
    let measured = step.predict().what_if(&[&Derive])?;
    let modelled = step.predict().on("h200")?.what_if(&[&Derive])?;
    let (was, is) = (&step.graph, &measured.scheduled.graph);
    let other = others(&step, &measured);
    let ops: usize = other.values().sum();
    let percent = |answer: &WhatIf| {
        let [before, after] = [&answer.before, &answer.after];
        let of = |before: i64, after: i64| (after as f64 / before as f64 - 1.0) * 100.0;
        [of(before.active.0, after.active.0), of(before.step.0, after.step.0)]
    };
    let ([active, time], [device, whole]) = (percent(&measured), percent(&modelled));
    println!(
        "{:24} {:5} {:5}  {:5} {:5}   {ops:5}            {active:+6.1} {time:+6.1}            {device:+6.1} {whole:+6.1}",
        step.name,
        was.calls.len(),
        is.calls.len(),
        was.activities.len(),
        is.activities.len(),
    );
    for (what, count) in other.iter().filter(|_| with_ops) {
        println!("    {count:4} {what}");
    }
    for (name, answer) in [("measured", &measured), ("modelled", &modelled)].into_iter().filter(|_| with_ops)
    {
        let [before, after] = [&answer.before, &answer.after];
        for ((cause, was), (_, is)) in before.idle_by_cause.iter().zip(after.idle_by_cause.iter()) {
            println!("    {name}, idle by {}: {was} and now {is}", cause.name());
        }
    }
    for (name, graph) in [("recorded", was), ("derived", is)].into_iter().filter(|_| with_ops) {
        let hand_offs = graph.marks.keys().filter(|&mark| graph.is_hand_off(mark)).count();
        let mut blocking = BTreeMap::<String, usize>::new();
        for call in graph.calls.iter() {
            *blocking.entry(format!("{} {:?}", graph.names.get(call.api), call.blocking)).or_default() += 1;
        }
        blocking.retain(|k, _| !k.ends_with("Never"));
        println!(
            "    {name}: {hand_offs} hand-offs, {} waits, {} streams, {blocking:?}",
            graph.waits.len(),
            graph.streams.len()
        );
    }
    Ok(())
}

/// Ops whose calls differ from the recorded ones, with their number.
fn others(step: &Step, answer: &WhatIf) -> BTreeMap<String, usize> {
    let (was, is) = (calls(&step.graph), calls(&answer.scheduled.graph));
    let now: BTreeMap<steptime_step::OpId, OpId> =
        answer.scheduled.ops.iter_enumerated().map(|(at, &op)| (op, at)).collect();
    let mut others = BTreeMap::new();
    for op in step.graph.ops.keys() {
        let none = Vec::new();
        let before = was.get(&op).unwrap_or(&none);
        let after =
            now.get(&steptime_step::OpId::from_recorded(op)).and_then(|op| is.get(op)).unwrap_or(&none);
        if before != after {
            let what = format!("{}: {before:?} and now {after:?}", step.graph.op_name(op));
            *others.entry(what).or_default() += 1;
        }
    }
    others
}

/// Calls that each op makes itself.
fn calls(graph: &StepGraph) -> BTreeMap<OpId, Vec<&str>> {
    let mut calls: BTreeMap<OpId, Vec<&str>> = BTreeMap::new();
    for call in &graph.calls {
        if let Some(op) = call.op {
            calls.entry(op).or_default().push(graph.names.get(call.api));
        }
    }
    calls
}
