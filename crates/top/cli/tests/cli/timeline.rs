//! The timeline file.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{steptime, text};

#[test]
fn both_processes_are_there_and_begin_at_zero() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("step.json");
    steptime(&["predict", "examples/dlrm_default_2048", "--timeline", text(&file)]).assert().success();
    let trace: Value = serde_json::from_slice(&std::fs::read(&file).expect("the file")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let names: Vec<&Value> =
        events.iter().filter(|e| e["name"] == "process_name").map(|e| &e["args"]["name"]).collect();
    assert_eq!(names, ["predicted", "measured"]);

    let mut begins: BTreeMap<u64, f64> = BTreeMap::new();
    let mut tracks: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let (pid, tid) = (event["pid"].as_u64().expect("pid"), event["tid"].as_u64().expect("tid"));
        let ts = event["ts"].as_f64().expect("ts");
        assert!(event["dur"].as_f64().is_some_and(|dur| dur >= 0.0));
        assert!((ts * 1000.0 - (ts * 1000.0).round()).abs() < 1e-3, "{ts} has more than three decimals");
        let begin = begins.entry(pid).or_insert(f64::MAX);
        *begin = begin.min(ts);
        *tracks.entry((pid, tid)).or_default() += 1;
    }
    assert_eq!(begins.into_values().collect::<Vec<f64>>(), [0.0, 0.0]);
    // The same threads and streams, with as many events on each.
    let of =
        |pid| tracks.iter().filter(|((p, _), _)| *p == pid).map(|((_, t), n)| (*t, *n)).collect::<Vec<_>>();
    assert_eq!(of(1), of(2));
    assert!(of(1).len() >= 3, "two host threads and a stream: {:?}", of(1));
}
