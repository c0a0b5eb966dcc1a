//! Kernel times for a device against those recorded.

use serde_json::Value;

use crate::{json, stdout};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn families_are_scored() {
    let answer = json(&["validate", "examples", "--kernels", "h200"]);
    assert_eq!((&answer["kernels"], &answer["host"]), (&"h200".into(), &"own".into()));
    assert!(number(&answer["coverage"]["fitted"]) >= 0.95, "{}", answer["coverage"]);
    assert!(number(&answer["summary"]["active"]["max"]) < 0.25, "{}", answer["summary"]["active"]);
    let families = answer["families"].as_array().expect("families");
    let shares: f64 = families.iter().map(|family| number(&family["time_share"])).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
    for family in families {
        for key in ["gmae", "mean", "std", "time_weighted", "inside"] {
            assert!(number(&family[key]) >= 0.0, "{key} of {family}");
        }
        assert!(number(&family["gmae"]) <= number(&family["mean"]) + 1e-12, "{family}");
        assert!(number(&family["max_share"]) <= 1.0 && family["count"].as_u64().is_some_and(|n| n > 0));
        assert!(family["family"].is_string());
    }
    assert!(!answer["ops"].as_array().expect("ops").is_empty());
}

#[test]
fn every_kind_of_model_can_be_scored() {
    for models in ["paper", "analytic", "learnt"] {
        let answer =
            json(&["validate", "examples", "--kernels", "h200", "--models", models, "--host", "default"]);
        let mean = number(&answer["summary"]["active"]["mean"]);
        assert!(mean < 0.6, "{models}: {mean}");
    }
}

#[test]
fn measured_kernels_have_no_families() {
    let answer = json(&["validate", "examples"]);
    assert_eq!(answer["kernels"], "measured");
    assert!(answer.get("families").is_none() && answer.get("coverage").is_none());
}

#[test]
fn the_table_fits_a_terminal() {
    let text = stdout(&["validate", "examples", "--kernels", "h200"]);
    assert!(text.contains("kernels h200") && text.contains("GMAE"), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}
