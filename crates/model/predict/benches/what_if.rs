//! Predictions of changes to a step whose recording was already read: one by one with the unchanged side prepared, and
//! the preparation alone. `STEPTIME_BENCH_RECORDINGS` gives other recordings, separated by `:`.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use steptime_predict::{Change, Choice, Error, Step, WhatIf};
use steptime_rewrite::{self, Accumulate, Checkpoint, ResizeBatch, Rule, Streams};
use steptime_trace::Options;

const RECORDINGS: [&str; 2] = ["dlrm_default_2048", "resnet50_32"];

fn what_if(criterion: &mut Criterion) {
    let others = std::env::var_os("STEPTIME_BENCH_RECORDINGS");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    let folders: Vec<PathBuf> = match &others {
        Some(paths) => std::env::split_paths(paths).collect(),
        None => RECORDINGS.iter().map(|name| examples.join(name)).collect(),
    };
    for folder in folders {
        if let Err(error) = bench_recording(criterion, &folder) {
            eprintln!("skipped {}: {error}", folder.display());
        }
    }
}

fn bench_recording(criterion: &mut Criterion, folder: &Path) -> Result<(), Error> {
    let step = Step::open_with(folder, &Choice::default(), &Options::default())?;
    let of = format!("of {}, {} ops", step.name, step.graph.ops.len());
    let question = step.predict();
    let asked = question.what_ifs()?;
    let on = |rule: &dyn Rule| asked.changed(&Change { rules: &[rule], host_times: None });
    criterion.bench_function(&format!("unchanged side {of}"), |bencher| {
        bencher.iter(|| question.what_ifs().map(|asked| asked.before().step));
    });
    let time = |answer: Result<WhatIf, Error>| answer.map(|answer| answer.after.step);
    // Each batch is new, so that its launches were not priced before.
    let batch = Cell::new(0);
    criterion.bench_function(&format!("another batch {of}"), |bencher| {
        bencher.iter(|| {
            batch.set(batch.get() % 100_000 + 1);
            time(on(&ResizeBatch::to(batch.get())))
        });
    });
    let mut rules = steptime_rewrite::all();
    let (streams, checkpoint) = (Streams { count: 2 }, Checkpoint::default());
    rules.extend([
        Box::new(streams) as Box<dyn Rule>,
        Box::new(checkpoint),
        Box::new(Accumulate { batches: 2 }),
    ]);
    let changes = |rule: &dyn Rule| {
        on(rule).is_ok_and(|answer| answer.audits.iter().any(|audit| !audit.why.is_empty()))
    };
    for rule in rules.iter().filter(|rule| changes(&***rule)) {
        criterion.bench_function(&format!("{} {of}", rule.name()), |bencher| {
            bencher.iter(|| time(on(&**rule)));
        });
    }
    Ok(())
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = what_if
}
criterion_main!(benches);
