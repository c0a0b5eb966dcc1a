//! Simulation of one DLRM step from a loaded, priced graph.

use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use steptime_cost::{Coupling, Demand, Demands, HostCosts, PricedGraph, ProfilerCost};
use steptime_graph::{
    ActivityId, CollectiveKind, Group, Job, Member, Options, Rendezvous, RendezvousId, StepGraph, StreamId,
    TiVec,
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
        let host = HostCosts::from_own_samples(&graph, &ProfilerCost::PROFILED, &Coupling::default());
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

/// Ranks of a job: copies of one recorded step, with hosts that differ by up to a tenth, meeting in five of its kernels. Of 8,192
/// ranks 8 or 64 represent those with the same behaviour; their collectives run on a separate stream and take room from the kernels.
fn world(criterion: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/dlrm_default_2048");
    let trace = match steptime_trace::read_kineto_file(&folder.join("kineto.json.gz")) {
        Ok(trace) => trace,
        Err(error) => return eprintln!("skipped a world: {error}"),
    };
    let Ok(graph) = StepGraph::build(&trace, &Options::default()) else { return };
    let host = HostCosts::from_own_samples(&graph, &ProfilerCost::PROFILED, &Coupling::default());
    let one = PricedGraph::measured(&graph, host);
    let every = graph.activities.len() / 5;
    let apart = on_a_stream_of_their_own(&graph, every);
    let asking = PricedGraph { graph: &apart, demands: Some(demands(&apart)), ..one.clone() };
    for (count, one, name) in [
        (2usize, &one, "2 ranks"),
        (8, &asking, "8,192 ranks in 8 classes"),
        (64, &asking, "8,192 ranks in 64 classes"),
        (1024, &one, "1,024 ranks"),
    ] {
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
        criterion.bench_function(&format!("steady state of {name}"), |bencher| {
            bencher.iter(|| WorldTimeline::simulate(&ranks, Meetings { job: &job, moving: &moving }));
        });
    }
}

/// The step with every `every`-th kernel on one more stream.
fn on_a_stream_of_their_own(graph: &StepGraph, every: usize) -> StepGraph {
    let mut graph = graph.clone();
    let stream = graph.streams.push_and_get_key(graph.streams[StreamId::from(0usize)]);
    for nth in 0..5 {
        graph.activities[ActivityId::from(nth * every)].stream = stream;
    }
    graph
}

/// A block on each multiprocessor for every kernel.
fn demands(graph: &StepGraph) -> Demands {
    let demand = Demand { blocks: 132.0, warps: 16.0, block: [0.1, 0.3, 0.6, 0.4], memory: 0.0, busy: 1.0 };
    Demands { multiprocessors: 132, nodes: false, of: vec![Some(demand); graph.activities.len()].into() }
}

criterion_group!(benches, simulate, world);
criterion_main!(benches);
