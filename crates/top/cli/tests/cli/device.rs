//! Device profiles: listed and shown.

use crate::{json, stdout};

const NAMES: [&str; 14] = [
    "h200",
    "a100",
    "a100-80gb",
    "a40",
    "b200",
    "gb200",
    "h100",
    "h100-pcie",
    "l4",
    "l40",
    "l40s",
    "p100",
    "titan-xp",
    "v100",
];

#[test]
fn all_shipped_profiles_are_listed() {
    let listed = json(&["device", "list"]);
    let listed = listed.as_array().expect("a list");
    let names: Vec<&str> = listed.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, NAMES);
    for row in listed {
        for key in ["memory_gb", "memory_gb_s", "f32_tflop_s"] {
            assert!(row[key].as_f64().is_some_and(|value| value > 0.0), "{key} of {row}");
        }
        assert_eq!(row["families"] == 0, row["name"] != "h200", "{row}");
    }
    let text = stdout(&["device", "list"]);
    assert!(NAMES.iter().all(|name| text.contains(name)), "{text}");
}

#[test]
fn a_fitted_profile_shows_what_each_family_uses() {
    let shown = json(&["device", "show", "h200"]);
    assert_eq!(shown["device"]["name"], "NVIDIA H200");
    let families = shown["families"].as_array().expect("families");
    assert!(families.len() >= 15, "{}", families.len());
    for family in families {
        let model = family["model"].as_str().expect("a model");
        assert!(family["scores"].get(model).is_some(), "{family}");
        assert!(family["rows"].as_u64().is_some_and(|rows| rows > 0), "{family}");
        assert!(family["inside"].as_f64().is_some_and(|inside| (0.5..=1.0).contains(&inside)), "{family}");
        assert!(family["range"].as_object().is_some_and(|range| !range.is_empty()), "{family}");
    }
    let text = stdout(&["device", "show", "h200"]);
    assert!(text.contains("gemm") && text.contains("half-width"), "{text}");
}

#[test]
fn a_specification_shows_where_it_is_from() {
    for name in &NAMES[1..] {
        let text = stdout(&["device", "show", name]);
        assert!(text.contains("no kernels were fitted"), "{text}");
        assert!(!json(&["device", "show", name])["device"]["source"].as_str().unwrap_or("").is_empty());
    }
}
