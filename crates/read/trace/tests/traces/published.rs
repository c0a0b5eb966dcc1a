//! Traces published by others, if they are available.

use std::path::{Path, PathBuf};
use steptime_trace::{Document, Input, open, read_file};

/// Returns the folder of traces beside the repository.
fn traces() -> Option<PathBuf> {
    steptime_skips::shared(env!("CARGO_MANIFEST_DIR"), "traces")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn clean(input: &Input) {
    for recording in &input.recordings {
        let traces = [&recording.timing, &recording.shaped].into_iter().flatten();
        traces.for_each(|trace| assert!(trace.notes.is_clean(), "{}: {:?}", recording.name, trace.notes));
        let execution = recording.execution.iter();
        execution.for_each(|trace| assert!(trace.notes.is_clean(), "{}: {:?}", recording.name, trace.notes));
    }
}

#[test]
fn every_published_file_opens_without_repair() {
    let Some(traces) = traces() else { return };
    for folder in ["hta", "param_et", "param_dlrm_8xV100"] {
        for file in files(&traces.join("public").join(folder)) {
            let input = open(&file).unwrap_or_else(|error| panic!("{error}"));
            assert!(!input.recordings.is_empty());
            clean(&input);
        }
    }
}

#[test]
fn eight_ranks_pair() {
    let Some(traces) = traces() else { return };
    let input = open(&traces.join("public/param_dlrm_8xV100")).unwrap();
    let ranks: Vec<_> = input.recordings.iter().map(|recording| recording.rank).collect();
    assert_eq!(ranks, (0..8).map(Some).collect::<Vec<_>>());
    assert!(input.recordings.iter().all(|one| one.timing.is_some() && one.execution.is_some()));
}

#[test]
fn every_recording_opens_and_its_files_join() {
    let Some(traces) = traces() else { return };
    for folder in files(&traces.join("h200")) {
        let input = open(&folder).unwrap_or_else(|error| panic!("{error}"));
        clean(&input);
        let recording = &input.recordings[0];
        let (shaped, execution) = (recording.shaped.as_ref().unwrap(), recording.execution.as_ref().unwrap());
        let step = recording.meta.as_ref().and_then(|meta| meta.step_ms).unwrap();
        assert!(step > 0.5 && step < 100.0, "{step}");
        let operators: Vec<_> =
            (0..execution.nodes.len()).filter(|&row| execution.is_operator(row)).collect();
        let joined = operators.iter().filter(|&&row| {
            let id = execution.nodes.rf_id[row];
            let op = shaped.ops.record_function_id.iter().position(|&other| other == id);
            op.is_some_and(|op| shaped.name(shaped.ops.name[op]) == execution.name(execution.nodes.name[row]))
        });
        assert_eq!(joined.count(), operators.len(), "{}", recording.name);
    }
}

#[test]
fn counts_of_the_benchmark_trace() {
    let Some(traces) = traces() else { return };
    let Ok(Document::Kineto(trace)) = read_file(&traces.join("public/hta/df_index_resolver_2xV100.json.gz"))
    else {
        panic!("not a Kineto trace")
    };
    assert_eq!((trace.ops.len(), trace.calls.len(), trace.activities.len()), (58_715, 42_373, 22_290));
}
