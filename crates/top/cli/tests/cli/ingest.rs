//! `steptime ingest`, and the answer to `steptime query`.

use std::fs;
use std::path::Path;

use crate::{failure, json, root, stdout, text};

const EXAMPLES: [&str; 2] = ["examples/dlrm_default_2048", "examples/dlrm_ddp_2048"];

fn ingest<'a>(lake: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["ingest", "-o", text(lake)];
    args.extend(more);
    args
}

#[test]
fn runs_are_counted_and_what_is_there_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let lake = folder.path().join("lake");
    let first = json(&ingest(&lake, &EXAMPLES));
    assert_eq!((&first["schema"], &first["command"]), (&1.into(), &"ingest".into()));
    for key in ["lake", "lake_version", "runs", "skipped", "ignored"] {
        assert!(first.get(key).is_some(), "no {key}");
    }
    let runs = first["runs"].as_array().expect("runs");
    let names: Vec<&str> = runs.iter().filter_map(|run| run["run"].as_str()).collect();
    assert_eq!(names, ["dlrm_default_2048", "dlrm_ddp_2048"]);
    for run in runs {
        assert_eq!((&run["ingested"], &run["kept"], &run["skipped"]), (&1.into(), &0.into(), &0.into()));
        for key in ["steps", "ops", "kernels", "gaps", "bytes"] {
            assert!(run[key].as_u64().is_some_and(|count| count > 0), "{key}: {run}");
        }
    }
    let again = json(&ingest(&lake, &[EXAMPLES[0]]));
    assert_eq!((&again["runs"][0]["ingested"], &again["runs"][0]["kept"]), (&0.into(), &1.into()));
    assert_eq!(again["runs"][0]["ops"], runs[0]["ops"]);
    let said = stdout(&ingest(&lake, &EXAMPLES));
    assert!(said.contains("0 ranks ingested, 2 there from before"), "{said}");
    let csv = stdout(&ingest(&lake, &[EXAMPLES[0], "--csv"]));
    assert_eq!(csv.lines().count(), 2, "{csv}");
    assert!(csv.lines().all(|line| line.split(',').count() == 14), "{csv}");
}

#[test]
fn files_that_are_left_out_are_told_with_their_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let (lake, run) = (folder.path().join("lake"), folder.path().join("run"));
    fs::create_dir(&run).expect("a folder");
    let whole = fs::read(root().join(EXAMPLES[0]).join("kineto.json.gz")).expect("a trace");
    fs::write(run.join("rank0.json.gz"), &whole).expect("a trace");
    fs::write(run.join("rank1.json.gz"), &whole[..whole.len() / 2]).expect("half of one");
    let said = stdout(&ingest(&lake, &[text(&run), "--run", "monday"]));
    assert!(said.contains("1 file skipped") && said.contains("rank1.json.gz"), "{said}");
    assert!(said.contains("monday"), "{said}");
    let csv = stdout(&ingest(&lake, &[text(&run), "--run", "monday", "--csv"]));
    assert!(csv.contains("only its front part"), "{csv}");
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let lake = folder.path().join("lake");
    let refused = |more: &[&str]| failure(&ingest(&lake, more));
    assert!(refused(&[EXAMPLES[0], "--run", "a/b"]).contains("invalid run name `a/b`"));
    assert!(refused(&[EXAMPLES[0], EXAMPLES[1], "--run", "a"]).contains("--run names one run"));
    assert!(refused(&["none-such"]).contains("none-such"));
    assert!(!lake.exists(), "nothing is written before all runs are known");
    fs::create_dir(&lake).expect("a folder");
    fs::write(lake.join("_steptime.json"), "{\"steptime_lake\": 99}").expect("a mark");
    assert!(refused(&[EXAMPLES[0]]).contains("a lake of version 99"));
}

#[test]
fn query_says_who_answers() {
    for args in [&["query"][..], &["query", "lake", "select 1"], &["query", "lake", "--ask", "idle"]] {
        assert!(failure(args).contains("pip install 'steptime[query]'"));
    }
}
