//! A profile as a file.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use steptime_cost::{Gaps, HostCosts, HostProfile, Process};
use steptime_trace::Nanos;

use crate::recordings::{example, fit, graph, small};

static TEXT: LazyLock<String> = LazyLock::new(|| fit(&[("small", &small())]).to_text());

#[test]
fn what_is_written_is_read_back() {
    let [dlrm, resnet] = ["dlrm_default_2048", "resnet50_32"].map(|name| graph(&example(name)));
    let fitted = fit(&[("dlrm", &dlrm), ("resnet", &resnet)]);
    let text = fitted.to_text();
    let read = HostProfile::parse(&text).expect("what was just written");
    assert_eq!(read.to_text(), text, "the same to the last byte");
    assert_eq!(HostProfile::parse(&read.to_text()).as_ref(), Ok(&read));

    // Gaps are written to the nanosecond; all else is written as it is.
    assert_eq!(read.gaps.len(), fitted.gaps.len());
    for (a, b) in read.gaps.iter().zip(fitted.gaps.iter()) {
        assert_eq!(a.key, b.key);
        assert!((a.us - b.us).abs() <= 0.000_501 && (a.weight - b.weight).abs() <= 0.005_01, "{a:?} {b:?}");
    }
    assert_eq!(
        HostProfile { gaps: Arc::default(), ..read.clone() },
        HostProfile { gaps: Arc::default(), ..fitted.clone() }
    );
    let total = |profile| -> Nanos {
        HostCosts::from_profile(&dlrm, profile, Process::Fresh).gaps.iter().copied().sum()
    };
    assert!((total(&read) - total(&fitted)).0.abs() < 2_000, "{} {}", total(&read), total(&fitted));
}

#[test]
fn names_of_any_kind_survive() {
    let mut profile = fit(&[("small", &small())]);
    profile.recordings[0].name = "with \"quotes\" and\na line".into();
    let mut gaps = profile.gaps.to_vec();
    gaps[0].key.left = r#"void k<"a\b">(int)'é"#.into();
    profile.gaps = Arc::new(Gaps::new(gaps));
    let read = HostProfile::parse(&profile.to_text()).expect("what was just written");
    assert_eq!(read.recordings, profile.recordings);
    assert_eq!(read.gaps[0].key, profile.gaps[0].key);
}

/// The text with one line of it changed.
fn with(begins: &str, line: &str) -> String {
    assert!(TEXT.lines().any(|l| l.starts_with(begins)), "no line begins with {begins}");
    TEXT.lines().map(|l| if l.starts_with(begins) { line } else { l }).collect::<Vec<_>>().join("\n")
}

/// Error message of a text, as a user sees it.
fn complaint(text: &str) -> String {
    // Tests run in parallel: each text has its own folder.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let own = format!("steptime-profile-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(own);
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("host.toml");
    fs::write(&path, text).expect("a file");
    let error = HostProfile::read(&path).expect_err("not usable").to_string();
    fs::remove_file(&path).expect("it was written");
    let _ = fs::remove_dir(&folder);
    assert!(error.contains(&*path.to_string_lossy()), "it names the file: {error}");
    error
}

#[test]
fn another_version_is_refused_with_the_remedy() {
    let error = complaint(&with("version = ", "version = 999"));
    assert!(error.contains("version 999") && error.contains("steptime host fit"), "{error}");
}

/// Texts that are not profiles, and the message for each.
fn unusable() -> Vec<(&'static str, String)> {
    let row = TEXT.lines().find(|l| l.starts_with("  [")).expect("a row");
    let without_numbers = row.rsplitn(3, ", ").last().expect("names");
    let changed = |numbers: &str| TEXT.replace(row, &format!("{without_numbers}, {numbers}],"));
    vec![
        ("no version", with("version = ", "")),
        ("an empty file", String::new()),
        ("not TOML", "{\"traceEvents\": []}".into()),
        ("not-a-number in a gap", changed("nan, 1.0")),
        ("infinity in a gap", changed("inf, 1.0")),
        ("a negative gap", changed("-1.0, 1.0")),
        ("a negative weight", changed("1.0, -1.0")),
        ("a gap without its weight", changed("1.0")),
        ("not-a-number", with("spread = ", "spread = nan")),
        (
            "not-a-number as a slowness",
            TEXT.replace(
                "[gaps]",
                "[[recordings]]\nname = \"a\"\nslowness = nan\nexcluded = false\n\n[gaps]",
            ),
        ),
        ("a negative spread", with("spread = ", "spread = -0.1")),
        ("an unknown field", with("spread = ", "spread = 0.1\nspraed = 0.1")),
        ("a missing field", with("spread = ", "")),
        ("sizes out of order", with("staged_copy_us = ", "staged_copy_us = [[8, 1.0], [4, 2.0]]")),
        ("a text cut off", TEXT[..TEXT.len() - 3].into()),
        ("a text cut off in a name", TEXT[..TEXT.rfind("aten").expect("a name") + 2].into()),
    ]
}

#[test]
fn what_is_no_profile_is_refused() {
    for (what, text) in unusable() {
        assert!(HostProfile::parse(&text).is_err(), "{what}");
        assert!(complaint(&text).contains("not a usable host profile"), "{what}");
    }
}

#[test]
fn every_complaint_names_the_remedy() {
    for (what, text) in unusable() {
        let error = complaint(&text);
        assert!(error.contains("steptime host fit"), "{what}: {error}");
    }
}

#[test]
fn delays_and_costs_are_checked_like_gaps() {
    for (field, value) in [("launch_to_start_us = ", "nan"), ("sync_own_us = ", "-1.0"), ("op_us = ", "inf")]
    {
        assert!(HostProfile::parse(&with(field, &format!("{field}{value}"))).is_err(), "{field}{value}");
    }
}

#[test]
fn a_text_cut_off_anywhere_never_panics() {
    for end in (0..TEXT.len()).filter(|&end| TEXT.is_char_boundary(end)) {
        if let Ok(profile) = HostProfile::parse(&TEXT[..end]) {
            // Only its last line break, or the table of gaps as a whole, can be missing.
            assert!(profile.gaps.is_empty() || end + 1 == TEXT.len(), "cut at {end}");
        }
    }
}
