//! One GPU's step spread over the ranks of a job.

use std::path::{Path, PathBuf};

use steptime_graph::{CollectiveKind, Rendezvous};
use steptime_predict::{Choice, Error, RankSet, Spread, Step, World};
use steptime_rewrite::{CudaGraph, TableHome};
use steptime_trace::Options;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples")
}

fn open(path: &Path) -> Step {
    Step::open_with(path, &Choice::default(), &Options::default()).expect("a step")
}

fn spread(name: &str, world: &World<'_>) -> Result<Spread, Error> {
    open(&examples().join(name)).predict().in_world(world)
}

fn moved(ranks: &RankSet) -> Vec<(CollectiveKind, u64)> {
    let mut all: Vec<_> =
        ranks.job.rendezvous.iter().map(|met: &Rendezvous| (met.kind, met.bytes.0)).collect();
    all.sort_unstable();
    all
}

#[test]
fn one_rank_stands_for_those_that_do_the_same() {
    let job = spread("resnet50_32", &World::new(8)).expect("a job");
    assert_eq!((job.ranks.steps.len(), job.ranks.crew().world(), job.ranks.batch()), (1, 8, Some(256)));
    assert!(job.predicted.doubts.iter().all(|doubt| doubt.kind != "ranks"));
    assert!(job.changes.iter().any(|line| line.contains("161 gradients (102.2 MB) averaged over 8 ranks")));
    let [low, high] = job.predicted.interval;
    assert!(low < job.predicted.step && job.predicted.step < high);
}

#[test]
fn ranks_lie_in_as_many_nodes_as_is_said() {
    let moving = |nodes: Option<u32>| -> i64 {
        let job = spread("resnet50_32", &World { nodes, ..World::new(16) }).expect("a job");
        job.predicted.moving.iter().map(|time| time.0).sum()
    };
    assert_eq!(moving(None), moving(Some(2)), "such nodes have eight GPUs");
    assert!(moving(Some(4)) > moving(Some(2)) && moving(Some(2)) > moving(Some(1)));
    for nodes in [0, 3] {
        let error =
            spread("resnet50_32", &World { nodes: Some(nodes), ..World::new(16) }).expect_err("uneven");
        assert!(error.to_string().contains("16 ranks cannot be divided evenly among"), "{error}");
    }
}

/// Ranks with different tables are simulated separately.
#[test]
fn tables_lie_in_turn_where_their_gradients_are_sparse() {
    let job = spread("dlrm_default_2048", &World { batch: Some(512), ..World::new(4) }).expect("a job");
    assert_eq!((job.ranks.steps.len(), job.ranks.batch()), (4, Some(2048)));
    let sizes: Vec<u64> = moved(&job.ranks).iter().map(|(_, bytes)| *bytes).collect();
    assert!(sizes.contains(&(2048 * 2 * 64 * 4)));
    let on_one = vec![TableHome::Columns(vec![(0, 64)]); 8];
    let world = World { batch: Some(512), tables: Some(on_one), ..World::new(4) };
    let bad = spread("dlrm_default_2048", &world).expect("a job");
    assert_eq!(bad.ranks.alike, [1, 3]);
    assert!(bad.predicted.step > job.predicted.step, "eight tables on one rank take longer than two on each");
}

/// A single rank has no one to exchange with; with more ranks, collectives take longer.
#[test]
fn more_ranks_take_longer() {
    let steps: Vec<_> = [1, 2, 8]
        .map(|ranks| spread("resnet50_32", &World::new(ranks)).expect("a job").predicted.moving)
        .into();
    let all = |at: usize| steps[at].iter().map(|time| time.0).sum::<i64>();
    assert_eq!(all(0), 0);
    assert!(0 < all(1) && all(1) < all(2));
}

#[test]
fn rules_go_with_it() {
    let rules: [&dyn steptime_rewrite::Rule; 1] = [&CudaGraph];
    let plain = spread("resnet50_32", &World::new(8)).expect("a job");
    let captured = spread("resnet50_32", &World { after: &rules, ..World::new(8) }).expect("a job");
    assert!(captured.predicted.step < plain.predicted.step);
    assert_eq!(moved(&captured.ranks), moved(&plain.ranks));
}

/// The step of one GPU gives the collectives of the recorded job: the same number, kinds and sizes.
#[test]
fn the_collectives_are_those_that_were_recorded() {
    let Some(shared) = steptime_skips::shared(env!("CARGO_MANIFEST_DIR"), "traces") else { return };
    for (alone, job, ranks) in [
        ("dlrm_ddp_4096", "x2/dlrm_ddp_4096_rr_x2", 2),
        ("dlrm_ddp_4096", "x4/dlrm_ddp_4096_rr_x4", 4),
        ("dlrm_default_2048", "x4/dlrm_default_2048_rr_x4", 4),
        ("dlrm_mlperf_2048", "x4/dlrm_mlperf_2048_greedy_x4", 4),
    ] {
        let step = open(&shared.join("h200").join(alone));
        let batch = step.batch().map(|batch| batch / u64::from(ranks));
        let made = step.predict().in_world(&World { batch, ..World::new(ranks) }).expect("a job");
        let recorded = RankSet::open(&shared.join("multi_gpu").join(job)).expect("ranks");
        assert_eq!(moved(&made.ranks), moved(&recorded), "{job}");
    }
}
