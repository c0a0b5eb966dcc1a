//! Ranks of a described job: their ops, and their exchanges.

use steptime_aten::OpSet;
use steptime_aten::derive;
use steptime_eager::{Cache, Model, Sharding, TableLayout, TableShard};
use steptime_graph::execution::ExecutionGraph;
use steptime_graph::names::{CopyDirection, HostMemory};
use steptime_graph::{CollectiveKind, Job, StepGraph};

const MODEL: &str =
    "model = 'dlrm'\nbatch = 64\ndense = 13\nbottom_mlp = [32, 16]\ntop_mlp = [400, 900, 1]\nloss = 'mse'
    tables = [{ rows = 1000, columns = 16, lookups = 4, count = 3 }, { rows = 50, columns = 16 }]";

fn model(parallel: &str) -> Model {
    Model::parse(&format!("{MODEL}\n[parallel]\n{parallel}")).expect("a model")
}

fn graph(model: &Model, rank: u32) -> StepGraph {
    let trace = model.record_rank(rank);
    derive::step_graph(&ExecutionGraph::new(&trace), &OpSet::standard()).expect("a step").graph
}

fn graphs(model: &Model) -> Vec<StepGraph> {
    (0..model.gpus()).map(|rank| graph(model, rank)).collect()
}

fn job(graphs: &[StepGraph]) -> Job {
    let ranks: Vec<(u32, &StepGraph)> = (0..).zip(graphs).collect();
    Job::from_ranks(&ranks).expect("collectives that match")
}

fn met(job: &Job) -> Vec<(CollectiveKind, u64)> {
    job.rendezvous.iter().map(|met| (met.kind, met.bytes.0)).collect()
}

#[test]
fn whole_tables_are_exchanged_and_dense_gradients_averaged_bucket_by_bucket() {
    let graphs = graphs(&model("gpus = 2"));
    let job = job(&graphs);
    // Two tables per rank: 64 samples x 32 columns; indices of 10 pairs of five features, as 64-bit integers.
    let exchanged = (CollectiveKind::AllToAll, 64 * 32 * 4);
    let top = [900, 900 * 400, 900, 400 * 26, 400].iter().sum::<u64>() + 1;
    let first = (1 + 900 + 900 + 900 * 400) * 4;
    let all = (top + 16 * 32 + 16 + 32 * 13 + 32) * 4;
    let found = met(&job);
    assert_eq!(found[0], exchanged);
    assert_eq!(found[1], (CollectiveKind::Broadcast, 2 * 10 * 8));
    // The first bucket is full from one MiB on, the second takes the rest.
    assert_eq!(found[2], (CollectiveKind::AllReduce, first));
    assert_eq!(found[3], (CollectiveKind::AllReduce, all - first));
    assert_eq!(found[4..], [exchanged]);
    assert!(job.rendezvous.iter().all(|met| met.members.len() == 2 && met.group.size == Some(2)));
}

#[test]
fn averages_run_beside_the_backward_pass_and_what_takes_them_waits() {
    let graph = graph(&model("gpus = 2"), 0);
    let beside: Vec<_> = graph
        .activities
        .iter_enumerated()
        .filter(|(_, row)| {
            row.collective.is_some_and(|at| graph.collectives[at].kind == CollectiveKind::AllReduce)
        })
        .collect();
    assert_eq!(beside.len(), 2);
    for (at, row) in beside {
        assert_ne!(row.stream, steptime_graph::StreamId(0));
        assert_eq!(graph.waits_of(at).count(), 1, "it waits for the gradients");
        let waiting: Vec<_> = graph.waits.iter().filter(|wait| wait.from == at).collect();
        let [waits] = waiting[..] else { panic!("one copy waits for it, the others follow: {waiting:?}") };
        let op = graph.calls[graph.activities[waits.to].call].op.expect("an op");
        assert_eq!(graph.op_name(op), "aten::copy_");
    }
    let exchange = graph
        .activities
        .iter()
        .find(|row| row.collective.is_some_and(|at| graph.collectives[at].kind == CollectiveKind::AllToAll));
    assert_eq!(exchange.map(|row| row.stream), Some(steptime_graph::StreamId(0)), "the script waits for it");
}

#[test]
fn a_rank_without_tables_takes_part() {
    let graphs = graphs(&model("gpus = 4\nplacement = [[0, 1], [2, 3], [], []]"));
    let found = met(&job(&graphs));
    assert_eq!(found.iter().filter(|(kind, _)| *kind == CollectiveKind::AllToAll).count(), 2);
}

#[test]
fn cut_rows_are_added_over_ranks_and_copied_tables_averaged() {
    let graphs = graphs(&model("gpus = 2\nrow_wise = [0, 1, 2]\ndata_parallel = [3]"));
    let kinds: Vec<CollectiveKind> = met(&job(&graphs)).into_iter().map(|(kind, _)| kind).collect();
    assert!(!kinds.contains(&CollectiveKind::AllToAll), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == CollectiveKind::ReduceScatter).count(), 1);
    assert_eq!(kinds.iter().filter(|kind| **kind == CollectiveKind::AllGather).count(), 1);
    let plain = met(&job(&self::graphs(&model("gpus = 2"))));
    let averaged = |all: &[(CollectiveKind, u64)]| -> u64 {
        all.iter().filter(|(kind, _)| *kind == CollectiveKind::AllReduce).map(|(_, bytes)| bytes).sum()
    };
    let copied = averaged(&met(&job(&graphs)));
    assert_eq!(copied - averaged(&plain), 50 * 16 * 4);
}

#[test]
fn columns_are_cut_evenly_and_ranks_that_do_the_same_are_told() {
    let split = model("gpus = 4\nplacement = [[0, 1], [0, 2], [0], [3]]");
    let TableLayout::Parts(parts) = &split.homes()[0] else { panic!("it has parts") };
    let sizes: Vec<(u32, [i64; 2])> = parts.iter().map(|part: &TableShard| (part.gpu, part.size)).collect();
    assert_eq!(sizes, [(0, [1000, 4]), (1, [1000, 4]), (2, [1000, 8])]);
    assert_eq!(split.alike(), [vec![0, 1], vec![2], vec![3]]);
    met(&job(&graphs(&split)));
    let turns = model("gpus = 8").alike();
    assert_eq!(turns, [vec![0, 1, 2], vec![3], vec![4, 5, 6, 7]]);
}

#[test]
fn what_cannot_be_placed_is_said() {
    let wrong = |parallel: &str| {
        Model::parse(&format!("{MODEL}\n[parallel]\n{parallel}")).expect_err("wrong").to_string()
    };
    for (parallel, said) in [
        ("gpus = 0", "`parallel.gpus` is 0"),
        ("gpus = 3", "which cannot be divided evenly among 3 GPUs"),
        ("gpus = 2\nplacement = [[0]]", "lists the tables of 1 GPUs"),
        ("gpus = 2\nplacement = [[0, 7], []]", "`parallel.placement` is 7"),
        ("gpus = 2\nplacement = [[0, 0], []]", "table 0 is placed twice"),
        ("gpus = 2\nplacement = [[0], []]\nrow_wise = [0]", "the second time in `parallel.row_wise`"),
        ("gpus = 4\nnodes = 3", "among which 4 GPUs cannot be divided evenly"),
        ("gpus = 2\ngrid = [{ table = 0, gpus = [[0, 2]] }]", "`parallel.grid` is 2"),
        ("gpus = 2\ngrid = [{ table = 0, gpus = [[]] }]", "every group of columns needs at least one GPU"),
        (
            "gpus = 2\nrow_wise = [0]\ngrid = [{ table = 0, gpus = [[0, 1]] }]",
            "the second time in `parallel.grid`",
        ),
        ("gpus = 2\ndata_paralel = [0]", "did you mean `data_parallel`"),
    ] {
        let found = wrong(parallel);
        assert!(found.contains(said), "{parallel}: {found}");
    }
    let parts = |parts: &[(u32, [i64; 2], [i64; 2])]| {
        let part = |&(gpu, offset, size): &(u32, [i64; 2], [i64; 2])| TableShard {
            gpu,
            offset,
            size,
            cache: None,
            wanted: None,
        };
        let mut homes = model("gpus = 2").homes();
        homes[0] = TableLayout::Parts(parts.iter().map(part).collect());
        model("gpus = 2").on(2, homes).expect_err("wrong").to_string()
    };
    assert!(parts(&[(2, [0, 0], [1000, 16])]).contains("is on GPU 2, but there are 2 GPUs"));
    assert!(parts(&[(0, [0, 0], [1000, 8])]).contains("its parts hold 8 of 16 columns"));
    assert!(parts(&[(0, [0, 0], [1000, 8]), (1, [0, 4], [1000, 12])]).contains("leave out or repeat"));
    assert!(
        parts(&[(0, [0, 0], [1000, 8]), (0, [0, 8], [1000, 8])]).contains("two parts of it are on one GPU")
    );
    assert!(
        parts(&[(0, [0, 0], [600, 16]), (1, [500, 0], [500, 16])])
            .contains("leave out or repeat rows from 600")
    );
    assert!(
        parts(&[(0, [0, 0], [600, 8]), (1, [0, 8], [1000, 8])]).contains("its parts hold 600 of 1000 rows")
    );
}

#[test]
fn rows_over_some_gpus_come_as_sums_that_each_rank_adds_up() {
    let rows = model("gpus = 4\ngrid = [{ table = 0, gpus = [[1, 3]] }]\nplacement = [[1], [2], [3], []]");
    let TableLayout::Parts(parts) = &rows.homes()[0] else { panic!("it has parts") };
    assert_eq!(rows.homes()[0].cutting(4), Sharding::Grid);
    let found: Vec<(u32, [i64; 2], [i64; 2])> =
        parts.iter().map(|part| (part.gpu, part.offset, part.size)).collect();
    assert_eq!(found, [(1, [0, 0], [500, 16]), (3, [500, 0], [500, 16])]);
    let graphs = graphs(&rows);
    // The largest exchange sends the sums of two tables for 64 samples to four equal ranks; its backward has the same size.
    let exchanged: Vec<u64> = met(&job(&graphs))
        .into_iter()
        .filter(|(kind, _)| *kind == CollectiveKind::AllToAll)
        .map(|(_, bytes)| bytes)
        .collect();
    assert_eq!(exchanged, [64 * 32 * 4; 2]);
    let added = |graph: &StepGraph| graph.ops.keys().filter(|&op| graph.op_name(op) == "aten::add").count();
    let plain = self::graphs(&model("gpus = 4\nplacement = [[1], [2], [3], [0]]"));
    assert_eq!(added(&graphs[0]), added(&plain[0]) + 1);
}

#[test]
fn a_grid_has_groups_of_columns_and_of_these_rows() {
    let grid = model("gpus = 4\ngrid = [{ table = 0, gpus = [[0, 1], [2, 3]] }]");
    let TableLayout::Parts(parts) = &grid.homes()[0] else { panic!("it has parts") };
    let found: Vec<[[i64; 2]; 2]> = parts.iter().map(|part| [part.offset, part.size]).collect();
    assert_eq!(found, [[[0, 0], [500, 8]], [[500, 0], [500, 8]], [[0, 8], [500, 8]], [[500, 8], [500, 8]]]);
    met(&job(&graphs(&grid)));
    // One group of all GPUs is equal to rows over all.
    let all = model("gpus = 2\ngrid = [{ table = 0, gpus = [[0, 1]] }]");
    assert_eq!(all.homes()[0].cutting(2), Sharding::Rows);
    assert_eq!(all.homes(), model("gpus = 2\nrow_wise = [0]").homes());
}

#[test]
fn behind_a_cache_rows_are_written_back_and_brought_before_they_are_looked_up() {
    let plain = model("gpus = 2");
    let cached = |rows: i64, misses: i64| {
        let mut homes = plain.homes();
        homes[0] = homes[0].clone().cached(|_| Some(Cache { rows, misses }));
        plain.on(2, homes)
    };
    let behind = cached(100, 30).expect("a model");
    let copies = |graph: &StepGraph| -> Vec<(CopyDirection, u64)> {
        let all = graph.activities.iter_enumerated();
        let copies = all.filter(|(at, _)| graph.copy_name(*at).host == HostMemory::Pinned);
        copies.map(|(at, row)| (graph.copy_name(at).direction, row.bytes.0)).collect()
    };
    let [first, second] = [0, 1].map(|rank| graph(&behind, rank));
    let bytes = 30 * 16 * 4;
    assert_eq!(copies(&first), [(CopyDirection::DeviceToHost, bytes), (CopyDirection::HostToDevice, bytes)]);
    assert_eq!((copies(&second), copies(&graph(&plain, 0))), (Vec::new(), Vec::new()));
    // The exchanges are equal, but the work of a rank differs.
    assert_eq!(met(&job(&[first, second])), met(&job(&graphs(&plain))));
    assert_ne!(behind.work(0), plain.work(0));
    assert_ne!(behind.work(0), cached(100, 20).expect("a model").work(0));
    assert_eq!(behind.work(1), plain.work(1));
    // The optimizer's states move with the rows.
    let adam = Model::parse(&format!("{MODEL}\noptimizer = {{ name = 'adam' }}\n[parallel]\ngpus = 2"));
    let adam = adam.and_then(|model| model.on(2, behind.homes())).expect("a model");
    assert_eq!(copies(&graph(&adam, 0)).len(), 6);
    assert_eq!((behind.kept_bytes(1000, 16), adam.kept_bytes(1000, 16)), (64_000, 192_000));
    for (rows, misses) in [(0, 0), (100, -1), (100, 101)] {
        let error = cached(rows, misses).expect_err("no cache").to_string();
        assert!(error.contains("it must hold at least one row"), "{error}");
    }
}

/// Placements of four tables on four GPUs.
const PLACES: [&str; 12] = [
    "",
    "placement = [[0], [1], [2], [3]]",
    "placement = [[1], [0], [2], [3]]",
    "placement = [[0, 1], [2], [3], []]",
    "placement = [[0, 2], [1], [3], []]",
    "placement = [[1, 0], [2], [], [3]]",
    "placement = [[0, 1], [0, 2], [0], [3]]",
    "row_wise = [0]",
    "row_wise = [1]\nplacement = [[0], [2], [3], []]",
    "data_parallel = [3]\nrow_wise = [2]",
    "data_parallel = [0]",
    "grid = [{ table = 1, gpus = [[0, 2], [1, 3]] }]",
];

#[test]
fn ranks_whose_work_is_told_by_the_same_numbers_record_the_same_step() {
    let tables =
        "tables = [{ rows = 1000, columns = 16, lookups = 4, count = 3 }, { rows = 50, columns = 16 }]";
    let uneven = "tables = [{ rows = 1000, columns = 16 }, { rows = 1000, columns = 8, count = 2 }, { rows = 50, columns = 16 }]";
    let towers = "tables = [{ rows = 1000, columns = 16, tower = 'query', count = 2 }, { rows = 1000, columns = 16, tower = 'item', count = 2 }]";
    let dense = "batch = 64\ndense = 13\nbottom_mlp = [32, 16]\ntop_mlp = [40, 1]";
    let mut alike = 0;
    for model in [
        format!("model = 'dlrm'\n{dense}\n{tables}"),
        format!("model = 'dlrm'\ninteraction = 'cat'\n{dense}\n{uneven}"),
        format!("model = 'deepfm'\nbatch = 64\ntop_mlp = [40, 1]\n{tables}"),
        format!("model = 'two_towers'\nbatch = 64\ntop_mlp = [40, 16]\n{towers}"),
    ] {
        let mut known = std::collections::BTreeMap::new();
        for places in PLACES {
            let model = Model::parse(&format!("{model}\n[parallel]\ngpus = 4\n{places}")).expect("a model");
            for rank in 0..4 {
                let trace = model.record_rank(rank);
                match known.get(&model.work(rank)) {
                    Some(other) => {
                        alike += 1;
                        // Traces are too long to be printed.
                        assert!(*other == trace, "{places}");
                    }
                    None => drop(known.insert(model.work(rank), trace)),
                }
            }
        }
    }
    assert!(alike > 40, "{alike} ranks are like another");
}
