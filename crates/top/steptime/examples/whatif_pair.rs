//! Scratch: a changed step against a recording of that change: names, shapes, host gaps by pair of marks.
use std::collections::BTreeMap;

use steptime::graph::{MarkId, MarkKind, StepGraph};
use steptime::rewrite::{FuseEmbeddingBags, Rule};
use steptime::sim::Timeline;
use steptime::{Choice, Step, trace};

fn label(graph: &StepGraph, mark: MarkId) -> String {
    match graph.marks[mark].kind {
        MarkKind::OpBegin(op) => format!("<{}", graph.op_name(op)),
        MarkKind::OpEnd(op) => format!("{}>", graph.op_name(op)),
        MarkKind::CallBegin(call) => format!("<{}", graph.names.get(graph.calls[call].api)),
        MarkKind::CallEnd(call) => format!("{}>", graph.names.get(graph.calls[call].api)),
    }
}

/// Time and count of gaps by the two marks around them.
fn gaps(
    graph: &StepGraph,
    times: &Timeline,
    new: impl Fn(MarkId) -> bool,
) -> BTreeMap<String, (f64, usize, usize)> {
    let mut all: BTreeMap<String, (f64, usize, usize)> = BTreeMap::new();
    for thread in graph.threads.iter() {
        let mut before = thread.first_mark;
        for mark in thread.first_mark.until(thread.end_mark).skip(1) {
            let gap = (times.marks[mark] - times.marks[before]).as_micros();
            let row = all.entry(format!("{} .. {}", label(graph, before), label(graph, mark))).or_default();
            row.0 += gap;
            row.1 += 1;
            row.2 += usize::from(new(mark));
            before = mark;
        }
    }
    all
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let open = |p: &str| Step::open_with(p.as_ref(), &Choice::default(), &trace::Options::default()).unwrap();
    let (a, b) = (open(&args[1]), open(&args[2]));
    let rule: Box<dyn Rule> = match args[3].as_str() {
        "fuse-optimizer" => {
            Box::new(steptime::rewrite::Optimizer { form: steptime::aten::optimizer::Form::Fused })
        }
        "foreach-optimizer" => {
            Box::new(steptime::rewrite::Optimizer { form: steptime::aten::optimizer::Form::Foreach })
        }
        "loop-optimizer" => {
            Box::new(steptime::rewrite::Optimizer { form: steptime::aten::optimizer::Form::Loop })
        }
        _ => Box::new(FuseEmbeddingBags),
    };
    let what = a.predict().what_if(&[&*rule]).unwrap();
    let real = b.predict().run().unwrap();
    let (ours, theirs) = (&what.step, b.arguments.editable(&b.graph));
    let names = |s: &steptime::edit::Step| -> Vec<String> {
        s.running().iter().map(|&op| s.ops[op].name.clone()).collect()
    };
    let (x, y) = (names(ours), names(&theirs));
    let same = x.iter().zip(&y).take_while(|(x, y)| x == y).count();
    println!(
        "{} ops, {} in the recording, {same} first ones the same: {:?} {:?}",
        x.len(),
        y.len(),
        x.get(same),
        y.get(same)
    );
    let mut differing = BTreeMap::new();
    for (x, y) in ours.running().into_iter().zip(theirs.running()).take(same) {
        let (Some(c), Some(d)) = (ours.call(x), theirs.call(y)) else { continue };
        let shapes = |c: &steptime::aten::OpCall| -> Vec<Vec<i64>> {
            c.inputs.iter().chain(&c.outputs).flat_map(|a| a.tensors()).map(|t| t.shape.to_vec()).collect()
        };
        if shapes(&c) != shapes(&d) {
            let text = |c| format!("{:?}", shapes(c)).chars().take(200).collect::<String>();
            let row = differing.entry(c.name.clone()).or_insert((0, text(&c), text(&d)));
            row.0 += 1;
        }
    }
    println!("shapes that differ: {differing:#?}");
    println!(
        "before {:.3} after {:.3} real {:.3} (recorded there {:?})",
        what.before.step.as_millis(),
        what.after.step.as_millis(),
        real.step.as_millis(),
        b.meta.as_ref().and_then(|m| m.step_ms)
    );
    let carried = &what.scheduled.carried;
    let one = gaps(&what.scheduled.graph, &what.after.timeline, |mark| !carried.gaps[mark]);
    let two = gaps(&b.graph, &real.timeline, |_| false);
    let mut all: Vec<&String> = one.keys().chain(two.keys()).collect();
    all.sort();
    all.dedup();
    let of =
        |map: &BTreeMap<String, (f64, usize, usize)>, key: &str| map.get(key).copied().unwrap_or_default();
    all.sort_by_key(|key| -((of(&one, key).0 - of(&two, key).0).abs() * 1000.0) as i64);
    for key in all.iter().take(40) {
        let ((x, n, new), (y, m, _)) = (of(&one, key), of(&two, key));
        println!("{:>8.1} us x{n} ({new} new) | {:>8.1} us x{m}   {key}", x, y);
    }
    let new = |map: &BTreeMap<String, (f64, usize, usize)>| {
        map.values().filter(|r| r.2 > 0).map(|r| r.0).sum::<f64>()
    };
    println!("all of pairs with new ones {:.1}", new(&one));
}
