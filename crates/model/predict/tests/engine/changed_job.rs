//! A described job whose ranks are changed.

use std::path::Path;

use steptime_cost::Process;
use steptime_eager::Model;
use steptime_graph::names::CollectiveKind;
use steptime_predict::{Spread, Step, World};
use steptime_rewrite::{CudaGraph, DataParallel, Fbgemm, Fp16, Rule, TableHome};

const MODEL: &str = "
    model = 'dcn_v2'
    batch = 4096
    dense = 13
    bottom_mlp = [64, 32]
    cross_layers = 2
    cross_rank = 16
    top_mlp = [64, 1]
    tables = [
      { rows = 100_000, columns = 32, lookups = 4 },
      { rows = 200_000, columns = 32, lookups = 2 },
      { rows = 50, columns = 32, lookups = 3 },
    ]
    optimizer = { name = 'adagrad' }
    [parallel]
    gpus = 4";

fn spread(rules: &[&dyn Rule], copies_apart: bool) -> Spread {
    let model = Model::parse(MODEL).expect("a model");
    let step = Step::on_one_gpu(Path::new("job.toml"), &model).expect("a step");
    assert_eq!(step.batch(), Some(1024));
    assert_eq!(step.process, Process::Fresh);
    // Ranks 2 and 3 have only the last table, which is on every rank.
    let on = |rank| TableHome::Columns(vec![(rank, 32)]);
    let world = World {
        dense: DataParallel { bucket: Some(1 << 30), ..DataParallel::new(4) },
        tables: Some(vec![on(0), on(1), TableHome::Everywhere]),
        copies_apart,
        after: rules,
        ..World::new(4)
    };
    step.predict().on("h100").expect("it ships").in_world(&world).expect("a job")
}

fn bytes(of: &Spread, kind: CollectiveKind) -> Vec<u64> {
    let met = of.ranks.job.rendezvous.iter().filter(|met| met.kind == kind);
    met.map(|met| met.bytes.0).collect()
}

#[test]
fn vectors_and_gradients_are_exchanged_in_16_bits() {
    let wide = bytes(&spread(&[&Fbgemm], true), CollectiveKind::AllToAll);
    // A table's vectors for all samples, from the rank that has it, and their gradients back to it.
    assert_eq!(wide, [4096 * 32 * 4; 2]);
    let narrow = bytes(&spread(&[&Fbgemm, &Fp16], true), CollectiveKind::AllToAll);
    assert_eq!(narrow, [4096 * 32 * 2; 2]);
}

#[test]
fn copies_of_a_table_can_stay_as_they_are() {
    let [all, apart] = [false, true].map(|apart| bytes(&spread(&[], apart), CollectiveKind::AllReduce));
    let total = |all: &[u64]| all.iter().sum::<u64>();
    assert_eq!(total(&all) - total(&apart), 50 * 32 * 4);
}

#[test]
fn a_graph_of_every_rank_leaves_them_together() {
    let [eager, graph] = [vec![], vec![&CudaGraph as &dyn Rule]].map(|rules| spread(&rules, true));
    assert_eq!(bytes(&eager, CollectiveKind::AllToAll), bytes(&graph, CollectiveKind::AllToAll));
    assert!(graph.predicted.step < eager.predicted.step, "{} {}", graph.predicted.step, eager.predicted.step);
    let calls = |of: &Spread| of.ranks.steps[0].graph.calls.len();
    assert!(calls(&graph) < calls(&eager) / 2);
}
