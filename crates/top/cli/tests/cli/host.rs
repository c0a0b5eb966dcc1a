//! Host profiles: fitted, shown, used.

use predicates::boolean::PredicateBooleanExt;
use predicates::str::contains;

use crate::{json, stdout, steptime, text};

#[test]
fn a_fitted_profile_predicts() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("host.toml");
    steptime(&["host", "fit", "examples", "-o", text(&file)])
        .assert()
        .success()
        .stdout(contains("resnet50_32").and(contains("wrote ")));
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("the folder").collect();
    assert_eq!(left.len(), 1, "nothing beside the profile");
    assert!(stdout(&["host", "show", text(&file)]).contains("5 recordings"));
    let answer = json(&["predict", "examples/dlrm_default_2048", "--host", text(&file)]);
    assert_eq!(answer["coverage"]["priced"]["own"], 0);
    assert_eq!(answer["coverage"]["priced"]["unpriced"], 0);
    assert!(answer["host_slowness"].is_number());
}

#[test]
fn the_shipped_profile_is_shown() {
    assert!(stdout(&["host", "show"]).contains("ships with steptime"));
}
