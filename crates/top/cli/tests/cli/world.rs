//! A job made from one rank's step.

use serde_json::{Value, json};

use crate::{failure, json as answer, root, stdout, steptime, text, words};

const IMAGES: &str = "examples/resnet50_32";
const TABLES: &str = "examples/dlrm_default_2048";

fn ms(answer: &Value) -> f64 {
    answer["step_ms"].as_f64().expect("a number")
}

#[test]
fn a_rank_stands_for_all() {
    let job = answer(&["predict", IMAGES, "--world", "8"]);
    assert_eq!([&job["world"], &job["batch"]], [&json!(8), &json!(256)]);
    assert_eq!(job["ranks"].as_array().map(Vec::len), Some(1));
    let sums =
        job["collectives"].as_array().expect("collectives").iter().filter(|met| met["op"] == "all_reduce");
    assert!(sums.clone().all(|met| met["size"] == 8), "{job}");
    assert_eq!(sums.count(), 5);
    assert!(ms(&job) > ms(&answer(&["predict", IMAGES])));
    let shown = words(&stdout(&["predict", IMAGES, "--world", "8"]));
    assert!(shown.contains("8 ranks on NVIDIA H200"), "{shown}");
    assert!(shown.contains("161 gradients (102.2 MB) averaged over 8 ranks in 5 buckets"), "{shown}");
}

#[test]
fn gradients_as_bf16_are_half_as_much() {
    let bytes = |args: &[&str]| -> u64 {
        let job = answer(&[&["predict", IMAGES, "--world", "8"], args].concat());
        let all = job["collectives"].as_array().expect("collectives").clone();
        all.iter().filter(|met| met["op"] == "all_reduce").filter_map(|met| met["bytes"].as_u64()).sum()
    };
    assert_eq!(bytes(&[]), 2 * bytes(&["--send", "bf16"]));
}

#[test]
fn gpus_in_several_machines_exchange_over_their_network() {
    let job = |args: &[&str]| answer(&[&["predict", IMAGES, "--world", "8"], args].concat());
    let moved = |job: &Value| -> f64 {
        let all = job["collectives"].as_array().expect("collectives");
        all.iter().filter_map(|met| met["moves_ms"].as_f64()).sum()
    };
    let (usual, one, two, four) =
        (job(&[]), job(&["--nodes", "1"]), job(&["--nodes", "2"]), job(&["--nodes", "4"]));
    // Eight such GPUs are in one machine.
    assert_eq!((ms(&usual), moved(&usual)), (ms(&one), moved(&one)));
    assert!(moved(&two) > 1.2 * moved(&one) && moved(&four) > moved(&two), "{} {}", moved(&one), moved(&two));
    assert!(ms(&two) >= ms(&one));
    // The same price as for a described job of as many nodes.
    let args =
        ["collectives", "--device", "h200", "--gpus", "8", "--gpus-per-node", "4", "--op", "all_reduce"];
    let largest = |job: &Value| {
        let all = job["collectives"].as_array().expect("collectives").iter();
        let sums = all.filter(|met| met["op"] == "all_reduce");
        let key = |met: &&Value| met["bytes"].as_u64();
        let met = sums.max_by_key(key).expect("a sum").clone();
        (met["bytes"].as_u64().expect("bytes"), met["moves_ms"].as_f64().expect("a time"))
    };
    let (bytes, moves) = largest(&two);
    let priced = answer(&[&args[..], &["--bytes", &bytes.to_string()]].concat());
    let in_step = priced["rows"][0]["in_step_us"].as_f64().expect("a time");
    assert!((moves - in_step / 1e3).abs() < 1e-3, "{moves} {in_step}");
}

/// A plan in TorchRec's format: four tables on the first GPU, four by rows over both.
#[test]
fn tables_lie_where_a_plan_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plan.json");
    let shard = |rank: u32, row: u32, rows: u32| json!({ "shard_offsets": [row, 0], "shard_sizes": [rows, 64], "placement": format!("rank:{rank}/cuda:{rank}") });
    let table = |at: usize| {
        let name = format!("t_{at}");
        let said = if at < 4 {
            json!({ "sharding_type": "table_wise", "ranks": [0], "shards": [shard(0, 0, 1_000_000)] })
        } else {
            let both = [shard(0, 0, 500_000), shard(1, 500_000, 500_000)];
            json!({ "sharding_type": "row_wise", "ranks": [0, 1], "shards": both })
        };
        (name, said)
    };
    let tables: serde_json::Map<String, Value> = (0..8).map(table).collect();
    std::fs::write(&path, json!({ "plan": { "tables": tables } }).to_string()).expect("a file");
    let plan = path.to_str().expect("a path");
    let job = answer(&["predict", TABLES, "--world", "2", "--global-batch", "2048", "--plan", plan]);
    let ops: Vec<&str> =
        job["collectives"].as_array().expect("some").iter().filter_map(|met| met["op"].as_str()).collect();
    for op in ["all_to_all", "reduce_scatter", "all_gather", "all_reduce"] {
        assert!(ops.contains(&op), "{op} of {ops:?}");
    }
    let waits = |rank: usize| job["ranks"][rank]["waits_ms"].as_f64().expect("a number");
    assert!(waits(1) > waits(0), "the second has four tables less");
    let few = failure(&["predict", TABLES, "--world", "1", "--plan", plan]);
    assert!(few.contains("the plan is for 2 GPUs"), "{few}");
    let none = failure(&["predict", IMAGES, "--world", "2", "--plan", plan]);
    assert!(none.contains("t_0"), "{none}");
}

#[test]
fn what_makes_no_job_is_refused() {
    for (args, said) in [
        (&["--world", "3", "--global-batch", "2048"][..], "3 ranks cannot share 2048 samples evenly"),
        (&["--world", "0"], "0 is not in"),
        (&["--world", "2", "--method", "paper"], "--method"),
        (&["--world", "2", "--device", "h200,a100"], "--device of several GPUs"),
        (&["--global-batch", "2048"], "give --world RANKS"),
        (&["--nodes", "2"], "--nodes applies to a job made from one rank's step: give --world RANKS"),
        (&["--world", "8", "--nodes", "3"], "8 ranks cannot be divided evenly among 3 nodes"),
        (&["--world", "2", "--blocks", "module:x"], "--parallel fsdp"),
        (&["--world", "2", "--plan", "no.json"], "no.json"),
    ] {
        let refused = steptime(&[&["predict", TABLES], args].concat()).assert().failure().stdout("");
        let error = words(&String::from_utf8_lossy(&refused.get_output().stderr));
        assert!(error.contains(said), "{args:?}: {error}");
    }
    let error = failure(&["predict", "examples/jobs/dlrm_4096_x4", "--rank", "0", "--world", "4"]);
    assert!(error.contains("already one rank of a job"), "{error}");
}

#[test]
fn a_rule_averages_too() {
    let shown = words(&stdout(&["whatif", IMAGES, "--data-parallel", "4", "--fuse", "optimizer"]));
    assert!(shown.contains("averaged over 4 ranks"), "{shown}");
    assert!(failure(&["whatif", TABLES, "--data-parallel", "4"]).contains("NCCL does not average"));
}

#[test]
fn a_recording_and_its_execution_trace_scale_as_their_worlds_do() {
    let scaled = answer(&["scale", IMAGES, "--gpus", "1,4", "--weak", "--price", "2"]);
    let rows = scaled["rows"].as_array().expect("rows");
    let job = answer(&["predict", IMAGES, "--world", "4"]);
    assert_eq!(ms(&rows[0]), ms(&answer(&["predict", IMAGES])));
    assert_eq!(
        (ms(&rows[1]), &rows[1]["batch"], &rows[1]["interval_ms"]),
        (ms(&job), &json!(128), &job["interval_ms"])
    );
    assert_eq!(rows[1]["samples_per_s"], job["samples_per_s"]);
    let shared = answer(&["scale", IMAGES, "--gpus", "4"]);
    let job = answer(&["predict", IMAGES, "--world", "4", "--global-batch", "32"]);
    assert_eq!((ms(&shared["rows"][0]), &shared["rows"][0]["batch"]), (ms(&job), &json!(32)));
    let said = words(&stdout(&["scale", "examples/resnet50_32", "--device", "a100", "--gpus", "1,2"]));
    assert!(said.contains("resnet50_32 on NVIDIA A100: all GPUs share the samples"), "{said}");
}

#[test]
fn what_cannot_be_scaled_is_refused_with_the_remedy() {
    assert!(failure(&["scale", IMAGES, "--gpus", "3"]).contains("--weak leaves 32 to each"));
    // A trace alone does not hold its batch.
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("et.json.gz");
    std::fs::copy(root().join("examples/resnet50_32/et.json.gz"), &trace).expect("a copy");
    assert!(
        failure(&["scale", text(&trace), "--gpus", "2", "--device", "h100"])
            .contains("record it with batch=N")
    );
    steptime(&["scale", "examples/models/dlrm_ddp.toml"]).assert().code(2);
}

#[test]
fn a_job_says_whose_hosts_and_collectives_it_takes() {
    let recorded = words(&stdout(&["predict", IMAGES, "--world", "8"]));
    assert!(recorded.contains("kernels measured, collectives modelled for NVIDIA H200"), "{recorded}");
    let trace = ["predict", "examples/resnet50_32/et.json.gz", "--device", "h200", "--world", "8"];
    let job = answer(&trace);
    assert_eq!((&job["host"], &job["host_slower_than"]["times"]), (&json!("default"), &json!(1.5)));
    assert!(job["doubts"].as_array().expect("doubts").iter().any(|doubt| doubt["kind"] == "host"), "{job}");
    assert!(words(&stdout(&trace)).contains("host default x 1.5,"));
}
