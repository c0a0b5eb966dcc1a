//! Scratch: shapes of a resized step against a recording of that batch.
use steptime::rewrite::{Facts, ResizeBatch, apply};
use steptime::{Choice, Step, graph, trace};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let open = |p: &str| Step::open_with(p.as_ref(), &Choice::default(), &trace::Options::default()).unwrap();
    let (a, b) = (open(&args[1]), open(&args[2]));
    let mut one = a.arguments.editable(&a.graph);
    let two = b.arguments.editable(&b.graph);
    let facts = Facts { ops: &a.ops, batch: a.batch() };
    if let Err(e) = apply(&mut one, &[&ResizeBatch::to(b.batch().unwrap())], &facts) {
        println!("{e}");
    }
    let _ = graph::Phase::ALL;
    let (ra, rb) = (one.running(), two.running());
    println!("{} {}", ra.len(), rb.len());
    let mut seen = std::collections::BTreeMap::new();
    for (x, y) in ra.iter().zip(&rb) {
        if one.ops[*x].name != two.ops[*y].name {
            println!("differ at {} {}", one.ops[*x].name, two.ops[*y].name);
            break;
        }
        let (Some(c), Some(d)) = (one.call(*x), two.call(*y)) else { continue };
        let s = |c: &steptime::aten::OpCall| {
            c.inputs
                .iter()
                .chain(&c.outputs)
                .flat_map(|a| {
                    a.tensors().iter().map(|t| (t.shape.to_vec(), t.strides.to_vec())).collect::<Vec<_>>()
                })
                .collect::<Vec<_>>()
        };
        if s(&c) != s(&d) {
            let e = seen.entry(c.name.clone()).or_insert((0, String::new()));
            e.0 += 1;
            if e.1.is_empty() {
                let p = |v: Vec<(Vec<i64>, Vec<i64>)>| format!("{v:?}").chars().take(300).collect::<String>();
                e.1 = format!("\n   ours {}\n   real {}", p(s(&c)), p(s(&d)));
            }
        }
    }
    for (k, v) in seen {
        println!("{k} x{}{}", v.0, v.1);
    }
}
