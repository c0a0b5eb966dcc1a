//! Files, folders and archives.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use steptime_trace::{
    Error, Input, Note, Options, Recording, Want, kineto_files, open, open_with, read_kineto_file,
    read_kineto_file_windowed,
};
use tempfile::tempdir;

fn fixture(name: &str) -> Vec<u8> {
    fs::read(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn recording(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("kineto.json.gz"), gzip(&fixture("new.json"))).unwrap();
    fs::write(folder.join("kineto_et.json.zst"), zstd::encode_all(&fixture("new.json")[..], 1).unwrap())
        .unwrap();
    fs::write(folder.join("et.json"), fixture("et_1.1.1.json")).unwrap();
    fs::write(folder.join("meta.json"), r#"{"model": "m", "step_ms": 3.38}"#).unwrap();
}

fn tar(names: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in names {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, &bytes[..]).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn a_recording() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("dlrm");
    recording(&path);
    let input = open(&path).unwrap();
    let [recording] = &input.recordings[..] else { panic!("{input:?}") };
    assert_eq!(recording.name, "dlrm");
    assert_eq!(recording.meta.as_ref().and_then(|meta| meta.step_ms), Some(3.38));
    assert_eq!(recording.timing.as_ref().map(|trace| trace.ops.len()), Some(3));
    assert_eq!(recording.timing, recording.shaped);
    assert_eq!(recording.execution.as_ref().map(|trace| trace.nodes.len()), Some(7));
}

#[test]
fn only_what_is_wanted_is_read() {
    let dir = tempdir().unwrap();
    recording(dir.path());
    fs::write(dir.path().join("et.json"), "not even JSON").unwrap();
    assert!(matches!(open(dir.path()), Err(Error::NotJson { .. })));
    let options = Options { want: Want::TIMING, ..Options::default() };
    let input = open_with(dir.path(), &options).unwrap();
    let recording = &input.recordings[0];
    assert!(recording.timing.is_some() && recording.shaped.is_none() && recording.execution.is_none());
}

#[test]
fn what_was_left_out_is_read_later_and_nothing_is_read_again() {
    let dir = tempdir().unwrap();
    for rank in 0..2 {
        recording(&dir.path().join(format!("rank{rank}")));
    }
    let whole = open(dir.path()).unwrap();
    let mut input = open_with(dir.path(), &Options { want: Want::TIMING, ..Options::default() }).unwrap();
    for rank in 0..2 {
        fs::remove_file(dir.path().join(format!("rank{rank}/kineto.json.gz"))).unwrap();
    }
    input.read_rest(&Options { want: Want::STEP, ..Options::default() }).unwrap();
    assert!(input.recordings.iter().all(|recording| recording.shaped.is_none()));
    input.read_rest(&Options::default()).unwrap();
    // As text: numbers of the execution trace that are NaN differ from themselves.
    let parts = |input: &Input| -> Vec<String> {
        let parts = |Recording { rank, timing, shaped, execution, .. }: &Recording| {
            format!("{rank:?} {timing:?} {shaped:?} {execution:?}")
        };
        input.recordings.iter().map(parts).collect()
    };
    assert_eq!(parts(&input), parts(&whole));
    fs::remove_dir_all(dir.path()).unwrap();
    input.read_rest(&Options::default()).unwrap();
    assert_eq!(parts(&input), parts(&whole));
}

#[test]
fn loose_files_that_were_left_out_pair_later() {
    let dir = tempdir().unwrap();
    for rank in 0..3 {
        let kineto = dir.path().join(format!("worker{rank}_step_12.169.pt.trace.json"));
        fs::write(kineto, fixture("amd.json")).unwrap();
        fs::write(dir.path().join(format!("dlrm_eg_{rank}.json.gz")), gzip(&fixture("et_1.0.1.json")))
            .unwrap();
    }
    for first in [Want::TIMING, Want { timing: false, ..Want::STEP }] {
        let mut input = open_with(dir.path(), &Options { want: first, ..Options::default() }).unwrap();
        let both = |recording: &Recording| recording.timing.is_some() && recording.execution.is_some();
        assert!(input.recordings.len() == 3 && !input.recordings.iter().any(both));
        input.read_rest(&Options { want: first, ..Options::default() }).unwrap();
        assert!(input.recordings.len() == 3 && !input.recordings.iter().any(both));
        input.read_rest(&Options::default()).unwrap();
        assert!(input.recordings.len() == 3 && input.recordings.iter().all(both));
    }
    let file = dir.path().join("dlrm_eg_1.json.gz");
    let mut input = open_with(&file, &Options { want: Want::TIMING, ..Options::default() }).unwrap();
    assert!(input.recordings[0].execution.is_none());
    input.read_rest(&Options::default()).unwrap();
    assert!(input.recordings[0].execution.is_some());
}

#[test]
fn files_are_told_apart_by_content() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("odd name.txt");
    for bytes in [fixture("et_1.0.0.json"), gzip(&fixture("et_1.0.0.json"))] {
        fs::write(&path, bytes).unwrap();
        assert!(open(&path).unwrap().recordings[0].execution.is_some());
    }
    fs::write(&path, fixture("amd.json")).unwrap();
    assert!(open(&path).unwrap().recordings[0].timing.is_some());
}

#[test]
fn folders_of_recordings_one_a_rank() {
    let dir = tempdir().unwrap();
    for rank in [10, 2] {
        recording(&dir.path().join(format!("rank{rank}")));
    }
    let input = open(dir.path()).unwrap();
    let ranks: Vec<_> = input.recordings.iter().map(|recording| recording.rank).collect();
    assert_eq!(ranks, [Some(2), Some(10)]);
}

#[test]
fn loose_files_pair_by_rank() {
    let dir = tempdir().unwrap();
    for rank in 0..3 {
        fs::write(dir.path().join(format!("worker{rank}_step_12.169.pt.trace.json")), fixture("amd.json"))
            .unwrap();
        fs::write(dir.path().join(format!("dlrm_eg_{rank}.json.gz")), gzip(&fixture("et_1.0.1.json")))
            .unwrap();
    }
    fs::write(dir.path().join("settings.json"), "{\"a\": 1}").unwrap();
    let input = open(dir.path()).unwrap();
    assert_eq!(input.recordings.len(), 3);
    for (rank, recording) in (0..).zip(&input.recordings) {
        assert_eq!(recording.rank, Some(rank));
        assert!(recording.timing.is_some() && recording.execution.is_some());
    }
    assert_eq!(input.ignored, [dir.path().join("settings.json")]);
}

#[test]
fn one_of_each_is_a_pair_whatever_the_names() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("linear_kineto.json"), fixture("amd.json")).unwrap();
    fs::write(dir.path().join("linear_et.json"), fixture("et_1.0.1.json")).unwrap();
    let input = open(dir.path()).unwrap();
    assert_eq!(input.recordings.len(), 1);
    assert!(input.recordings[0].execution.is_some());
}

#[test]
fn archives() {
    let dir = tempdir().unwrap();
    let kinetos = tar(&[
        ("k/worker1.json", fixture("amd.json")),
        ("k/worker0.json.gz", gzip(&fixture("amd.json"))),
        ("k/._worker0.json", vec![0, 5]),
    ]);
    let executions =
        tar(&[("e/eg_0.json", fixture("et_1.0.1.json")), ("e/eg_1.json", fixture("et_1.0.1.json"))]);
    fs::write(dir.path().join("kinetos.tar.gz"), gzip(&kinetos)).unwrap();
    fs::write(dir.path().join("executions.tar"), executions).unwrap();
    let input = open(dir.path()).unwrap();
    let found: Vec<_> =
        input.recordings.iter().map(|recording| (recording.rank, recording.execution.is_some())).collect();
    assert_eq!(found, [(Some(0), true), (Some(1), true)]);
    assert_eq!(open(&dir.path().join("kinetos.tar.gz")).unwrap().recordings.len(), 2);
}

#[test]
fn truncated_compression_keeps_what_came_before() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("cut.json.gz");
    let event = r#"{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 1, "dur": 2},"#;
    let json = format!("{{\"traceEvents\": [{}", event.repeat(20_000));
    let zipped = [gzip(json.as_bytes()), zstd::encode_all(json.as_bytes(), 1).unwrap()];
    for bytes in zipped {
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let input = open(&path).unwrap();
        let trace = input.recordings[0].timing.as_ref().unwrap();
        assert!(trace.ops.len() > 100, "{}", trace.ops.len());
        assert_eq!(trace.notes.count(Note::Truncated), 1, "{:?}", trace.notes);
    }
}

#[test]
fn progress_ends_at_the_whole() {
    let dir = tempdir().unwrap();
    recording(dir.path());
    let last = Mutex::new((0, 0));
    let report = |done: u64, total: u64| {
        let mut last = last.lock().unwrap();
        *last = (last.0.max(done), total);
    };
    open_with(dir.path(), &Options { progress: Some(&report), ..Options::default() }).unwrap();
    let (done, total) = *last.lock().unwrap();
    assert!(total > 0 && done == total, "{done} of {total}");
}

#[test]
fn refusals() {
    let dir = tempdir().unwrap();
    assert!(matches!(open(&dir.path().join("missing.json")), Err(Error::Io { .. })));
    assert!(matches!(open(dir.path()), Err(Error::NoTraces { .. })));
    fs::write(dir.path().join("settings.json"), "{\"a\": 1}").unwrap();
    assert!(matches!(open(dir.path()), Err(Error::NoTraces { .. })));
    File::create(dir.path().join("kineto.json")).unwrap();
    assert!(matches!(open(dir.path()), Err(Error::Empty { .. })));
    fs::write(dir.path().join("kineto.json.gz"), gzip(b"{}")).unwrap();
    assert!(matches!(open(dir.path()), Err(Error::Ambiguous { .. })));
    fs::remove_file(dir.path().join("kineto.json")).unwrap();
    fs::write(dir.path().join("kineto.json.gz"), gzip(&fixture("et_1.0.0.json"))).unwrap();
    assert!(matches!(open(dir.path()), Err(Error::WrongKind { .. })));
    fs::write(dir.path().join("kineto.json.gz"), b"\x1f\x8b\x08garbage").unwrap();
    assert!(matches!(open(dir.path()), Err(Error::Damaged { .. })));
}

#[test]
fn a_pointer_that_git_lfs_left_is_named_as_such() {
    let folder = tempfile::tempdir().expect("a folder");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 53700000\n";
    for name in ["rank-0.json", "rank-0.pt.trace.json.gz", "traces.tar.gz"] {
        let path = folder.path().join(name);
        std::fs::write(&path, pointer).expect("written");
        let error = steptime_trace::open(&path).expect_err("no trace").to_string();
        assert!(
            error.ends_with("is a Git LFS pointer, not the file itself: fetch it (git lfs pull)"),
            "{error}"
        );
    }
}

#[test]
fn kineto_files_are_told_by_their_names_alone() {
    let folder = tempdir().unwrap();
    let ranks = folder.path().join("ranks");
    recording(&ranks.join("rank1"));
    recording(&ranks.join("rank0"));
    let found = kineto_files(&ranks).unwrap();
    let told: Vec<_> = found.iter().map(|file| (file.path.clone(), file.rank, file.named)).collect();
    let timed = |rank: &str| ranks.join(rank).join("kineto.json.gz");
    assert_eq!(told, [(timed("rank0"), Some(0), true), (timed("rank1"), Some(1), true)]);

    let loose = folder.path().join("loose");
    fs::create_dir(&loose).unwrap();
    for name in ["trace_3.json", "trace_1.json", "trace_2.json", "more.tar.gz", "notes.txt"] {
        fs::write(loose.join(name), "no trace at all").unwrap();
    }
    let found = kineto_files(&loose).unwrap();
    let archives: Vec<bool> = found.iter().map(|file| file.archive).collect();
    assert_eq!(archives, [true, false, false, false], "nothing was read");
    let alone = kineto_files(&loose.join("trace_2.json")).unwrap();
    assert_eq!((alone.len(), alone[0].rank, alone[0].named), (1, None, false));
    assert!(matches!(kineto_files(&folder.path().join("none")), Err(Error::Io { .. })));
}

/// A file read through a window gives the same trace as read whole.
#[test]
fn a_file_read_through_a_window_is_the_same_trace() {
    let folder = tempdir().unwrap();
    for (name, bytes) in [("a.json", fixture("new.json")), ("a.json.gz", gzip(&fixture("new.json")))] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        assert_eq!(read_kineto_file_windowed(&path).unwrap(), read_kineto_file(&path).unwrap());
    }
}
