//! Recordings of runs: read by all commands, and predicted as measured.

use std::ffi::OsString;

use serde_json::Value;

use crate::Place;

/// Steps of a run, and those with a counted and recorded time: the others are the warm-up.
const STEPS: [usize; 2] = [33, 30];

/// Shipped models, with small tables.
const MODELS: [&str; 3] = ["dlrm_default", "wide_and_deep", "dcn_v2"];

/// The description of a shipped model, with small tables.
fn small(name: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/models");
    let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).expect("a shipped model");
    text.replace("1_000_000", "2_000").replace("100_000", "2_000")
}

/// Standard output of a command of `steptime`.
fn steptime(arguments: &[&str]) -> Result<String, String> {
    let all = ["steptime"].iter().chain(arguments).map(OsString::from);
    steptime_cli::capture(all).map_err(|refusal| format!("{refusal:?}"))
}

fn json(arguments: &[&str]) -> Value {
    let text = steptime(&[arguments, &["--json"]].concat());
    serde_json::from_str(&text.unwrap_or_else(|error| panic!("{arguments:?}: {error}"))).expect("JSON")
}

/// A run with a recording of its counted steps, and the answer.
fn recorded(text: &str, more: &str) -> (Place, Value) {
    let place = Place::with_model(text);
    let [steps, counted] = STEPS;
    let answer = place.train(&format!(
        "--steps {steps} --threads 1 --record run.json.gz --record-steps {counted} --timeline run.json \
         --timeline-steps {counted} {more}"
    ));
    (place, answer)
}

/// Complete events of a timeline.
fn events(place: &Place, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(place.path(name)).expect("a timeline");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    let all = trace["traceEvents"].as_array().expect("events").iter();
    all.filter(|event| event["ph"] == "X").cloned().collect()
}

/// Begin and duration in microseconds.
fn span(event: &Value) -> [f64; 2] {
    ["ts", "dur"].map(|key| event[key].as_f64().expect("a number"))
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[test]
fn the_predicted_step_of_a_recording_is_the_measured_one() {
    for name in MODELS {
        let (place, answer) = recorded(&small(name), "--batch 256");
        let events = events(&place, "run.json");
        let named = |start: &str| -> Vec<[f64; 2]> {
            let name = |event: &&Value| event["name"].as_str().is_some_and(|name| name.starts_with(start));
            events.iter().filter(name).map(span).collect()
        };
        let (marks, waits) = (named("ProfilerStep#"), named("enumerate(DataLoader)#"));
        assert_eq!((marks.len(), waits.len()), (STEPS[1], STEPS[1]), "{name}");
        // A step is as long as the run reports it, beside the wait for its batch.
        let without = marks.iter().zip(&waits).map(|(mark, wait)| (mark[1] - wait[1]) / 1e3).collect();
        let (own, reported) = (median(without), answer["measured"]["median_ms"].as_f64().expect("a time"));
        assert!((own / reported - 1.0).abs() < 0.05, "{name}: {own} {reported}");
        let period = median(marks.windows(2).map(|pair| (pair[1][0] - pair[0][0]) / 1e3).collect());
        let path = place.path("run.json.gz").display().to_string();
        let predicted = json(&["predict", &path]);
        let step = predicted["step_ms"].as_f64().expect("a time");
        println!("{name}: predicted {step:.4} ms, measured {period:.4} ms, reported {reported:.4} ms");
        assert!((step / period - 1.0).abs() < 0.05, "{name}: {step} {period}");
        // Ops take at most their step.
        for mark in &marks {
            let within = |event: &&Value| {
                let [begin, _] = span(event);
                event["cat"] == "cpu_op"
                    && event["args"]["External id"].is_u64()
                    && (mark[0]..mark[0] + mark[1]).contains(&begin)
            };
            let ops: f64 = events.iter().filter(within).map(|event| span(event)[1]).sum();
            assert!(ops > 0.2 * mark[1] && ops <= mark[1], "{name}: {ops} of {}", mark[1]);
        }
    }
}

#[test]
fn all_commands_read_a_recording() {
    let (place, _) = recorded(&small("dlrm_default"), "--batch 64");
    let path = place.path("run.json.gz").display().to_string();
    let other = place.path("run.json").display().to_string();
    let page = place.path("page.html").display().to_string();
    let lake = place.path("lake").display().to_string();
    for arguments in [
        &["inspect", &path][..],
        &["predict", &path],
        &["predict", &path, "--keep-profiler"],
        &["predict", &path, "--host", "own"],
        &["compare", &path, &other],
        &["whatif", &path, "--host-speed", "2"],
        &["whatif", &path, "--remove", "steptime::interaction"],
        &["explain", &path],
        &["validate", "--replay-only", &path],
        &["view", &path, "-o", &page],
        &["ingest", &path, "-o", &lake],
    ] {
        if let Err(error) = steptime(arguments) {
            panic!("{arguments:?}: {error}");
        }
    }
    let same = json(&["compare", &path, &other]);
    assert!(same["longer"].as_f64().expect("a number").abs() < 1e-9, "{same}");
    let slower = json(&["whatif", &path, "--host-speed", "2"]);
    let [before, after] = ["before", "after"].map(|side| slower[side]["step_ms"].as_f64().expect("a time"));
    assert!((after / before - 2.0).abs() < 0.01, "{before} {after}");
    let events = events(&place, "run.json");
    for op in
        ["aten::linear", "aten::_addmm_activation", "steptime::embedding_bag", "steptime::linear_backward"]
    {
        let is_op = |event: &Value| event["name"] == op && event["cat"] == "cpu_op";
        let Some(event) = events.iter().find(|event| is_op(event)) else { panic!("no {op}") };
        let args = &event["args"];
        let shaped = args["Input Dims"].as_array().expect("shapes").iter().any(|dims| dims[0].is_u64());
        assert!(shaped && args["Input type"].is_array(), "{op}: {event}");
    }
    // What a CPU's times do not tell is refused.
    for (arguments, words) in [
        (&["predict", &path, "--device", "h200"][..], "recorded on a CPU"),
        (&["whatif", &path, "--fuse", "optimizer"], "optimizer"),
        (&["whatif", &path, "--cuda-graph"], "recorded on a CPU"),
        (&["roofline", &path], "no GPU activity"),
    ] {
        let error = steptime(arguments).expect_err("a refusal");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
}

#[test]
fn recorded_runs_have_the_bits_of_others() {
    let place = Place::new("adagrad");
    let losses = |more: &str| {
        let answer = place.train(&format!("--steps 12 --eval-every 5 {more}"));
        ["first_loss", "loss", "mean_loss"]
            .map(|key| answer["measured"][key].as_f64().expect("a loss").to_bits())
    };
    let plain = losses("");
    assert_eq!(plain, losses("--record run.json.zst --record-steps 4"));
    // More steps than the run has: all of them.
    assert_eq!(plain, losses("--record run.json --record-steps 100 --timeline steps.json"));
    let is_mark =
        |event: &&Value| event["name"].as_str().is_some_and(|name| name.starts_with("ProfilerStep#"));
    let marks = |name: &str| events(&place, name).iter().filter(is_mark).count();
    assert_eq!([marks("run.json"), marks("steps.json")], [12, 3]);
    let numbers: Vec<_> =
        events(&place, "steps.json").iter().filter(is_mark).map(|mark| mark["name"].clone()).collect();
    assert_eq!(numbers, ["ProfilerStep#10", "ProfilerStep#11", "ProfilerStep#12"]);
    // A step that is much longer than the others is left out by the reader.
    let read = json(&["inspect", &place.path("run.json.zst").display().to_string()]);
    assert!((1..=4).contains(&read["steps"]["count"].as_u64().expect("a number")), "{read}");
}

#[test]
fn files_that_cannot_be_written_are_refused_before_the_first_step() {
    let place = Place::new("sgd");
    std::fs::create_dir(place.path("folder.json")).expect("a folder");
    let fails = |arguments: &str, words: &str| {
        let message = place.failure(&format!("model.toml --steps 100000000 {arguments}"));
        assert!(message.contains(words), "{arguments}: {message}");
    };
    fails("--record missing/run.json", "missing/run.json: ");
    fails("--record folder.json", "folder.json: ");
    fails("--timeline run.txt", ".json.gz");
    fails("--timeline run.json --record run.json", "one file");
    for arguments in ["--record-steps 3", "--record run.json --record-steps 0"] {
        assert_eq!(place.output(&format!("model.toml {arguments}")).status.code(), Some(2), "{arguments}");
    }
    // A run that fails leaves nothing, and an earlier file as it was.
    std::fs::write(place.path("old.json"), "{}").expect("written");
    place.failure("model.toml --rate 1e30 --steps 50 --eval-rows 64 --record old.json");
    assert_eq!(std::fs::read_to_string(place.path("old.json")).expect("the file"), "{}");
    let left: Vec<_> = std::fs::read_dir(place.path("")).expect("a folder").flatten().collect();
    assert!(left.iter().all(|file| !file.file_name().to_string_lossy().ends_with(".partial")), "{left:?}");
}
