//! Simulating one DLRM step from a loaded, priced graph.

use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use steptime_cost::{Coupling, HostCosts, PricedGraph, ProfilerCost};
use steptime_graph::{Options, StepGraph};
use steptime_sim::{Engine, Timeline};

fn simulate(criterion: &mut Criterion) {
    for name in ["dlrm_default_2048", "dlrm_mlperf_2048", "resnet50_32"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name);
        let trace = match steptime_trace::read_kineto_file(&folder.join("kineto.json.gz")) {
            Ok(trace) => trace,
            Err(error) => {
                eprintln!("skipped {name}: {error}");
                continue;
            }
        };
        let Ok(graph) = StepGraph::build(&trace, &Options::default()) else { continue };
        let host = HostCosts::own(&graph, &ProfilerCost::PROFILED, &Coupling::default());
        let priced = PricedGraph::measured(&graph, host);
        let mut engine = Engine::new(&graph, &priced.host);
        criterion.bench_function(&format!("one step of {name}"), |bencher| {
            bencher.iter(|| engine.step(&priced.host.gaps, &priced.durations));
        });
        criterion.bench_function(&format!("steady state of {name}"), |bencher| {
            bencher.iter(|| Timeline::simulate(&priced).period);
        });
        criterion.bench_function(&format!("graph of {name}"), |bencher| {
            bencher.iter(|| StepGraph::build(&trace, &Options::default()).map(|g| g.marks.len()));
        });
    }
}

criterion_group!(benches, simulate);
criterion_main!(benches);
