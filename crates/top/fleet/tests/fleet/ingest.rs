//! Ingest of traces into a lake: counts, and kept and skipped files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::slice::from_ref;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt16Type, UInt32Type, UInt64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use steptime_fleet::{Error, Ingest, Outcome, Report, Shard, Table, ingest};
use steptime_trace::{ActivityKind, Trace, read_kineto_file};

const ALL: Shard = Shard { part: 1, of: 1 };

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name).join("kineto.json.gz")
}

fn into(lake: &Path, runs: &[PathBuf], shard: Shard) -> Result<Report, Error> {
    ingest(&Ingest { runs, name: None, workers: 2, shard }, lake, &|_, _| ())
}

/// A run of ranks, each the copy of a file.
fn run(folder: &Path, name: &str, files: &[PathBuf]) -> PathBuf {
    let run = folder.join(name);
    fs::create_dir_all(&run).expect("a folder");
    for (rank, file) in files.iter().enumerate() {
        fs::copy(file, run.join(format!("rank{rank}.json.gz"))).expect("a copy");
    }
    run
}

fn table(lake: &Path, run: &str, rank: u32, name: &str) -> RecordBatch {
    let path = lake.join(format!("run={run}/rank={rank}/{name}.parquet"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let schema = builder.schema().clone();
    let mut reader = builder.with_batch_size(1 << 24).build().expect("rows");
    let first = reader.next().map_or_else(|| RecordBatch::new_empty(schema), |batch| batch.expect("a batch"));
    assert!(reader.next().is_none(), "{}", path.display());
    first
}

fn sum(batch: &RecordBatch, column: &str) -> i64 {
    let column = batch.column_by_name(column).expect("the column");
    match column.as_primitive_opt::<Int64Type>() {
        Some(values) => values.iter().flatten().sum(),
        None => column.as_primitive::<UInt64Type>().iter().flatten().sum::<u64>() as i64,
    }
}

fn kernels_of(trace: &Trace) -> usize {
    trace.activities.kind.iter().filter(|kind| **kind == ActivityKind::Kernel).count()
}

#[test]
fn what_is_counted_is_what_the_trace_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = example("dlrm_default_2048");
    let trace = read_kineto_file(&file).expect("a trace");
    let lake = folder.path().join("lake");
    let report = into(&lake, &[run(folder.path(), "run", &[file])], ALL).expect("a report");
    let rows = report.files[0].rows;
    assert_eq!(rows.ops as usize, trace.ops.len());
    assert_eq!(rows.activities as usize, trace.activities.len());
    assert_eq!(rows.kernels as usize, kernels_of(&trace));
    let [steps, ops, kernels, _, gaps] = Table::ALL.map(|one| table(&lake, "run", 0, one.name()));
    assert_eq!(sum(&ops, "count") as usize, trace.ops.len());
    assert_eq!(sum(&kernels, "count") as usize, trace.activities.len());
    let nanos = |times: &[steptime_trace::Nanos]| times.iter().map(|time| time.0).sum::<i64>();
    assert_eq!(sum(&ops, "sum_ns"), nanos(&trace.ops.dur));
    assert_eq!(sum(&kernels, "sum_ns"), nanos(&trace.activities.dur));
    assert_eq!(steps.num_rows(), rows.steps as usize);
    assert_eq!(gaps.num_rows(), rows.gaps as usize);
}

/// A device is either idle or active in a step; and its idle time by gaps is the time between its activities.
#[test]
fn idle_and_active_time_add_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = example("dlrm_default_2048");
    let trace = read_kineto_file(&file).expect("a trace");
    let lake = folder.path().join("lake");
    into(&lake, &[run(folder.path(), "run", &[file])], ALL).expect("a report");
    let activities = &trace.activities;
    let mut order: Vec<usize> = (0..activities.len()).collect();
    order.sort_by_key(|&at| activities.start[at]);
    let (mut idle, mut end) = (0, activities.start[order[0]]);
    for at in order {
        idle += (activities.start[at] - end).0.max(0);
        end = end.max(activities.end(at));
    }
    let (gaps, steps) = (table(&lake, "run", 0, "gaps"), table(&lake, "run", 0, "steps"));
    assert!(idle > 0);
    assert_eq!(sum(&gaps, "idle_ns"), idle);
    assert!(sum(&steps, "idle_ns") > 0);
    assert_eq!(sum(&steps, "active_ns") + sum(&steps, "idle_ns"), sum(&steps, "dur_ns"));
    let exposed = sum(&steps, "comm_exposed_ns");
    assert_eq!(exposed, sum(&steps, "active_ns") - sum(&steps, "compute_ns"));
    assert_eq!(sum(&steps, "repairs") as u64, steps.num_rows() as u64 * trace.notes.repairs());
}

/// The bins of a sketch add up to its count, and those of all steps together are those of all times.
#[test]
fn sketches_of_all_steps_are_that_of_the_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = example("dlrm_default_2048");
    let trace = read_kineto_file(&file).expect("a trace");
    let lake = folder.path().join("lake");
    into(&lake, &[run(folder.path(), "run", &[file])], ALL).expect("a report");
    let kernels = table(&lake, "run", 0, "kernels");
    let lists = |name: &str| kernels.column_by_name(name).expect("a list").as_list::<i32>().clone();
    let (bins, counts) = (lists("bins"), lists("bin_counts"));
    let mut merged = std::collections::BTreeMap::new();
    for row in 0..kernels.num_rows() {
        let (bins, counts) = (bins.value(row), counts.value(row));
        let each = bins.as_primitive::<UInt16Type>().values().iter();
        for (bin, count) in each.zip(counts.as_primitive::<UInt32Type>().values()) {
            *merged.entry(*bin).or_insert(0u32) += count;
        }
    }
    let mut whole = steptime_fleet::Sketch::default();
    trace.activities.dur.iter().for_each(|&dur| whole.add(dur));
    assert_eq!(merged.into_iter().collect::<Vec<_>>(), whole.bins);
}

#[test]
fn what_is_there_is_not_read_again_and_what_changed_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let (lake, one) = (folder.path().join("lake"), example("dlrm_default_2048"));
    let run = run(folder.path(), "run", &[one.clone(), one]);
    assert_eq!(into(&lake, from_ref(&run), ALL).expect("a report").count(Outcome::Ingested), 2);
    let before =
        fs::metadata(lake.join("run=run/rank=0/ops.parquet")).expect("a table").modified().expect("a time");
    let again = into(&lake, from_ref(&run), ALL).expect("a report");
    assert_eq!(again.count(Outcome::Kept), 2);
    assert!(again.files[1].rows.ops > 0, "what was counted is known from before");
    // Another trace under the same name.
    fs::copy(example("resnet50_32"), run.join("rank1.json.gz")).expect("a copy");
    let changed = into(&lake, &[run], ALL).expect("a report");
    let outcomes: Vec<Outcome> = changed.files.iter().map(|file| file.outcome).collect();
    assert_eq!(outcomes, [Outcome::Kept, Outcome::Ingested]);
    assert_ne!(changed.files[1].rows, again.files[1].rows);
    let after =
        fs::metadata(lake.join("run=run/rank=0/ops.parquet")).expect("a table").modified().expect("a time");
    assert_eq!(before, after);
}

#[test]
fn what_was_interrupted_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (lake, one) = (folder.path().join("lake"), example("dlrm_default_2048"));
    let run = run(folder.path(), "run", &[one.clone(), one]);
    into(&lake, from_ref(&run), ALL).expect("a report");
    let whole = fs::read(lake.join("run=run/rank=1/ops.parquet")).expect("a table");
    // The state after an interruption in the middle of rank 1: an unfinished folder, and no rank.
    let rank = lake.join("run=run/rank=1");
    fs::create_dir(lake.join("_ingest/.part-cut")).expect("a folder");
    fs::rename(rank.join("ops.parquet"), lake.join("_ingest/.part-cut/ops.parquet")).expect("moved");
    fs::remove_dir_all(&rank).expect("removed");
    let report = into(&lake, &[run], ALL).expect("a report");
    assert_eq!((report.count(Outcome::Kept), report.count(Outcome::Ingested)), (1, 1));
    assert_eq!(
        fs::read(rank.join("ops.parquet")).expect("a table"),
        whole,
        "the same trace gives the same bytes"
    );
}

/// Only damaged ranks are made again.
#[test]
fn a_damaged_rank_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (lake, one) = (folder.path().join("lake"), example("dlrm_default_2048"));
    let run = run(folder.path(), "run", &[one.clone(), one]);
    into(&lake, from_ref(&run), ALL).expect("a report");
    let rank = lake.join("run=run/rank=1");
    let ops = rank.join("ops.parquet");
    let whole = fs::read(&ops).expect("a table");
    type Damage = fn(&Path);
    let damages: [Damage; 5] = [
        |rank| fs::remove_file(rank.join("ops.parquet")).expect("removed"),
        |rank| fs::write(rank.join("ops.parquet"), "").expect("written"),
        |rank| fs::write(rank.join("ops.parquet"), [0; 500]).expect("written"),
        |rank| fs::write(rank.join("rank.json"), "").expect("written"),
        |rank| fs::remove_file(rank.join("rank.json")).expect("removed"),
    ];
    for damage in damages {
        damage(&rank);
        let report = into(&lake, from_ref(&run), ALL).expect("a report");
        assert_eq!((report.count(Outcome::Kept), report.count(Outcome::Ingested)), (1, 1));
        assert_eq!(fs::read(&ops).expect("a table"), whole);
    }
}

/// Two concurrent ingests of the same files: both succeed, all ranks exist, and nothing is left over.
#[test]
fn two_ingests_at_once_do_not_meet() {
    let folder = tempfile::tempdir().expect("a folder");
    let (lake, one) = (folder.path().join("lake"), example("dlrm_default_2048"));
    let run = run(folder.path(), "run", &[one.clone(), one.clone(), one]);
    for _ in 0..3 {
        for rank in 0..3 {
            let file =
                File::options().append(true).open(run.join(format!("rank{rank}.json.gz"))).expect("a file");
            file.set_modified(std::time::SystemTime::now()).expect("a time");
        }
        std::thread::scope(|scope| {
            let each = || into(&lake, from_ref(&run), ALL).map(|report| report.count(Outcome::Skipped));
            let all: Vec<_> = (0..3).map(|_| scope.spawn(each)).collect();
            for one in all {
                assert_eq!(one.join().expect("no panic").expect("a report"), 0);
            }
        });
        assert_eq!(into(&lake, from_ref(&run), ALL).expect("a report").count(Outcome::Kept), 3);
        let left = fs::read_dir(lake.join("_ingest")).expect("a folder").flatten();
        let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(".part-"));
        assert_eq!(left.count(), 0);
    }
}

#[test]
fn damaged_files_are_skipped_with_their_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let (lake, one) = (folder.path().join("lake"), example("dlrm_default_2048"));
    let run = run(folder.path(), "run", &[one.clone(), one.clone(), one.clone()]);
    let bytes = fs::read(&one).expect("a trace");
    fs::write(run.join("rank1.json.gz"), &bytes[..bytes.len() / 2]).expect("half of it");
    fs::write(run.join("rank2.json.gz"), "").expect("nothing");
    fs::write(run.join("rank3.json"), "{\"model\": \"no trace\"}").expect("another file");
    fs::write(run.join("rank4.tar"), "").expect("an archive");
    let report = into(&lake, &[run], ALL).expect("a report");
    let outcomes: Vec<Outcome> = report.files.iter().map(|file| file.outcome).collect();
    use Outcome::{Ignored, Ingested, Skipped};
    assert_eq!(outcomes, [Ingested, Skipped, Skipped, Ignored, Skipped]);
    let reason = |at: usize| report.files[at].reason.clone().unwrap_or_default();
    assert!(reason(1).contains("only its front part"), "{}", reason(1));
    assert!(reason(4).contains("unpack it"), "{}", reason(4));
    assert!(!lake.join("run=run/rank=1").exists() && !lake.join("run=run/rank=2").exists());
    let kept = fs::read_to_string(lake.join("_ingest/run.1-of-1.json")).expect("the report");
    assert!(kept.contains("only its front part") && kept.contains("rank1.json.gz"), "{kept}");
}

#[test]
fn ops_that_nest_too_deep_are_skipped_with_their_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let of_depth = |depth: usize| {
        let op = |at: usize| {
            let dur = 2 * (depth - at);
            format!(r#"{{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":{at},"dur":{dur}}}"#)
        };
        let path = folder.path().join(format!("{depth}.json"));
        fs::write(&path, format!("[{}]", (0..depth).map(op).collect::<Vec<_>>().join(","))).expect("a file");
        path
    };
    let runs = [of_depth(500), of_depth(501)];
    let report = into(&folder.path().join("lake"), &runs, ALL).expect("a report");
    let outcomes: Vec<Outcome> = report.files.iter().map(|file| file.outcome).collect();
    assert_eq!(outcomes, [Outcome::Ingested, Outcome::Skipped], "{report:?}");
    let reason = report.files[1].reason.clone().unwrap_or_default();
    assert!(reason.contains("ops nest 501 deep, and at most 500 are read"), "{reason}");
}

#[test]
fn the_trace_of_several_processes_is_no_rank() {
    let folder = tempfile::tempdir().expect("a folder");
    let mark = |pid: u32| {
        format!(
            r#"{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":{pid},"tid":1,"ts":0,"dur":9}}"#
        )
    };
    let path = folder.path().join("merged.json");
    fs::write(&path, format!("[{},{}]", mark(1), mark(2))).expect("a file");
    let error = into(&folder.path().join("lake"), &[path], ALL).expect_err("nothing to ingest").to_string();
    assert!(error.contains("2 processes marked steps in it"), "{error}");
}

#[test]
fn not_one_trace_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    fs::create_dir(&run).expect("a folder");
    fs::write(run.join("rank0.json"), "").expect("nothing");
    let error = into(&folder.path().join("lake"), &[run], ALL).expect_err("nothing to read");
    assert!(error.to_string().starts_with("none of the 1 traces could be read"), "{error}");
    assert!(into(&folder.path().join("lake"), &[folder.path().join("none")], ALL).is_err());
}

#[test]
fn shards_share_the_files_and_each_has_a_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let (lake, one) = (folder.path().join("lake"), example("dlrm_default_2048"));
    let run = run(folder.path(), "run", &[one.clone(), one.clone(), one]);
    for part in [2, 1] {
        into(&lake, from_ref(&run), Shard { part, of: 2 }).expect("a report");
        assert!(lake.join(format!("_ingest/run.{part}-of-2.json")).exists());
    }
    for rank in 0..3 {
        assert!(table(&lake, "run", rank, "steps").num_rows() > 0);
    }
    assert_eq!(into(&lake, &[run], ALL).expect("a report").count(Outcome::Kept), 3);
}

#[test]
fn a_rank_belongs_to_one_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (lake, one) = (folder.path().join("lake"), example("dlrm_default_2048"));
    let first = run(&folder.path().join("a"), "run", from_ref(&one));
    let second = run(&folder.path().join("b"), "run", &[one]);
    let error = into(&lake, &[first.clone(), second.clone()], ALL).expect_err("one name");
    assert!(matches!(error, Error::SameName { .. }), "{error}");
    into(&lake, from_ref(&first), ALL).expect("a report");
    let error = into(&lake, from_ref(&second), ALL).expect_err("the rank is another file's");
    assert!(error.to_string().contains("it is rank 0, and so is"), "{error}");
    // The run was moved: its rank is made again.
    fs::remove_dir_all(first).expect("removed");
    assert_eq!(into(&lake, &[second], ALL).expect("a report").count(Outcome::Ingested), 1);
}

#[test]
fn other_lakes_and_other_folders_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (lake, one) = (folder.path().join("lake"), example("dlrm_default_2048"));
    let run = run(folder.path(), "run", &[one]);
    fs::create_dir(&lake).expect("a folder");
    fs::write(lake.join("thesis.txt"), "").expect("a file");
    assert!(matches!(into(&lake, from_ref(&run), ALL), Err(Error::NoLake { .. })));
    fs::write(lake.join("_steptime.json"), "{\"steptime_lake\": 0}").expect("a mark");
    let error = into(&lake, &[run], ALL).expect_err("an older lake");
    assert!(error.to_string().contains("a lake of version 0, and this steptime writes 2"), "{error}");
}

/// Collectives have their arguments, recorded on the kernel or only on the host's op.
#[test]
fn collectives_have_their_groups_and_bytes() {
    let Some(traces) =
        steptime_skips::shared(env!("CARGO_MANIFEST_DIR"), "traces/public/hta/nccl_2xA100.json.gz")
    else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let lake = folder.path().join("lake");
    let trace = read_kineto_file(&traces).expect("a trace");
    into(&lake, &[run(folder.path(), "run", &[traces])], ALL).expect("a report");
    let rank = trace.distributed.as_ref().and_then(|distributed| distributed.rank).unwrap_or(0);
    let collectives = table(&lake, "run", rank, "collectives");
    let column = |name: &str| collectives.column_by_name(name).expect("the column").clone();
    let kernels = column("kernel");
    let with_kernel: Vec<usize> = (0..collectives.num_rows()).filter(|&row| !kernels.is_null(row)).collect();
    let nccl = |at: &usize| trace.name(trace.activities.name[*at]).to_lowercase().contains("nccl");
    let expected = (0..trace.activities.len()).filter(nccl).count();
    assert!(expected > 0);
    assert_eq!(with_kernel.len(), expected);
    for name in ["group_name", "group_size", "in_bytes", "op", "launched_ns"] {
        let column = column(name);
        assert!(with_kernel.iter().all(|&row| !column.is_null(row)), "{name} of every kernel");
    }
}
