//! Simulating one DLRM step from a loaded, priced graph.

use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use steptime_cost::{Coupling, HostCosts, PricedGraph, ProfilerCost};
use steptime_graph::{
    ActivityId, CollectiveKind, Group, Job, Member, Options, Rendezvous, RendezvousId, StepGraph, TiVec,
};
use steptime_sim::{Engine, Meetings, Timeline, WorldTimeline};
use steptime_trace::{Bytes, Nanos};

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

/// Ranks of a job: one recorded step so many times, with hosts that differ by up to a tenth, meeting in five of its kernels.
fn world(criterion: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/dlrm_default_2048");
    let trace = match steptime_trace::read_kineto_file(&folder.join("kineto.json.gz")) {
        Ok(trace) => trace,
        Err(error) => return eprintln!("skipped a world: {error}"),
    };
    let Ok(graph) = StepGraph::build(&trace, &Options::default()) else { return };
    let host = HostCosts::own(&graph, &ProfilerCost::PROFILED, &Coupling::default());
    let one = PricedGraph::measured(&graph, host);
    let every = graph.activities.len() / 5;
    for count in [2usize, 1024] {
        let slower = |rank: usize| {
            let mut priced = one.clone();
            let times = 1.0 + 0.1 * (rank * 7919 % 1000) as f64 / 1000.0;
            priced.host.gaps.iter_mut().for_each(|gap| *gap = Nanos((gap.0 as f64 * times) as i64));
            priced
        };
        let ranks: Vec<PricedGraph<'_>> = (0..count).map(slower).collect();
        let meeting = |nth: usize| Rendezvous {
            kind: CollectiveKind::AllReduce,
            group: Group::default(),
            bytes: Bytes(1 << 20),
            members: (0..count)
                .map(|rank| Member { rank, activity: ActivityId::from(nth * every) })
                .collect(),
        };
        let job = Job { rendezvous: (0..5).map(meeting).collect() };
        let moving: TiVec<RendezvousId, Nanos> = vec![Nanos(50_000); 5].into();
        criterion.bench_function(&format!("steady state of {count} ranks"), |bencher| {
            bencher.iter(|| WorldTimeline::simulate(&ranks, Meetings { job: &job, moving: &moving }));
        });
    }
}

criterion_group!(benches, simulate, world);
criterion_main!(benches);
