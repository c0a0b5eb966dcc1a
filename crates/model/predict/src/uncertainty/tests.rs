//! Laws of the table: each entry is whole, is read, and has a plausible value.

use toml::{Table, Value};

use super::{TABLE, Uncertainty, uncertainty};

/// Entries of the file with their paths, as `doubts.replay.threshold`.
fn entries() -> Vec<(Vec<String>, Table)> {
    fn walk(path: &[String], table: &Table, all: &mut Vec<(Vec<String>, Table)>) {
        if table.contains_key("value") {
            all.push((path.to_vec(), table.clone()));
            return;
        }
        for (name, inner) in table {
            let inner = inner.as_table().unwrap_or_else(|| panic!("{name} is outside of an entry"));
            walk(&[path, std::slice::from_ref(name)].concat(), inner, all);
        }
    }
    let mut all = Vec::new();
    walk(&[], &TABLE.parse().expect("TOML"), &mut all);
    all
}

/// The table at a path of the file.
fn at<'t>(file: &'t mut Table, path: &[String]) -> &'t mut Table {
    path.iter().fold(file, |table, name| table[name].as_table_mut().expect("a table"))
}

/// Whether the file is refused after this change of one table.
fn is_refused(path: &[String], change: impl Fn(&mut Table)) -> bool {
    let mut file: Table = TABLE.parse().expect("TOML");
    change(at(&mut file, path));
    file.try_into::<Uncertainty>().is_err()
}

#[test]
fn an_entry_has_a_value_a_meaning_a_source_and_a_date_and_nothing_else() {
    let all = entries();
    assert!(all.len() > 60, "{}", all.len());
    for (path, entry) in all {
        for name in ["value", "meaning", "source", "date"] {
            assert!(is_refused(&path, |entry| drop(entry.remove(name))), "{path:?} without {name}");
        }
        for name in ["meaning", "source", "date"] {
            let empty = |entry: &mut Table| drop(entry.insert(name.into(), " ".into()));
            assert!(is_refused(&path, empty), "{path:?} with an empty {name}");
        }
        assert!(is_refused(&path, |entry| drop(entry.insert("note".into(), 1.into()))), "{path:?}");
        let date = entry["date"].as_str().expect("text");
        let numbers: Vec<u32> = date.split('-').map(|part| part.parse().expect("a date")).collect();
        assert!(matches!(numbers[..], [2026..=2099, 1..=12, 1..=31]), "{path:?}: {date}");
    }
}

/// The engine has a field for each entry. The compiler refuses fields that nothing reads.
#[test]
fn an_entry_that_is_missing_or_unknown_is_an_error() {
    for (path, entry) in entries() {
        let (name, table) = path.split_last().expect("a name");
        assert!(is_refused(table, |table| drop(table.remove(name))), "without {path:?}");
        let unknown = |table: &mut Table| drop(table.insert(format!("{name}_2"), entry.clone().into()));
        assert!(is_refused(table, unknown), "{path:?} twice");
    }
    assert!(is_refused(&[], |file| drop(file.insert("other".into(), Table::new().into()))));
    assert!(!is_refused(&[], |_| ()));
}

#[test]
fn values_are_plausible() {
    for (path, entry) in entries() {
        let path = path.join(".");
        // Half-widths are at most a factor of twenty, shares at most all.
        let range = match &*path {
            "unknown.work" => 1.0..=2.5,
            "doubts.captured.above" => 2.0..=3.5,
            "doubts.large_copies.factor" | "doubts.emulated.factor" => 1.5..=4.0,
            "ranks.slow_from" | "ranks.slow_moment" | "notes.host_slow" => 1.01..=2.0,
            "host.op_autograd_ns" => 500.0..=10_000.0,
            "ranks.queued_ns" => 5e3..=1e6,
            "collectives.small_bytes" => 1024.0..=1048576.0,
            path if path.starts_with("launch_shapes.") => 0.0..=262_144.0,
            _ => 0.001..=0.9,
        };
        let values = match &entry["value"] {
            Value::Array(all) => all.clone(),
            one => vec![one.clone()],
        };
        for value in values {
            let number = value.as_float().or(value.as_integer().map(|whole| whole as f64));
            let number = number.unwrap_or_else(|| panic!("{path} is not a number"));
            assert!(range.contains(&number), "{path} = {number}");
        }
    }
}

/// Less knowledge makes intervals wider.
#[test]
fn widths_grow_with_ignorance() {
    let all = uncertainty();
    assert!(all.kernels.measured <= all.kernels.same_gpu && all.kernels.same_gpu < all.kernels.captured);
    assert!(all.kernels.captured < all.unknown.work);
    assert!(all.next_run.drift < all.next_run.device);
    assert!(all.host.pace < all.host.pace_without_pulses);
    assert!(all.streams.known_grids < all.streams.unknown_grids);
    assert!(all.ranks.slow_from < all.ranks.slow_moment);
    assert!(all.notes.host_fast < 1.0 && 1.0 < all.notes.host_slow);
    assert!(all.collectives.unknown_size < all.unknown.work);
    assert!(all.unknown.work < all.doubts.captured.above);
    assert!(all.doubts.single_rank.other_side < all.doubts.single_rank.below);
}
