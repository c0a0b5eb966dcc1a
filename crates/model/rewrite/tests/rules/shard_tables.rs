//! Tables on the ranks of a job.

use crate::common;

use common::{Example, counts, named, open, takes};
use steptime_graph::{Collective, CollectiveKind};
use steptime_rewrite::{DataParallel, Error, Facts, ShardTables, TableHome, applied, tables};
use steptime_step::{ScheduledStep, StepIr, schedule};

/// Eight tables of 1,000,000 x 64, with ten lookups in each for each of 2,048 samples.
const BATCH: u64 = 2048;
const TABLES: usize = 8;
const COLUMNS: i64 = 64;
const ROWS: i64 = 1_000_000;

fn on(rank: u32) -> TableHome {
    TableHome::Columns(vec![(rank, COLUMNS)])
}

fn in_turn(ranks: u32) -> Vec<TableHome> {
    (0..TABLES as u32).map(|table| on(table % ranks)).collect()
}

fn rule(homes: Vec<TableHome>, rank: u32, ranks: u32, batch: Option<u64>) -> ShardTables {
    ShardTables { homes, rank, dense: DataParallel::new(ranks), batch, copies_apart: false }
}

fn apply(example: &Example, rule: &ShardTables) -> Result<(StepIr, ScheduledStep), Error> {
    let facts = Facts::new(&example.ops, Some(BATCH));
    let (step, _) = applied(&example.step, &[rule], &facts).map_err(|refused| refused.source)?;
    let scheduled = schedule(&step, &example.step, &example.graph, &example.ops);
    assert_eq!(scheduled.circle(), None);
    Ok((step, scheduled))
}

fn moved(after: &ScheduledStep, kind: CollectiveKind) -> Vec<[u64; 2]> {
    let graph = &after.graph;
    let all = graph.activities.iter().filter_map(|row| Some(&graph.collectives[row.collective?]));
    all.filter(|own: &&Collective| own.kind == kind).map(|own| [own.sent.0, own.received.0]).collect()
}

fn batches(step: &StepIr) -> Vec<i64> {
    let mut sizes: Vec<i64> =
        named(step, "aten::linear").into_iter().map(|op| takes(step, op)[0][0]).collect();
    sizes.dedup();
    sizes
}

#[test]
fn tables_of_a_step_are_told() {
    let found = tables(&open("dlrm_default_2048").step);
    assert_eq!(found.len(), TABLES);
    assert!(found.iter().all(|table| table.sparse && table.rows == ROWS && table.columns == COLUMNS));
    assert!(found.iter().all(|table| table.lookups == 10 * BATCH as i64));
    assert!(tables(&open("resnet50_32").step).is_empty());
}

/// Samples are shared: each rank looks up in its tables for all samples, and the rest is for its share.
#[test]
fn lookups_are_of_all_samples_and_the_rest_of_a_share() {
    let example = open("dlrm_default_2048");
    let (step, after) = apply(&example, &rule(in_turn(4), 1, 4, Some(BATCH / 4))).expect("it applies");
    let kept = tables(&step);
    assert_eq!([kept.len(), counts(&step)["aten::embedding_bag"]], [2; 2]);
    assert!(kept.iter().all(|table| table.lookups == 10 * BATCH as i64));
    assert_eq!(batches(&step), [BATCH as i64 / 4]);
    // Two of eight tables for 2,048 samples are sent, eight for 512 received; gradients the other way.
    let (out, back) = (2048 * 2 * 64 * 4, 512 * 8 * 64 * 4);
    assert_eq!(moved(&after, CollectiveKind::AllToAll), [[out, back], [back, out]]);
    assert_eq!(moved(&after, CollectiveKind::AllReduce).len(), 2);
}

/// Each rank keeps its samples: it looks up in its tables for the samples of all ranks.
#[test]
fn more_ranks_are_more_lookups() {
    let example = open("dlrm_default_2048");
    let (step, after) = apply(&example, &rule(in_turn(4), 0, 4, None)).expect("it applies");
    assert!(tables(&step).iter().all(|table| table.lookups == 4 * 10 * BATCH as i64));
    assert_eq!(batches(&step), [BATCH as i64]);
    let (out, back) = (8192 * 2 * 64 * 4, 2048 * 8 * 64 * 4);
    assert_eq!(moved(&after, CollectiveKind::AllToAll), [[out, back], [back, out]]);
}

#[test]
fn a_rank_without_tables_takes_part() {
    let example = open("dlrm_default_2048");
    let (step, after) = apply(&example, &rule(vec![on(0); TABLES], 1, 2, None)).expect("it applies");
    assert!(tables(&step).is_empty());
    let came = 2048 * 8 * 64 * 4;
    assert_eq!(moved(&after, CollectiveKind::AllToAll), [[0, came], [came, 0]]);
}

#[test]
fn rows_are_added_up_and_columns_parted() {
    let example = open("dlrm_default_2048");
    let mut homes = vec![TableHome::Everywhere; TABLES];
    homes[0] = TableHome::Columns(vec![(0, 16), (1, 48)]);
    homes[1] = TableHome::Rows(vec![ROWS / 2; 2]);
    // Replicated tables have sparse gradients here, which are not averaged.
    let error = apply(&example, &rule(homes.clone(), 0, 2, None)).unwrap_err();
    assert!(matches!(error, Error::SparseAveraged { .. }), "{error}");
    homes[2..].iter_mut().for_each(|home| *home = on(1));
    let (step, after) = apply(&example, &rule(homes.clone(), 0, 2, None)).expect("it applies");
    let own = tables(&step);
    let sizes: Vec<[i64; 3]> = own.iter().map(|table| [table.rows, table.columns, table.lookups]).collect();
    let lookups = 2 * BATCH as i64;
    assert_eq!(sizes, [[ROWS, 16, 10 * lookups], [ROWS / 2, COLUMNS, 5 * lookups]]);
    // Sums of cut rows are sent for all samples and received for this rank's.
    let (all, share) = (4096 * 64 * 4, 2048 * 64 * 4);
    assert_eq!(moved(&after, CollectiveKind::ReduceScatter), [[all, share]]);
    assert_eq!(moved(&after, CollectiveKind::AllGather), [[share, all]]);
    assert_eq!(moved(&after, CollectiveKind::AllToAll)[0], [4096 * 16 * 4, 2048 * 7 * 64 * 4]);
}

#[test]
fn places_that_are_none_are_refused() {
    let example = open("dlrm_default_2048");
    let with = |first: TableHome| {
        let mut homes = in_turn(2);
        homes[0] = first;
        apply(&example, &rule(homes, 0, 2, None)).unwrap_err().to_string()
    };
    assert_eq!(with(on(2)), "table 0 is on rank 2, but there are 2 ranks, counted from 0");
    assert_eq!(with(TableHome::Columns(Vec::new())), "table 0 is on no rank");
    let twice = with(TableHome::Columns(vec![(1, 32), (1, 32)]));
    assert_eq!(twice, "table 0 is on rank 1 in two parts: merge them");
    let half = with(TableHome::Columns(vec![(1, 32)]));
    assert_eq!(half, "table 0 has 32 columns on all ranks together, but 64 as recorded");
    let rows = with(TableHome::Rows(vec![ROWS]));
    assert!(rows.contains("rows on 1 of 2 ranks"), "{rows}");
    let unknown = example.after(&rule(in_turn(2), 0, 2, None)).unwrap_err();
    assert_eq!(unknown, Error::NoBatch);
    let few = apply(&example, &rule(vec![on(0)], 0, 2, None)).unwrap_err();
    assert_eq!(few, Error::Homes { homes: 1, tables: TABLES });
    let all = apply(&example, &rule(vec![TableHome::Everywhere; TABLES], 0, 2, None)).unwrap_err();
    assert!(all.to_string().contains("every table is on all ranks"), "{all}");
}
