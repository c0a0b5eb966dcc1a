//! Folders with the ranks of a job that meet in collectives.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::{failure, json, root, stdout, steptime, text, words};

/// Three steps of 1 ms of a rank: a kernel, a collective that begins at `late` and takes `runs`, and a wait for the device.
fn trace(rank: u32, op: &str, late: f64, runs: f64) -> String {
    let mut events = String::new();
    for step in 0..3 {
        let at = 1000.0 * f64::from(step + 1);
        let mut add = |category: &str, name: &str, pid: u32, tid: u32, from: f64, took: f64, args: &str| {
            let _ = write!(
                events,
                r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {tid}, "ts": {:.3}, "dur": {took:.3}, "args": {{{args}}}}},"#,
                at + from
            );
        };
        let link = |n: u32| format!(r#""correlation": {}"#, 10 * (step + 1) + n);
        add("user_annotation", &format!("ProfilerStep#{step}"), 1, 1, 0.0, 1000.0, "");
        add("cpu_op", "aten::mm", 1, 1, 1.0, late - 11.0, "");
        add("cuda_runtime", "cudaLaunchKernel", 1, 1, 5.0, 5.0, &link(1));
        add("kernel", "gemm", 0, 7, 12.0, 20.0, &format!(r#"{}, "device": 0, "stream": 7"#, link(1)));
        add("cuda_runtime", "cudaLaunchKernel", 1, 1, late - 6.0, 5.0, &link(2));
        let said = format!(
            r#"{}, "device": 0, "stream": 7, "Collective name": "{op}", "In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "Float", "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]""#,
            link(2)
        );
        add("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 7, late, runs, &said);
        add("cuda_runtime", "cudaDeviceSynchronize", 1, 1, late + 4.0, 900.0 - late - 4.0, &link(3));
    }
    events.pop();
    format!(
        r#"{{"schemaVersion": 1, "distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": 2}}, "deviceProperties": [{{"id": 0, "name": "NVIDIA H200"}}], "traceEvents": [{events}]}}"#
    )
}

/// A job of two ranks: the second comes 400 us later and does not wait.
fn job(folder: &Path, second: &str) {
    std::fs::write(folder.join("rank0.json"), trace(0, "allreduce", 400.0, 496.0)).expect("a file");
    std::fs::write(folder.join("rank1.json"), trace(1, second, 800.0, 96.0)).expect("a file");
}

fn ms(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[test]
fn ranks_that_meet_are_predicted_together() {
    let folder = tempfile::tempdir().expect("a folder");
    job(folder.path(), "allreduce");
    let answer = json(&["predict", text(folder.path())]);
    assert_eq!((&answer["command"], &answer["world"]), (&"predict".into(), &2.into()));
    let met = &answer["collectives"][0];
    assert_eq!((&met["op"], &met["last"], &met["bytes"]), (&"all_reduce".into(), &1.into(), &4096.into()));
    assert!((ms(&met["moves_ms"]) - 0.096).abs() < 1e-9, "{met}");
    assert!(ms(&met["waits_ms"][0]) > 0.2 && ms(&met["waits_ms"][1]) == 0.0, "{met}");
    for rank in answer["ranks"].as_array().expect("ranks") {
        let parts = ["computes_ms", "moves_ms", "waits_ms", "idles_ms"].map(|part| ms(&rank[part]));
        assert!((parts.iter().sum::<f64>() - ms(&answer["step_ms"])).abs() < 1e-6, "{rank}");
    }
    let path = answer["critical_path"].as_array().expect("a path");
    assert!((path.iter().map(|piece| ms(&piece["ms"])).sum::<f64>() - ms(&answer["step_ms"])).abs() < 1e-6);
    let said = stdout(&["predict", text(folder.path())]);
    assert!(said.contains("critical path: rank 1"), "{said}");
    assert!(stdout(&["predict", text(folder.path()), "--csv"]).starts_with("table,rank,name,bytes"));

    let timeline = folder.path().join("timeline.json");
    stdout(&["predict", text(folder.path()), "--timeline", text(&timeline)]);
    let drawn: Value =
        serde_json::from_str(&std::fs::read_to_string(&timeline).expect("a file")).expect("JSON");
    let events = drawn["traceEvents"].as_array().expect("events");
    let named = |name: &str| events.iter().filter(|event| event["name"] == name).count();
    assert_eq!(named("waits for rank 1"), 1);
    assert_eq!(events.iter().filter(|event| event["args"]["name"] == "rank 0").count(), 1);
    std::fs::remove_file(&timeline).expect("a file to remove");

    // A rank predicted alone has a doubt that it is one of two.
    let alone = json(&["predict", text(folder.path()), "--rank", "0"]);
    assert_eq!(alone["doubts"][0]["kind"], "ranks");
    let refused = steptime(&["predict", text(folder.path()), "--method", "paper"]).assert().code(2);
    let wrong = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(words(&wrong).contains("--rank N"), "{wrong}");
}

#[test]
fn who_waits_for_whom_is_told_as_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    job(folder.path(), "allreduce");
    let recorded = json(&["inspect", text(folder.path())])["job"].clone();
    assert_eq!(recorded["steps"], 3);
    let straggler = &recorded["stragglers"][0];
    assert_eq!(
        (&straggler["rank"], &straggler["by"], &straggler["last"]),
        (&1.into(), &"host".into(), &1.0.into())
    );
    assert!((ms(&straggler["keeps_waiting_ms"]) - 0.4).abs() < 1e-9, "{straggler}");
    assert_eq!(straggler["reasons"][0]["what"], "aten::mm");
    assert!((ms(&straggler["reasons"][0]["longer_ms"]) - 0.4).abs() < 0.02, "{straggler}");
    assert!((ms(&recorded["ranks"][0]["waits_ms"]) - 0.4).abs() < 1e-9, "{recorded}");
    assert_eq!(recorded["warnings"], Value::Array(Vec::new()));
    let said = words(&stdout(&["inspect", text(folder.path())]));
    assert!(said.contains("rank 1 keeps others waiting for 0.400 ms a step"), "{said}");
}

#[test]
fn collectives_that_do_not_match_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    job(folder.path(), "all_to_allv");
    let wrong = words(&failure(&["predict", text(folder.path())]));
    assert!(wrong.contains("group 0 of 2, collective 1 of the step: rank 0 does all_reduce"), "{wrong}");
    // The contents of the traces are still shown.
    let inspected = json(&["inspect", text(folder.path())]);
    assert!(inspected["job"].is_null());
    assert!(inspected["warnings"][0].as_str().expect("words").contains("wait for each other for ever"));
}

#[test]
fn a_rank_without_its_collectives_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    job(folder.path(), "allreduce");
    let rank1 = folder.path().join("rank1.json");
    let whole = std::fs::read_to_string(&rank1).expect("a file");
    // Cut in its first step, before the collective.
    let cut = whole.find("ncclDevKernel").expect("a collective") - 60;
    std::fs::write(&rank1, &whole[..cut]).expect("a file");
    let wrong = words(&failure(&["predict", text(folder.path())]));
    assert!(wrong.contains("rank 0 takes part in 1 collectives of the step, rank 1 in 0"), "{wrong}");
    assert!(words(&stdout(&["inspect", text(folder.path())])).contains("! group 0 of 2: rank 0 takes part"));
    // Without the arguments of NCCL, the operation is inferred from the kernels, and the members from the other ranks.
    let bare =
        whole.replace(r#""Collective name""#, r#""Unknown name""#).replace("Process Group", "Another Group");
    std::fs::write(&rank1, bare).expect("a file");
    let answer = json(&["predict", text(folder.path())]);
    assert_eq!(answer["collectives"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&answer["collectives"][0]["op"], &answer["collectives"][0]["bytes"]),
        (&"all_reduce".into(), &4096.into())
    );
}

#[test]
fn ranks_of_different_runs_are_doubted() {
    let folder = tempfile::tempdir().expect("a folder");
    job(folder.path(), "allreduce");
    let rank1 = folder.path().join("rank1.json");
    let whole = std::fs::read_to_string(&rank1).expect("a file");
    // The second and third step of the other rank are later, each by more.
    let later = |text: &str, step: u32, by: u32| {
        text.replace(&format!("\"ts\": {step}"), &format!("\"ts\": {}", step + by))
    };
    std::fs::write(&rank1, later(&later(&whole, 3, 2), 2, 1)).expect("a file");
    let answer = json(&["predict", text(folder.path())]);
    let kinds: Vec<&str> =
        answer["doubts"].as_array().expect("doubts").iter().filter_map(|d| d["kind"].as_str()).collect();
    assert!(kinds.contains(&"ranks"), "{answer}");
    assert_eq!(json(&["inspect", text(folder.path())])["job"]["stragglers"], Value::Array(Vec::new()));
}

#[test]
fn a_job_of_which_ranks_are_missing_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    for rank in 0..2 {
        let whole =
            trace(rank, "allreduce", 400.0 + 400.0 * f64::from(rank), 496.0 - 400.0 * f64::from(rank));
        let of_four =
            whole.replace(r#""Group size": 2"#, r#""Group size": 4"#).replace("[0, 1]", "[0, 1, 2, 3]");
        std::fs::write(folder.path().join(format!("rank{rank}.json")), of_four).expect("a file");
    }
    let answer = json(&["predict", text(folder.path())]);
    assert_eq!(answer["world"], 4);
    assert!(
        answer["doubts"][0]["text"].as_str().expect("words").starts_with("2 of 4 ranks are given"),
        "{answer}"
    );
}

#[test]
fn recorded_jobs_are_predicted_well() {
    let Some(shared) = steptime_skips::shared(env!("CARGO_MANIFEST_DIR"), "traces/multi_gpu") else { return };
    let (two, four) = (shared.join("x2"), shared.join("x4"));
    let answer = json(&["validate", text(&two), text(&four)]);
    assert_eq!(answer["jobs"].as_array().map(Vec::len), Some(11));
    assert!(ms(&answer["simulate"]["mean"]) < 0.04, "{}", answer["simulate"]);
    assert!(ms(&answer["simulate"]["gmae"]) < 0.025, "{}", answer["simulate"]);
    assert!(ms(&answer["replay"]["max"]) < 0.05, "{}", answer["replay"]);
    // A rank predicted alone counts its waiting as work.
    assert!(ms(&answer["first_rank"]["mean"]) > ms(&answer["simulate"]["mean"]));
    let example = root().join("examples/dlrm_default_2048");
    let mixed = words(&failure(&["validate", text(&two), text(&example)]));
    assert!(mixed.contains("validate jobs and single recordings apart"), "{mixed}");
}

#[test]
fn descriptions_tell_recorded_jobs_apart_better_than_a_planner() {
    let Some(shared) = steptime_skips::shared(env!("CARGO_MANIFEST_DIR"), "traces/multi_gpu") else { return };
    let (two, four) = (shared.join("x2"), shared.join("x4"));
    let models = ["--model", "benches/jobs", "--model", "examples/models"];
    let args = ["validate", text(&two), text(&four), "--planner", "torchrec", "--kernels", "h200"];
    let answer = json(&[&args[..], &models].concat());
    let (described, planned) = (&answer["described"], &answer["planned"]);
    assert_eq!((answer["jobs"].as_array().map(Vec::len), &described["pairs"]), (Some(11), &55.into()));
    // The spread of differences between plans in `shard` is from here.
    let spread = ms(&described["pair_spread"]);
    assert!((spread / steptime_predict::uncertainty().plans.difference.value - 1.0).abs() < 0.05, "{spread}");
    assert!(spread < ms(&planned["pair_spread"]), "{planned}");
    assert!(ms(&described["in_order"]) > ms(&planned["in_order"]), "{described} {planned}");
    assert_eq!(described["in_order_of_model"], described["pairs_of_model"], "{described}");
}

#[test]
fn collectives_are_priced_and_compared_with_a_sweep() {
    let answer = json(&[
        "collectives",
        "--device",
        "h200",
        "--gpus",
        "8,16",
        "--op",
        "all_reduce",
        "--bytes",
        "64MiB",
    ]);
    let rows = answer["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    assert!(ms(&rows[0]["time_us"]) > 200.0 && ms(&rows[1]["time_us"]) > ms(&rows[0]["time_us"]), "{rows:?}");
    assert!(failure(&["collectives", "--device", "abacus"]).contains("known GPUs: a100"));
    steptime(&["collectives", "--device", "h200", "--op", "dance"]).assert().code(2);
    steptime(&["collectives", "--device", "h200", "--bytes", "-3"]).assert().code(2);

    let folder = tempfile::tempdir().expect("a folder");
    let sweep = folder.path().join("sweep.csv");
    std::fs::write(
        &sweep,
        "op,world,bytes,dtype,median_us\nall_reduce,2,67108864,float32,280\nbroadcast,2,x,float32,3\n",
    )
    .expect("a file");
    let wrong = failure(&["collectives", "--device", "h200", "--against", text(&sweep)]);
    assert!(wrong.contains("line 3: `x` is not a positive number (bytes)"), "{wrong}");
    if let Some(shared) = steptime_skips::shared(env!("CARGO_MANIFEST_DIR"), "traces/multi_gpu") {
        let measured = shared.join("collectives_x2.csv");
        let scores =
            json(&["collectives", "--device", "h200", "--against", text(&measured)])["against"].clone();
        for score in scores.as_array().expect("scores") {
            assert!(ms(&score["gmae"]) < 0.06 && ms(&score["mean"]) < 0.12, "{score}");
        }
    }
}
