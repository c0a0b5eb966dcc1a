//! Device profiles: listed and shown.

use crate::{json, stdout};

const NAMES: [&str; 28] = [
    "h200",
    "h100",
    "a100",
    "a100-80gb",
    "a100-80gb-pcie",
    "a100-pcie",
    "a10g",
    "a40",
    "b200",
    "gb200",
    "h100-nvl",
    "h100-pcie",
    "h800",
    "h800-pcie",
    "l4",
    "l40",
    "l40s",
    "mi210",
    "mi300x",
    "p100",
    "p4",
    "rtx-3090",
    "rtx-4090",
    "rtx-5090",
    "rtx-pro-6000",
    "t4",
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
        let swept = row["name"] == "h200" || row["name"] == "h100";
        assert_eq!(row["families"] == 0, !swept, "{row}");
        assert_eq!(row["models_of"].is_null(), row["name"] == "h200", "{row}");
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
    assert!(text.contains("gemm") && text.contains("x/÷"), "{text}");
}

#[test]
fn a_specification_shows_where_it_is_from_and_whose_models_it_is_lent() {
    for name in NAMES.iter().filter(|name| !["h200", "h100"].contains(name)) {
        let text = stdout(&["device", "show", name]).replace("\n  ", " ");
        assert!(text.contains("no kernel was measured on it: times come from the models of h200"), "{text}");
        let shown = json(&["device", "show", name]);
        assert!(!shown["device"]["source"].as_str().unwrap_or("").is_empty());
        let hopper = shown["device"]["architecture"] == "Hopper";
        assert_eq!(shown["corrected"].as_array().is_some_and(Vec::is_empty), hopper, "{name}");
    }
    let text = stdout(&["device", "show", "h100"]).replace("\n  ", " ");
    assert!(text.contains("corrected by measurements on this GPU") && text.contains("this GPU"), "{text}");
}

/// Forty elementwise ops of an L4, each `factor` times as long as its memory needs, in milliseconds times `unit`.
fn table(folder: &std::path::Path, device: &str, unit: f64) -> String {
    let rows: String = (0..40)
        .map(|row| {
            let (b, h) = (20_000 + 777 * row, 1024);
            let ms = 1.3 * f64::from(b * h) * 8.0 / 235e6 * unit;
            format!("mulu,{ms},{device},{b},{h}\n")
        })
        .collect();
    let path = folder.join(format!("table{unit}.csv"));
    std::fs::write(&path, format!("OPName,Latency,Device,B,H\n{rows}")).expect("a temporary file");
    path.to_string_lossy().into_owned()
}

#[test]
fn tables_are_scored_by_the_profile_that_bears_their_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table_of = |unit| table(folder.path(), "NVIDIA L4", unit);
    let good = table_of(1.0);
    let scored = json(&["device", "score", &good]);
    let row = &scored.as_array().expect("scores")[0];
    assert_eq!(
        (&row["device"], &row["kind"], &row["rows"]),
        (&"NVIDIA L4".into(), &"elementwise".into(), &40.into())
    );
    assert!(row["mean"].as_f64().is_some_and(|mean| mean < 0.5), "{row}");
    assert!(row["total"].as_f64().is_some_and(|total| (0.6..1.4).contains(&total)), "{row}");
    let rows = stdout(&["device", "score", &good, "--rows"]);
    assert!(
        rows.starts_with("device,kind,family,op,dims,measured_us") && rows.lines().count() == 41,
        "{rows}"
    );
    let lent = stdout(&["device", "score", &good, "--device", "l4", "--lent", "h200", "--by", "op"]);
    assert!(lent.contains("aten::mul"), "{lent}");
    let refused = |args: &[&str]| crate::failure(args);
    let text = refused(&["device", "score", &table_of(1000.0)]);
    assert!(text.contains("in another unit"), "{text}");
    let text = refused(&["device", "score", &good, "--device", "t4"]);
    assert!(text.contains("NVIDIA T4") && text.contains("NVIDIA L4"), "{text}");
    let text = refused(&["device", "score", &table(folder.path(), "NVIDIA K80", 1.0)]);
    assert!(text.contains("NVIDIA K80"), "{text}");
    let (good, out) = (table_of(1.0), folder.path().join("corrections"));
    let out = out.to_string_lossy();
    let text = refused(&["device", "transfer", &good, "-o", &out]);
    assert!(text.contains("from tables of at least 3 GPUs; these tables are of: l4"), "{text}");
    let text = refused(&["device", "transfer", &good, "-o", &out, "--without", "voodoo2"]);
    assert!(text.contains("no device profile \"voodoo2\""), "{text}");
    let tables = ["NVIDIA L4", "Tesla T4", "Tesla P4"].map(|gpu| {
        let place = folder.path().join(gpu);
        std::fs::create_dir(&place).expect("a folder");
        table(&place, gpu, 1.0)
    });
    let text =
        refused(&["device", "transfer", &tables[0], &tables[1], &tables[2], "-o", &out, "--most", "1"]);
    assert!(text.contains("nothing is written") && !folder.path().join("corrections").exists(), "{text}");
}
