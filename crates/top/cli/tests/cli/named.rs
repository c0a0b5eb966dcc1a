//! Queries with arguments by name, as of Python: the answers are those of the command line, byte for byte.

use serde_json::{Value, json};
use steptime_cli::{CachedInput, Refusal, Request};

use crate::{root, text};

fn example(name: &str) -> String {
    let path = root().join("examples").join(name).canonicalize().expect("the example");
    text(&path).to_owned()
}

fn ask(command: &str, arguments: &Value, given: &str) -> Result<String, Refusal> {
    let arguments = arguments.to_string();
    steptime_cli::ask(&Request { command, arguments: &arguments, given, opened: &[] })
}

/// Asserts that the words and the named arguments have the same JSON.
fn same(command: &str, words: &[&str], named: Value) {
    let mut named = named;
    named["json"] = true.into();
    let typed =
        ["steptime"].into_iter().chain(command.split(' ')).chain(words.iter().copied()).chain(["--json"]);
    let typed =
        steptime_cli::capture(typed.map(Into::into)).unwrap_or_else(|error| panic!("{words:?}: {error:?}"));
    let asked = ask(command, &named, "").unwrap_or_else(|error| panic!("{named}: {error:?}"));
    assert!(typed.starts_with(['{', '[']), "{typed}");
    assert_eq!(typed, asked, "{command} {words:?}");
}

#[test]
fn answers_about_a_step_are_those_of_the_command_line() {
    let (dlrm, fused, resnet) =
        (example("dlrm_default_2048"), example("dlrm_default_fused_2048"), example("resnet50_32"));
    same("inspect", &[&dlrm, "--step=6"], json!({"input": dlrm, "step": 6}));
    same("predict", &[&dlrm], json!({"input": dlrm, "device": null, "tf32": false}));
    same(
        "predict",
        &[
            &dlrm,
            "--device=a100",
            "--host=default",
            "--host-speed=0.5",
            "--models=analytic",
            "--indices=zipf:1.05",
            "--tf32",
            "--process=fresh",
        ],
        json!({
            "input": dlrm, "device": "a100", "host": "default", "host_speed": 0.5, "models": "analytic", "indices": "zipf:1.05",
            "tf32": true, "process": "fresh",
        }),
    );
    same("predict", &[&dlrm, "--method=kernel-sum"], json!({"input": dlrm, "method": "kernel-sum"}));
    same("predict", &[&dlrm, "--keep-profiler"], json!({"input": dlrm, "keep_profiler": true}));
    same(
        "whatif",
        &[
            &dlrm,
            "--batch=8192",
            "--recorded-batch=2048",
            "--batch-dim=0",
            "--set=tables[0].rows=500000",
            "--fuse=embedding-bags,linear",
        ],
        json!({
            "input": dlrm, "batch": 8192, "recorded_batch": 2048, "batch_dim": 0, "set": ["tables[0].rows=500000"],
            "fuse": ["embedding-bags", "linear"],
        }),
    );
    same(
        "whatif",
        &[
            &dlrm,
            "--dtype=bf16",
            "--prefetch-inputs",
            "--accumulate=2",
            "--cuda-graph",
            "--host-speed=2",
            "--device=h100",
        ],
        json!({
            "input": dlrm, "dtype": "bf16", "prefetch_inputs": true, "accumulate": 2, "cuda_graph": true,
            "host_speed": 2, "device": "h100",
        }),
    );
    same("whatif", &[&resnet, "--checkpoint"], json!({"input": resnet, "checkpoint": true}));
    same(
        "whatif",
        &[&resnet, "--checkpoint=2", "--channels-last"],
        json!({"input": resnet, "checkpoint": 2, "channels_last": true}),
    );
    same("whatif", &[&resnet, "--remove=aten::relu_"], json!({"input": resnet, "remove": ["aten::relu_"]}));
    same("explain", &[&dlrm, "--device=h200"], json!({"input": dlrm, "device": "h200"}));
    same("roofline", &[&dlrm, "--device=h200"], json!({"input": dlrm, "device": "h200"}));
    same("compare", &[&dlrm, &fused, "--host=own"], json!({"a": dlrm, "b": fused, "host": "own"}));
    same("choose", &[&resnet, "--device=h100,t4"], json!({"input": resnet, "device": ["h100", "t4"]}));
    same(
        "choose",
        &[&resnet, "--device=h100,t4", "--recorded-batch=32"],
        json!({"input": resnet, "device": "h100,t4", "recorded_batch": 32}),
    );
    same("validate", &[&dlrm, "--host=default"], json!({"recordings": [dlrm], "host": "default"}));
    same(
        "validate",
        &[&dlrm, &fused, "--replay-only"],
        json!({"recordings": [dlrm, fused], "replay_only": true}),
    );
}

#[test]
fn answers_about_profiles_and_jobs_are_those_of_the_command_line() {
    same("device list", &[], json!({}));
    same("device show", &["h200"], json!({"name": "h200"}));
    same("host show", &[], json!({"file": null}));
    same(
        "gather-plan",
        &["--rows=8192", "--dim=64", "--lookups=1024", "--zipf=1.1"],
        json!({"rows": 8192, "dim": 64, "lookups": 1024, "zipf": 1.1}),
    );
    let model = example("models/dlrm_4_gpus.toml");
    same(
        "shard",
        &[&model, "--gpus=4", "--device=h200", "--nodes=2", "--memory=60", "--indices=uniform"],
        json!({"model": model, "gpus": 4, "device": "h200", "nodes": 2, "memory": 60, "indices": "uniform"}),
    );
    same(
        "scale",
        &[&model, "--gpus=2,4", "--device=h200", "--weak", "--price=3.5"],
        json!({"model": model, "gpus": [2, 4], "device": "h200", "weak": true, "price": 3.5}),
    );
}

#[test]
fn queries_about_kernels_are_read_instead_of_standard_input() {
    let query = r#"{"op":"aten::relu","shapes":[[512,512]]}"#;
    let answer = ask("kernels predict", &json!({"device": "h200", "json": true}), query).expect("an answer");
    let output = crate::steptime(&["kernels", "predict", "--device", "h200", "--json"])
        .write_stdin(query)
        .assert()
        .success();
    assert_eq!(answer.as_bytes(), output.get_output().stdout);
}

#[test]
fn files_are_written_as_by_the_command_line() {
    let (dlrm, folder) = (example("dlrm_default_2048"), tempfile::tempdir().expect("a folder"));
    let file = |name: &str| folder.path().join(name);
    let (named, typed) = (file("named.json"), file("typed.json"));
    ask("predict", &json!({"input": dlrm, "timeline": named}), "").expect("an answer");
    let words = ["steptime", "predict", &dlrm, "--timeline", text(&typed)].map(Into::into);
    steptime_cli::capture(words).expect("an answer");
    let read = |path| std::fs::read(path).expect("the file");
    assert!(read(&named) == read(&typed) && !read(&named).is_empty());
    let refused = ask("whatif", &json!({"input": named, "timeline": named, "cuda_graph": true}), "");
    let Err(Refusal::Input(words)) = refused else { panic!("{refused:?}") };
    assert!(words.contains("it is read by the same command"), "{words}");
    let refused =
        ask("whatif", &json!({"input": dlrm, "timeline": typed, "graph": typed, "cuda_graph": true}), "");
    let Err(Refusal::Input(words)) = refused else { panic!("{refused:?}") };
    assert!(words.contains("timeline= and graph= name the same file"), "{words}");
}

#[test]
fn an_open_input_is_not_read_again() {
    let folder = crate::copy_of("dlrm_default_2048");
    let input = CachedInput::new(folder.path(), None, None);
    steptime_cli::open(&input).expect("an input");
    let path = text(folder.path()).to_owned();
    folder.close().expect("removed");
    let arguments = json!({"input": path, "device": "h200", "json": true}).to_string();
    let request = Request { command: "explain", arguments: &arguments, given: "", opened: &[&input] };
    assert!(steptime_cli::ask(&request).expect("an answer").starts_with('{'));
    let request = Request { opened: &[], ..request };
    assert!(matches!(steptime_cli::ask(&request), Err(Refusal::NotFound(_))));
}

#[test]
fn errors_name_arguments_of_python() {
    let (dlrm, resnet) = (example("dlrm_default_2048"), example("resnet50_32"));
    let trace = example("dlrm_default_2048/et.json.gz");
    for (command, named, expected) in [
        (
            "predict",
            json!({"input": dlrm, "keep_profiler": true, "host": "default"}),
            "keep_profiler=True needs host='own'",
        ),
        ("predict", json!({"input": trace}), "name a GPU to predict for (device='h200')"),
        (
            "predict",
            json!({"input": dlrm, "method": "guess"}),
            "method='guess': must be one of simulate, paper, paper-published, kernel-sum",
        ),
        (
            "whatif",
            json!({"input": dlrm}),
            "such as batch=, fuse= or cuda_graph=True, or plan=; `help(steptime.what_if)` lists all",
        ),
        (
            "whatif",
            json!({"input": dlrm, "cuda_graph": true, "graph": "step.txt"}),
            "graph= takes a name that ends in .dot",
        ),
        ("choose", json!({"input": resnet, "device": ["h100", "h100"]}), "device= names h100 twice"),
        (
            "choose",
            json!({"input": resnet, "device": ["h100", "all"]}),
            "device='all' includes every shipped GPU",
        ),
        (
            "validate",
            json!({"recordings": [dlrm], "lone": true}),
            "lone=True has no measured kernels: it needs kernels=NAME",
        ),
        (
            "scale",
            json!({"model": example("models/dcn_v2.toml")}),
            "a described model does not name a GPU: give device=",
        ),
        (
            "gather-plan",
            json!({"rows": 8, "dim": 8, "lookups": 8, "indices": "/none"}),
            "indices= takes uniform",
        ),
    ] {
        let Err(refused) = ask(command, &named, "") else { panic!("{command} {named}") };
        let (Refusal::Usage(words)
        | Refusal::NotFound(words)
        | Refusal::NotApplicable(words)
        | Refusal::Input(words)) = refused;
        assert!(words.contains(expected), "{words}");
    }
}
