//! Folders with a trace for each rank.

use crate::{json, root, stdout, text};

#[test]
fn ranks_are_listed_and_chosen() {
    let folder = tempfile::tempdir().expect("a folder");
    for (rank, example) in ["dlrm_ddp_2048", "dlrm_default_2048"].iter().enumerate() {
        let from = root().join("examples").join(example).join("kineto.json.gz");
        std::fs::copy(from, folder.path().join(format!("rank{rank}.json.gz"))).expect("a copy");
    }
    let path = text(folder.path());
    let listed = json(&["inspect", path]);
    let ranks: Vec<u64> =
        listed["ranks"].as_array().expect("ranks").iter().filter_map(|rank| rank["rank"].as_u64()).collect();
    assert_eq!(ranks, [0, 1]);
    assert_eq!(listed["rank"], 0);
    assert_eq!(json(&["inspect", path, "--rank", "1"])["rank"], 1);
    assert!(stdout(&["inspect", path]).starts_with(" rank  name"));

    let chosen = json(&["predict", path, "--rank", "1"]);
    assert_eq!(chosen["rank"], 1);
    assert_eq!(chosen["step_ms"], json(&["predict", "examples/dlrm_default_2048"])["step_ms"]);
    assert_eq!(json(&["predict", path])["rank"], 0);
}
