//! Sizes of a model changed by a rule, compared with the same model described with these sizes.

use std::fs;
use std::path::PathBuf;

use steptime_predict::{Error, open};
use steptime_rewrite::SetSize;

const DLRM: &str = "model = 'dlrm'\nbatch = 256\ndense = 13\nbottom_mlp = [BOTTOM, COLUMNS]\ntop_mlp = [TOP, 32, 1]\n\
    tables = [{ rows = ROWS, columns = COLUMNS, lookups = LOOKUPS, count = 3 }]\noptimizer = { name = 'adam' }\n";
const SIZES: [(&str, &str); 5] =
    [("BOTTOM", "64"), ("COLUMNS", "16"), ("TOP", "48"), ("ROWS", "5000"), ("LOOKUPS", "4")];

/// Device time and memory of a description, after a change where one is given. `test` names its file.
fn priced(test: &str, text: &str, change: Option<&str>) -> Result<(i64, u64), Error> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("set_size_{test}.toml"));
    fs::write(&path, text).expect("a file");
    let step = open(&path)?;
    let question = step.predict().on("h200")?;
    let found = match change {
        Some(change) => {
            let (path, to) = change.split_once('=').expect("a path and a value");
            let rule = SetSize { path: path.parse().expect("a path"), to: to.parse().expect("a size") };
            question.what_if(&[&rule])?.after
        }
        None => question.run()?,
    };
    Ok((found.timeline.active().0, found.peak.expect("tensors are known").total()))
}

fn described(other: Option<(&str, &str)>) -> String {
    SIZES.iter().fold(DLRM.to_owned(), |text, (name, size)| {
        let size = other.filter(|(changed, _)| changed == name).map_or(*size, |(_, size)| size);
        text.replace(name, size)
    })
}

fn is_as_described(test: &str, changes: &[(&str, &str, &str)]) {
    for &(change, name, size) in changes {
        let (active, peak) = priced(test, &described(None), Some(change)).expect("it applies");
        let (wanted, room) = priced(test, &described(Some((name, size))), None).expect("a model");
        assert!((active - wanted).abs() * 1000 <= wanted, "{change}: {active} and {wanted} ns");
        assert!(peak.abs_diff(room) * 50 <= room, "{change}: {peak} and {room} bytes");
    }
}

#[test]
fn a_changed_step_is_the_step_of_the_changed_model() {
    is_as_described(
        "sizes",
        &[
            ("tables[*].rows=70000", "ROWS", "70000"),
            ("tables[*].lookups=9", "LOOKUPS", "9"),
            ("layers[0].width=96", "BOTTOM", "96"),
            ("layers[2].width=20", "TOP", "20"),
        ],
    );
}

/// In a dot interaction, all vectors have the same width.
#[test]
fn vectors_of_an_interaction_are_as_wide() {
    is_as_described(
        "columns",
        &[("tables[*].columns=24", "COLUMNS", "24"), ("layers[1].width=24", "COLUMNS", "24")],
    );
}

#[test]
fn what_is_not_there_is_named() {
    let refused =
        |change| priced("refused", &described(None), Some(change)).expect_err("no such part").to_string();
    assert!(
        refused("tables[3].rows=10").contains("the step has 3 tables"),
        "{}",
        refused("tables[3].rows=10")
    );
    assert!(refused("layers[0].width=0").contains("at least 1"));
}
