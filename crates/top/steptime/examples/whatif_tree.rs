//! Scratch: the tree of ops under names that contain a text.
use steptime::{Choice, Step, trace};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let step = Step::open_with(args[1].as_ref(), &Choice::default(), &trace::Options::default()).unwrap();
    let e = step.arguments.editable(&step.graph);
    let mut left: usize = args.get(3).map_or(80, |n| n.parse().unwrap());
    for (t, roots) in e.threads.iter_enumerated() {
        for &r in roots {
            for op in e.subtree(r) {
                let mut depth = 0;
                let mut hit = false;
                let mut at = Some(op);
                while let Some(o) = at {
                    hit |= e.ops[o].name.contains(&args[2]);
                    at = e.ops[o].parent;
                    depth += 1;
                }
                if !hit || left == 0 {
                    continue;
                }
                left -= 1;
                let c = e.call(op);
                let args = c
                    .map(|c| {
                        let f = |a: &steptime::aten::Arg| match a {
                            steptime::aten::Arg::Tensor(t) => {
                                format!("{:?}{:?}", t.shape.as_slice(), t.device).replace("Cuda", "")
                            }
                            steptime::aten::Arg::Tensors(l) => {
                                format!("<{}x{:?}>", l.len(), l.first().map(|t| t.shape.to_vec()))
                            }
                            o => format!("{o:?}"),
                        };
                        format!(
                            "({}) -> {}",
                            c.inputs.iter().map(f).collect::<Vec<_>>().join(", "),
                            c.outputs.iter().map(f).collect::<Vec<_>>().join(", ")
                        )
                    })
                    .unwrap_or_default();
                println!(
                    "{}t{} {}{}",
                    "  ".repeat(depth),
                    usize::from(t),
                    e.ops[op].name,
                    args.chars().take(170).collect::<String>()
                );
            }
        }
    }
}
