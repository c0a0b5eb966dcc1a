//! What a changed step would take, the step and its base prediction already there.

use std::cell::Cell;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use steptime::Change;
use steptime::rewrite::{CudaGraph, FuseEmbeddingBags, ResizeBatch, Rule, Tf32};

fn what_if(criterion: &mut Criterion) {
    for name in ["dlrm_default_2048", "resnet50_32"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name);
        let step = match steptime::open(&folder) {
            Ok(step) => step,
            Err(error) => {
                eprintln!("skipped {name}: {error}");
                continue;
            }
        };
        let question = step.predict();
        let asked = match question.what_ifs() {
            Ok(asked) => asked,
            Err(error) => {
                eprintln!("skipped {name}: {error}");
                continue;
            }
        };
        let on = |rule: &dyn Rule| {
            asked.changed(&Change { rules: &[rule], host_times: None }).map(|answer| answer.after.step)
        };
        let ops = step.graph.ops.len();
        // Each batch is another: what it launches was not priced before.
        let batch = Cell::new(0);
        criterion.bench_function(&format!("another batch of {name}, {ops} ops"), |bencher| {
            bencher.iter(|| {
                batch.set(batch.get() % 100_000 + 1);
                on(&ResizeBatch::to(batch.get()))
            });
        });
        let changes: [(&str, &dyn Rule); 3] =
            [("bags", &FuseEmbeddingBags), ("tf32", &Tf32), ("graph", &CudaGraph)];
        for (what, rule) in changes.into_iter().filter(|(_, rule)| on(*rule).is_ok()) {
            criterion.bench_function(&format!("{what} of {name}, {ops} ops"), |bencher| {
                bencher.iter(|| on(rule));
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = what_if
}
criterion_main!(benches);
