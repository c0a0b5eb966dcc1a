//! Described models on several GPUs: predicted, placed, scaled.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{failure, json, stdout, steptime, text, words};

/// A model of six tables of which two are large.
const MODEL: &str = r#"model = "dlrm"
batch = 1024
dense = 13
bottom_mlp = [64, 32]
top_mlp = [64, 1]
loss = "mse"
tables = [
  { rows = 2_000_000, columns = 32, lookups = 40, count = 2 },
  { rows = 5_000, columns = 32, lookups = 2, count = 4 },
]
"#;

fn described(folder: &Path, parallel: &str) -> PathBuf {
    let path = folder.join("model.toml");
    std::fs::write(&path, format!("{MODEL}\n{parallel}")).expect("a file");
    path
}

fn ms(answer: &Value, key: &str) -> f64 {
    answer[key].as_f64().expect("a number")
}

#[test]
fn the_ranks_of_a_described_job_are_predicted_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = described(folder.path(), "[parallel]\ngpus = 2\nplacement = [[0, 1, 2, 3, 4, 5], []]");
    let args = ["predict", text(&bad), "--device", "h200"];
    let answer = json(&args);
    assert_eq!((&answer["world"], &answer["batch"]), (&Value::from(2), &Value::from(1024)));
    assert_eq!(answer["ranks"].as_array().map(Vec::len), Some(2));
    let uneven = ms(&answer, "step_ms");
    let waits = |rank: usize| ms(&answer["ranks"][rank], "waits_ms");
    assert!(waits(1) > 10.0 * waits(0), "the second rank has no table and waits");
    let even = described(folder.path(), "[parallel]\ngpus = 2");
    let answer_even = json(&["predict", text(&even), "--device", "h200"]);
    assert!(ms(&answer_even, "step_ms") < 0.97 * uneven);
    // One of two similar ranks is slower; a rank that is late anyway does not depend on its host's pace.
    let slowest = |answer: &Value| ms(&answer["slowest_host"], "times");
    assert!((1.01..1.015).contains(&slowest(&answer_even)), "{}", answer_even["slowest_host"]);
    assert!((1.0..1.001).contains(&slowest(&answer)), "{}", answer["slowest_host"]);
    assert!(words(&stdout(&["predict", text(&even), "--device", "h200"])).contains("2 ranks on NVIDIA H200"));
    // A rank predicted alone has a doubt about it.
    let alone = json(&["predict", text(&even), "--device", "h200", "--rank", "1"]);
    let doubts = alone["doubts"].as_array().expect("doubts");
    assert!(doubts.iter().any(|doubt| doubt["kind"] == "ranks"), "{doubts:?}");
    assert!(failure(&["predict", text(&even)]).contains("--device"));
}

#[test]
fn a_plan_is_found_written_read_and_told_in_both_formats() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = described(folder.path(), "");
    let plan = folder.path().join("plan.json");
    let found = json(&["shard", text(&model), "--gpus", "2", "--device", "h200", "-o", text(&plan)]);
    let tables = found["tables"].as_array().expect("tables");
    assert_eq!(tables.len(), 6);
    let tables_of = |gpu: usize| found["gpus"][gpu]["tables"].as_array().map_or(0, Vec::len);
    assert_eq!((tables_of(0), tables_of(1)), (3, 3), "the host bounds it: each has as many");
    let step = ms(&found["predicted"], "step_ms");
    assert!(ms(&found, "bound_ms") <= step, "loads do not add up further than in what was simulated");
    let others = found["others"].as_array().expect("others");
    for other in others {
        assert!(ms(other, "step_ms") >= step);
    }
    assert!(found["simulated"].as_u64().expect("a number") > others.len() as u64);
    let regret = &found["regret"];
    let above = 1.0 - ms(&found, "bound_ms") / step;
    assert!((ms(regret, "above_bound") - above).abs() < 1e-3, "{regret}");
    // It is more than the distance from the bound, and at most that and half of the uncertainty.
    let most = above + 0.5 * ms(regret, "spread");
    assert!(ms(regret, "expected") > above.max(0.01) && ms(regret, "expected") < most, "{regret}");
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(&plan).expect("a plan")).expect("JSON");
    let first = &written["plan"]["sparse_arch.embedding_bag_collection"]["t_0"];
    assert_eq!(first["sharding_type"], "table_wise");
    assert_eq!(first["shards"][0]["shard_sizes"], serde_json::json!([2_000_000, 32]));
    let told = json(&["shard", text(&model), "--device", "h200", "--evaluate", text(&plan)]);
    assert_eq!((&told["tables"], ms(&told["predicted"], "step_ms")), (&found["tables"], step));
    let matrix = folder.path().join("matrix.json");
    let args = ["shard", text(&model), "--device", "h200", "--evaluate", text(&plan)];
    stdout(&[&args[..], &["-o", text(&matrix), "--format", "hugectr"]].concat());
    let again = json(&["shard", text(&model), "--device", "h200", "--evaluate", text(&matrix)]);
    assert_eq!(again["tables"], found["tables"]);
    let page = words(&stdout(&args));
    assert!(page.contains("GPU alone ms"), "{page}");
}

#[test]
fn changes_that_simulations_find_make_the_step_shorter_and_the_same_ones_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("plan.json");
    let args =
        ["shard", "examples/models/dlrm_4_gpus.toml", "--gpus", "4", "--device", "h200", "-o", text(&plan)];
    let found = json(&args);
    assert!(found["changes"].as_u64().expect("a number") > 0);
    assert_eq!(
        found["found_by"], found["others"][0]["found_by"],
        "the plan before them is one of the others"
    );
    assert!(ms(&found["predicted"], "step_ms") < ms(&found["others"][0], "step_ms"));
    // Ranks that were priced once equal those of the whole job.
    let told =
        json(&["shard", "examples/models/dlrm_4_gpus.toml", "--device", "h200", "--evaluate", text(&plan)]);
    assert_eq!(told["predicted"]["step_ms"], found["predicted"]["step_ms"]);
    assert_eq!((&told["regret"], &told["changes"]), (&Value::Null, &Value::from(0)));
    assert_eq!(json(&args), found);
    let page = words(&stdout(&args));
    assert!(page.contains("that simulations found") && page.contains("expected regret at most"), "{page}");
}

#[test]
fn grids_are_read_simulated_and_written_as_torchrec_has_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = described(folder.path(), "");
    let (plan, again) = (folder.path().join("plan.json"), folder.path().join("again.json"));
    let shard = |rank: u32, offset: [i64; 2], size: [i64; 2]| {
        let placement = format!("rank:{rank}/cuda:{}", rank % 2);
        serde_json::json!({ "shard_offsets": offset, "shard_sizes": size, "placement": placement })
    };
    let cut = |kind: &str, ranks: &[u32], shards: Vec<Value>| serde_json::json!({ "sharding_type": kind, "compute_kernel": "fused", "ranks": ranks, "shards": shards });
    let half = 1_000_000;
    let grid = vec![
        shard(0, [0, 0], [half, 16]),
        shard(1, [half, 0], [half, 16]),
        shard(2, [0, 16], [half, 16]),
        shard(3, [half, 16], [half, 16]),
    ];
    let rows = vec![shard(2, [0, 0], [half, 32]), shard(3, [half, 0], [half, 32])];
    let mut tables = serde_json::json!({
        "t_0": cut("grid_shard", &[0, 1, 2, 3], grid),
        "t_1": cut("table_row_wise", &[2, 3], rows),
    });
    for (table, rank) in (2..6).zip(0..) {
        tables[format!("t_{table}")] = cut("table_wise", &[rank], vec![shard(rank, [0, 0], [5000, 32])]);
    }
    let written = serde_json::json!({ "plan": { "sparse_arch.embedding_bag_collection": tables } });
    std::fs::write(&plan, written.to_string()).expect("a plan");
    let args = ["shard", text(&model), "--device", "h200", "--nodes", "2", "--evaluate", text(&plan)];
    let told = json(&[&args[..], &["-o", text(&again)]].concat());
    assert_eq!((&told["tables"][0]["cut"], &told["tables"][1]["cut"]), (&"grid".into(), &"grid".into()));
    assert_eq!((&told["tables"][1]["gpus"], &told["nodes"]), (&serde_json::json!([2, 3]), &2.into()));
    let read: Value = serde_json::from_str(&std::fs::read_to_string(&again).expect("a plan")).expect("JSON");
    assert_eq!(read, written);
    assert!(words(&stdout(&args)).contains("2 tables cut into rows over some GPUs: 0 1"));
    let matrix = folder.path().join("matrix.json");
    let no_word = failure(&[&args[..], &["-o", text(&matrix), "--format", "hugectr"]].concat());
    assert!(
        no_word.contains("table 0 is cut into columns, which HugeCTR's matrices cannot express"),
        "{no_word}"
    );
    // A key of the description has the same effect.
    let keys = "[parallel]\ngpus = 4\nnodes = 2\ngrid = [{ table = 0, gpus = [[0, 1], [2, 3]] }, { table = 1, gpus = [[2, 3]] }]\n\
                placement = [[2], [3], [4], [5]]";
    let said = json(&["predict", text(&self::described(folder.path(), keys)), "--device", "h200"]);
    assert_eq!(said["step_ms"], told["predicted"]["step_ms"]);
}

#[test]
fn nodes_are_joined_by_their_network() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = described(folder.path(), "");
    let moved = |nodes: &str| {
        let args = ["scale", text(&model), "--device", "h200", "--gpus", "4,8", "--nodes", nodes];
        let rows = json(&args)["rows"].clone();
        [&rows[0], &rows[1]].map(|row| (row["nodes"].as_u64(), ms(row, "exposed_ms")))
    };
    let (one, two, each) = (moved("1"), moved("2"), moved("1,2"));
    assert!(two[0].1 > 1.2 * one[0].1 && two[1].1 > 1.2 * one[1].1, "{one:?} {two:?}");
    assert_eq!(each, [one[0], two[1]]);
    let scale = |more: &[&str]| {
        failure(&[&["scale", text(&model), "--device", "h200", "--gpus", "1,4"][..], more].concat())
    };
    assert!(scale(&["--nodes", "2"]).contains("1 GPU cannot be divided among 2 nodes"));
    assert!(scale(&["--nodes", "1,3"]).contains("among which 4 GPUs cannot be divided evenly"));
    let three = ["scale", text(&model), "--device", "h200", "--gpus", "1,4", "--nodes", "1,1,1"];
    let refused = steptime(&three).assert().code(2).get_output().stderr.clone();
    assert!(String::from_utf8(refused).expect("UTF-8").contains("give one for all, or one for each"));
    // A table that is much larger than all others may be on the GPUs of one node.
    let args = ["shard", text(&model), "--gpus", "4", "--nodes", "2", "--device", "h200"];
    let found = json(&args);
    assert_eq!(found["nodes"], 2);
    assert!(ms(&found, "bound_ms") <= ms(&found["predicted"], "step_ms"));
    let plot = folder.path().join("scale.svg");
    stdout(&["scale", text(&model), "--device", "h200", "--gpus", "1,2,4", "--plot", text(&plot)]);
    let svg = std::fs::read_to_string(&plot).expect("a plot");
    assert!(svg.starts_with("<svg") && svg.contains("samples a second") && svg.contains("90 % interval"));
    assert!(scale(&["--plot", text(&model)]).contains("model.toml"), "the description is not written over");
}

#[test]
fn a_planner_is_put_beside_what_was_measured() {
    let args = ["validate", "examples/jobs/dlrm_4096_x4", "--planner", "torchrec", "--kernels", "h200"];
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("dlrm_r1.toml");
    let text_of =
        std::fs::read_to_string(crate::root().join("examples/models/dlrm_4_gpus.toml")).expect("a model");
    let alone = text_of.split("[parallel]").next().expect("a part");
    std::fs::write(&model, alone.replace("batch = 4096", "batch = 1024")).expect("a file");
    let answer = json(&[&args[..], &["--model", text(folder.path())]].concat());
    let row = &answer["jobs"][0];
    assert_eq!((&row["name"], &row["ranks"]), (&"dlrm_4096_x4".into(), &4.into()));
    // Batch and placement are the recorded ones, as in the description that has them.
    let told = json(&["predict", "examples/models/dlrm_4_gpus.toml", "--device", "h200"]);
    assert_eq!(row["described_ms"], told["step_ms"]);
    let named = json(&[&args[..], &["--model", "examples/models/dlrm_4_gpus.toml"]].concat());
    assert_eq!(named["jobs"], answer["jobs"]);
    let error = ms(row, "planned_ms") / ms(row, "measured_ms") - 1.0;
    assert!((ms(row, "planned_error") - error).abs() < 1e-9 && ms(row, "planned_ms") > 0.0);
    assert!(words(&stdout(&[&args[..], &["--model", text(&model)]].concat())).contains("TorchRec's planner"));
    let failure = |more: &[&str]| failure(&[&args[..], more].concat());
    let other = tempfile::tempdir().expect("a folder");
    assert!(failure(&["--model", text(other.path())]).contains("no dlrm_r1.toml in"));
    assert!(failure(&["--model", "examples/models/dlrm_default.toml"]).contains("it is of another model"));
    assert!(
        crate::failure(&[
            "validate",
            "examples/dlrm_default_2048",
            "--planner",
            "torchrec",
            "--model",
            text(&model)
        ])
        .contains("--planner compares jobs")
    );
    let measured = [&args[..4], &["--model", text(&model)]].concat();
    let refused = steptime(&measured).assert().code(2).get_output().stderr.clone();
    assert!(String::from_utf8(refused).expect("UTF-8").contains("--kernels NAME"));
}

#[test]
fn bad_plans_and_tables_that_do_not_fit_are_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = described(folder.path(), "");
    let shard = |more: &[&str]| failure(&[&["shard", text(&model), "--device", "h200"][..], more].concat());
    let plan = folder.path().join("plan.json");
    for (written, said) in [
        ("{", "not JSON"),
        ("[1]", "a plan is"),
        (
            r#"{"plan": {"m": {"t_9": {"sharding_type": "table_wise", "shards": []}}}}"#,
            "table `t_9` is not of this model",
        ),
        (r#"{"plan": {"m": {}}}"#, "table t_0 is not placed"),
        (r#"{"shard_matrix": [["t_0"], ["t_1"]]}"#, "table t_2 is not placed"),
    ] {
        std::fs::write(&plan, written).expect("a file");
        let error = shard(&["--evaluate", text(&plan)]);
        assert!(error.contains(said), "{written}: {error}");
    }
    let small = shard(&["--gpus", "2", "--memory", "0.05"]);
    assert!(small.contains("needs 0.") && small.contains("use more GPUs"), "{small}");
    assert!(shard(&["--gpus", "3"]).contains("cannot be divided evenly among 3 GPUs"));
    steptime(&["shard", text(&model), "--device", "h200"]).assert().code(2);
    steptime(&["shard", text(&model), "--gpus", "2", "--device", "h200", "--memory", "-1"]).assert().code(2);
    // A plan that does not fit memory has a predicted time, and a doubt that it does not run.
    let large = std::fs::read_to_string(&model).expect("read").replace("2_000_000", "900_000_000");
    let path = folder.path().join("large.toml");
    std::fs::write(&path, format!("{large}\n[parallel]\ngpus = 2\nplacement = [[0, 1], []]"))
        .expect("a file");
    let told = json(&["predict", text(&path), "--device", "h200"]);
    let doubt = told["doubts"][0]["text"].as_str().expect("a doubt");
    assert!(
        doubt.starts_with("rank 0: its tensors need 230.") && doubt.contains("run out of memory"),
        "{doubt}"
    );
    assert!(failure(&["scale", "examples", "--device", "h200"]).contains("not the ranks of one job"));
    // The description is not written over.
    assert!(
        failure(&["shard", text(&model), "--gpus", "2", "--device", "h200", "-o", text(&model)])
            .contains("model.toml")
    );
}

#[test]
fn ranks_that_are_changed_lie_in_the_nodes_of_the_description() {
    let folder = tempfile::tempdir().expect("a folder");
    let changes = folder.path().join("changes.toml");
    std::fs::write(&changes, "operators = \"fbgemm\"").expect("a file");
    let moved = |parallel: &str, more: &[&str]| -> f64 {
        let model = described(folder.path(), parallel);
        let args = ["predict", text(&model), "--device", "h200", "--changes", text(&changes)];
        let answer = json(&[&args[..], more].concat());
        let all = answer["collectives"].as_array().expect("collectives").clone();
        all.iter().map(|met| ms(met, "moves_ms")).sum()
    };
    let (one, two) = (moved("[parallel]\ngpus = 4", &[]), moved("[parallel]\ngpus = 4\nnodes = 2", &[]));
    assert!(two > 1.2 * one, "{one} {two}");
    assert_eq!(moved("[parallel]\ngpus = 4", &["--nodes", "2"]), two);
    assert_eq!(moved("[parallel]\ngpus = 4\nnodes = 2", &["--nodes", "1"]), one);
}

/// A model of a table that no GPU holds, and a small one.
const HUGE: &str = r#"model = "dlrm"
batch = 4096
dense = 13
bottom_mlp = [64, 32]
top_mlp = [64, 1]
tables = [
  { rows = 3_000_000_000, columns = 32, lookups = 10 },
  { rows = 2_000_000, columns = 32, lookups = 4, count = 3 },
]
"#;

fn with<'t>(model: &'t Path, more: &[&'t str]) -> Vec<&'t str> {
    [&["shard", text(model), "--device", "h200"][..], more].concat()
}

#[test]
fn a_table_that_no_gpu_holds_lies_in_host_memory_where_that_is_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("huge.toml");
    std::fs::write(&model, HUGE).expect("a file");
    let plan = folder.path().join("plan.json");
    let small = failure(&with(&model, &["--gpus", "2"]));
    assert!(small.contains("table 0 needs") && small.contains("allow tables in host memory"), "{small}");
    let small = failure(&with(&model, &["--gpus", "2", "--host-memory", "100"]));
    assert!(
        small.contains("in the memory of a host") && small.contains("of 100.00 GiB: allow more"),
        "{small}"
    );
    let args = with(&model, &["--gpus", "2", "--host-memory", "400", "-o", text(&plan)]);
    let found = json(&args);
    let cached = &found["tables"][0]["cached"];
    assert_eq!(found["tables"][1]["cached"], Value::Null);
    assert!(cached["misses"].as_u64().is_some_and(|rows| (40_000..=40_960).contains(&rows)), "{cached}");
    assert_eq!((ms(cached, "host_mb"), &found["hosts_mb"]), (384_000.0, &serde_json::json!([384_000.0])));
    assert!(ms(&found, "bound_ms") <= ms(&found["predicted"], "step_ms"));
    let doubts = found["predicted"]["doubts"].as_array().expect("doubts");
    assert!(doubts.iter().any(|doubt| doubt["kind"] == "cache"), "what is estimated is said: {doubts:?}");
    // Its GPU holds only a cache.
    assert!(found["gpus"].as_array().expect("GPUs").iter().all(|gpu| ms(gpu, "peak_mb") < 2000.0), "{found}");
    let page = words(&stdout(&args));
    assert!(page.contains("1 table is in host memory: cache misses, "), "{page}");
    assert!(page.contains("1 table in host memory, 384.0 GB a node: 0 ("), "{page}");
    // Written in TorchRec's format, read again, and priced the same.
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(&plan).expect("a plan")).expect("JSON");
    let tables = &written["plan"]["sparse_arch.embedding_bag_collection"];
    assert_eq!(tables["t_0"]["compute_kernel"], "fused_uvm_caching");
    assert_eq!(tables["t_1"]["compute_kernel"], "fused");
    let told = json(&with(&model, &["--evaluate", text(&plan)]));
    assert_eq!((&told["tables"], &told["predicted"]), (&found["tables"], &found["predicted"]));
    // Skewed lookups miss less, and so does a cache of a fifth of the rows, which is TorchRec's default.
    let skewed = json(&with(&model, &["--evaluate", text(&plan), "--indices", "zipf:1.05"]));
    let misses = |answer: &Value| ms(&answer["tables"][0]["cached"], "misses");
    assert!(misses(&skewed) < 0.5 * misses(&told), "{} {}", misses(&skewed), misses(&told));
    let plain = written.to_string().replace(&tables["t_0"]["cache_params"].to_string(), "null");
    std::fs::write(&plan, &plain).expect("a file");
    let usual = json(&with(&model, &["--evaluate", text(&plan)]));
    assert_eq!(usual["tables"][0]["cached"]["rows"], 600_000_000);
    assert!(misses(&usual) < misses(&told));
    // A placement without a word in the format, or an unknown one, is refused.
    let matrix = folder.path().join("matrix.json");
    let words = failure(&[&args[..args.len() - 1], &[text(&matrix), "--format", "hugectr"]].concat());
    assert!(words.contains("table 0 is in host memory behind a cache"), "{words}");
    for (old, new, said) in [
        ("fused_uvm_caching", "fused_uvm", "compute kernel `fused_uvm` is not known"),
        (
            "\"cache_params\":null",
            "\"cache_params\":{\"load_factor\":2}",
            "`load_factor` of `cache_params` is 2",
        ),
    ] {
        std::fs::write(&plan, plain.replace(old, new)).expect("a file");
        let words = failure(&with(&model, &["--evaluate", text(&plan)]));
        assert!(words.contains(said), "{words}");
    }
    std::fs::write(&plan, plain).expect("a file");
    let words = failure(&["predict", "examples/dlrm_default_2048", "--world", "2", "--plan", text(&plan)]);
    assert!(words.contains("is not of this model") || words.contains("t_4 is not placed"), "{words}");
}

#[test]
fn a_model_is_scaled() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = described(folder.path(), "");
    let args = ["scale", text(&model), "--device", "h200", "--gpus", "4,1,64", "--price", "2"];
    let answer = json(&args);
    let rows = answer["rows"].as_array().expect("rows");
    let gpus: Vec<i64> = rows.iter().filter_map(|row| row["gpus"].as_i64()).collect();
    assert_eq!(gpus, [1, 4, 64]);
    assert!((ms(&rows[0], "efficiency") - 1.0).abs() < 1e-9 && ms(&rows[2], "efficiency") < 0.5);
    assert_eq!(rows[1]["batch"], 1024);
    let cost = |row: &Value| 2.0 * ms(row, "gpus") * 1e9 / ms(row, "samples_per_s") / 3600.0;
    assert!((ms(&rows[1], "cost") / cost(&rows[1]) - 1.0).abs() < 1e-9);
    let weak = json(&[&args[..], &["--weak"]].concat());
    assert_eq!(weak["rows"][2]["batch"], 64 * 1024);
    assert!(words(&stdout(&args)).contains("all GPUs share the samples"));
}

/// A plan of two tables, the second row-wise over GPUs with these numbers of rows.
fn plan(rows: &[u64]) -> String {
    let shard = |gpu: usize, first: u64, rows: u64| serde_json::json!({ "placement": format!("rank:{gpu}/cuda:{gpu}"), "shard_offsets": [first, 0], "shard_sizes": [rows, 64] });
    let (mut first, mut shards) = (0, Vec::new());
    for (gpu, &rows) in rows.iter().enumerate() {
        shards.push(shard(gpu, first, rows));
        first += rows;
    }
    let ranks: Vec<usize> = (0..rows.len()).collect();
    let kind = if rows.len() == 1 { "table_wise" } else { "row_wise" };
    let small =
        serde_json::json!({ "sharding_type": "table_wise", "ranks": [1], "shards": [shard(1, 0, 1000)] });
    let large = serde_json::json!({ "sharding_type": kind, "ranks": ranks, "shards": shards });
    serde_json::json!({ "plan": { "bags": { "t_0": small, "t_1": large } } }).to_string()
}

#[test]
fn a_shard_has_lookups_in_proportion_to_its_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("model.toml");
    let tables = "{ rows = 1000, columns = 64 }, { rows = 2_000_000, columns = 64, lookups = 100 }";
    let text_of = format!(
        "model = \"dlrm\"\nbatch = 16384\ndense = 13\nbottom_mlp = [64]\ntop_mlp = [1]\ntables = [{tables}]\noptimizer = {{ name = \"sgd\" }}\n"
    );
    std::fs::write(&model, text_of).expect("a file");
    let step = |name: &str, rows: &[u64], more: &[&str]| {
        let path = folder.path().join(name);
        std::fs::write(&path, plan(rows)).expect("a file");
        let asked = ["shard", text(&model), "--gpus", "4", "--device", "a100", "--evaluate", text(&path)];
        json(&[&asked[..], more].concat())["predicted"]["step_ms"].as_f64().expect("a number")
    };
    let whole = step("whole.json", &[2_000_000], &[]);
    let nearly_all = step("nearly_all.json", &[1_940_000, 20_000, 20_000, 20_000], &[]);
    let all_but_three = step("all_but_three.json", &[1_999_997, 1, 1, 1], &[]);
    let even = step("even.json", &[500_000; 4], &[]);
    assert!((nearly_all / whole - 1.0).abs() < 0.15, "97 % of the rows {nearly_all} ms, all {whole} ms");
    assert!(
        (all_but_three / whole - 1.0).abs() < 0.15,
        "all rows but three {all_but_three} ms, all {whole} ms"
    );
    assert!(even < 0.7 * whole, "a fourth of the rows {even} ms, all {whole} ms");
    // The first rows are the popular ones of this distribution.
    let first = step("first.json", &[1000, 666_333, 666_333, 666_334], &["--indices", "folded-zipf:1.3"]);
    let last = step("last.json", &[666_334, 666_333, 666_333, 1000], &["--indices", "folded-zipf:1.3"]);
    assert!((first / last - 1.0).abs() > 0.1, "popular rows apart {first} ms, with the others {last} ms");
}
