//! Conversion of Criteo's text against a plain reference.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use steptime_dataset::convert::{ConvertOptions, Damage, Progress, ProgressFn, Report, Validation, criteo};
use steptime_dataset::{
    BatchOptions, Batches, Dataset, DenseType, FEATURES, Hotness, IdRule, Selection, Source, SplitName,
    Splits, Transform,
};

use crate::rows::{Row, of_batch, random};

/// A parsed line: label, whole numbers, categories.
type Line = (f32, Vec<Option<i64>>, Vec<Option<u32>>);

/// Lines with missing fields, and categories of few and of many values.
fn lines(count: usize, seed: u64) -> Vec<Line> {
    let mut random = random(seed);
    let line = |_| {
        let dense = (0..13).map(|_| (random(5) > 0).then(|| random(3000) as i64 - 20)).collect();
        let category = |column: u64| {
            let below = [3, 40, 1 << 32][column as usize % 3];
            (random(7) > 0).then(|| (random(below) * random(3) % (1 << 32)) as u32)
        };
        let categories: Vec<Option<u32>> = (0..26).map(category).collect();
        (categories.len() as u64 % 2, dense, categories)
    };
    (0..count)
        .map(line)
        .enumerate()
        .map(|(row, (_, dense, c))| ((row % 3 == 0) as u8 as f32, dense, c))
        .collect()
}

fn text(lines: &[Line]) -> Vec<String> {
    let number = |value: &Option<i64>| value.map_or(String::new(), |value| value.to_string());
    let category = |value: &Option<u32>| value.map_or(String::new(), |value| format!("{value:08x}"));
    let line = |(label, dense, categories): &Line| {
        let fields = dense.iter().map(number).chain(categories.iter().map(category));
        std::iter::once(label.to_string()).chain(fields).collect::<Vec<_>>().join("\t")
    };
    lines.iter().map(line).collect()
}

/// Rows by their definition: ids descend with the count, and equal counts ascend with the category.
fn reference(lines: &[Line], threshold: usize) -> (Vec<Row>, Vec<u32>) {
    let mut tables = Vec::new();
    for column in 0..26 {
        let mut counts = BTreeMap::new();
        lines.iter().filter_map(|line| line.2[column]).for_each(|c| *counts.entry(c).or_insert(0) += 1);
        let mut kept: Vec<_> = counts.into_iter().filter(|&(_, count)| count >= threshold).collect();
        kept.sort_by_key(|&(category, count)| (std::cmp::Reverse(count), category));
        tables.push(kept.into_iter().map(|(c, _)| c).zip(1..).collect::<BTreeMap<u32, i32>>());
    }
    let row = |(label, dense, categories): &Line| {
        let dense = dense.iter().map(|value| (value.unwrap_or(0).max(0) as f64).ln_1p() as f32);
        let id = |(category, table): (&Option<u32>, &BTreeMap<u32, i32>)| {
            vec![category.and_then(|category| table.get(&category).copied()).unwrap_or(0)]
        };
        (*label, dense.collect(), categories.iter().zip(&tables).map(id).collect())
    };
    (lines.iter().map(row).collect(), tables.iter().map(|table| table.len() as u32 + 1).collect())
}

fn rows(place: &Path) -> Vec<Row> {
    let dataset = Dataset::open(place).expect("a dataset");
    [SplitName::Train, SplitName::Validation]
        .into_iter()
        .flat_map(|split| {
            Batches::new(Arc::new(dataset.split(split)), BatchOptions::new(64)).expect("batches")
        })
        .flat_map(|batch| of_batch(&batch.expect("a batch")))
        .collect()
}

/// Every file of a dataset.
fn bytes(place: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(place).expect("a folder").map(|entry| entry.expect("a file").path());
    entries.map(|path| (path.file_name().expect("a name").into(), fs::read(&path).expect("bytes"))).collect()
}

fn options(ids: IdRule, threads: usize) -> ConvertOptions {
    ConvertOptions { threads, ..ConvertOptions::new(ids) }
}

fn frequency(threshold: u32) -> IdRule {
    IdRule::Frequency { threshold }
}

#[test]
fn rows_are_those_of_the_reference_for_any_compression_and_threads() {
    let lines = lines(20_000, 5);
    let text = text(&lines);
    let (first, second) = text.split_at(13_000);
    let join = |lines: &[String], end: &str| (lines.join("\n") + end).into_bytes();
    // The first file ends with a newline, the second does not; lines end in \r\n in one of them.
    let (first, second) = (join(first, "\n"), second.join("\r\n").into_bytes());
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let gz = |bytes: &[u8]| {
        // Two members, as of files that were joined.
        let member = |bytes: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("compressed")
        };
        let (one, other) = bytes.split_at(bytes.len() / 3);
        [member(one), member(other)].concat()
    };
    let zst = |bytes: &[u8]| zstd::encode_all(bytes, 1).expect("compressed");
    let plain = [write("day_0", &first), write("day_1", &second)];
    let zipped = [write("day_0.gz", &gz(&first)), write("day_1.zst", &zst(&second))];
    for threshold in [1, 4] {
        let (expected, cardinalities) = reference(&lines, threshold as usize);
        let mut all = Vec::new();
        for (files, threads) in [(&plain, 1), (&plain, 2), (&zipped, 3), (&plain, 5), (&zipped, 8)] {
            let place = folder.path().join(format!("data_{threshold}_{}", all.len()));
            let report = criteo(files, &place, &options(frequency(threshold), threads)).expect("converted");
            assert_eq!((report.damaged, report.passes.len()), (0, 2));
            assert_eq!(report.passes[0].bytes, (first.len() + second.len()) as u64);
            assert_eq!(report.features.splits, Splits { train: [0, 18_000], validation: [18_000, 20_000] });
            all.push(bytes(&place));
        }
        let place = folder.path().join(format!("data_{threshold}_0"));
        assert!(all.iter().all(|other| *other == all[0]));
        let dataset = Dataset::open(&place).expect("a dataset");
        assert!(dataset.features().categorical.iter().map(|c| c.cardinality).eq(cardinalities));
        assert!(rows(&place) == expected);
    }
}

#[test]
fn progress_ascends_to_the_whole_input() {
    let text = text(&lines(20_000, 8)).join("\n");
    let folder = tempfile::tempdir().expect("a folder");
    let files = ["day_0", "day_1"].map(|name| folder.path().join(name));
    files.iter().for_each(|file| fs::write(file, &text).expect("written"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let progress: Arc<ProgressFn> =
        Arc::new(move |progress: &Progress| kept.lock().expect("a list").push(*progress));
    let shown = ConvertOptions { progress: Some(progress), ..options(frequency(1), 3) };
    criteo(&files, &folder.path().join("data"), &shown).expect("converted");
    let seen = seen.lock().expect("a list");
    for pass in ["count", "rows"] {
        let seen: Vec<_> = seen.iter().filter(|progress| progress.pass == pass).collect();
        assert!(
            seen.len() > 4
                && seen.is_sorted_by_key(|progress| (progress.file, progress.bytes, progress.rows))
        );
        let last = seen[seen.len() - 1];
        assert_eq!((last.file, last.bytes, last.rows), (1, 2 * text.len() as u64, 40_000));
    }
}

#[test]
fn hashes_need_one_pass_and_are_below_the_buckets() {
    let lines = lines(5000, 6);
    let folder = tempfile::tempdir().expect("a folder");
    let (file, place) = (folder.path().join("day_0"), folder.path().join("data"));
    fs::write(&file, text(&lines).join("\n")).expect("written");
    let hashed = ConvertOptions { dense: DenseType::F16, ..options(IdRule::Hash { buckets: 100 }, 2) };
    let report = criteo(&[file], &place, &hashed).expect("converted");
    assert_eq!(report.passes.iter().map(|pass| pass.name).collect::<Vec<_>>(), ["rows"]);
    assert!(
        report.features.categorical.iter().all(|c| c.cardinality == 100 && c.hotness == Hotness::Fixed(1))
    );
    let found = rows(&place);
    let mut ids: BTreeMap<u32, i32> = BTreeMap::new();
    for (row, (_, dense, categories)) in found.iter().zip(&lines) {
        for (found, value) in row.1.iter().zip(dense) {
            let exact = (value.unwrap_or(0).max(0) as f64).ln_1p();
            assert!((f64::from(*found) - exact).abs() <= exact / 1024.0, "{found} for {exact}");
        }
        for (found, category) in row.2.iter().zip(categories) {
            match category {
                None => assert_eq!(found[0], 0),
                Some(category) => assert_eq!(*ids.entry(*category).or_insert(found[0]), found[0]),
            }
        }
    }
    let used: std::collections::BTreeSet<_> = ids.values().collect();
    assert!(used.len() == 99 && !used.contains(&0), "all buckets but that of missing values: {}", used.len());
}

#[test]
fn damaged_lines_are_skipped_and_named() {
    let lines = lines(30_000, 7);
    let mut text = text(&lines);
    let folder = tempfile::tempdir().expect("a folder");
    let files = [folder.path().join("day_0"), folder.path().join("day_1")];
    let damage: BTreeMap<usize, &str> =
        [(0, ""), (7, "1\t2\t3"), (9_999, "\u{0}\u{ff}"), (10_000, "7"), (25_000, "nonsense")].into();
    damage.iter().for_each(|(&line, &with)| text[line] = with.to_owned());
    // The 15th of 40 fields.
    text[29_999] = text[29_999]
        .split('\t')
        .enumerate()
        .map(|(place, field)| if place == 14 { "xyz" } else { field })
        .collect::<Vec<_>>()
        .join("\t");
    fs::write(&files[0], text[..10_000].join("\n")).expect("written");
    fs::write(&files[1], text[10_000..].join("\n") + "\n" + &"x".repeat(3 << 20) + "\n" + &text[11])
        .expect("written");
    let kept: Vec<Line> = (0..29_999)
        .filter(|line| !damage.contains_key(line))
        .chain([11])
        .map(|line| lines[line].clone())
        .collect();
    let expected = reference(&kept, 2).0;
    let mut first: Option<Report> = None;
    for threads in 1..=4 {
        let place = folder.path().join(format!("data_{threads}"));
        let last = ConvertOptions { validation: Validation::LastFiles(1), ..options(frequency(2), threads) };
        let mut report = criteo(&files, &place, &last).expect("converted");
        assert!(rows(&place) == expected, "{threads}");
        assert_eq!(report.features.splits.train, [0, 9_997]);
        assert_eq!(report.damaged, 7);
        let places = report.first_damaged.iter().map(|row| (row.file.clone(), row.line, row.damage.clone()));
        let fields = |found| Damage::Fields { found, expected: 40 };
        let (one, other) = (files[0].clone(), files[1].clone());
        assert_eq!(
            places.collect::<Vec<_>>(),
            [
                (one.clone(), 1, fields(1)),
                (one.clone(), 8, fields(3)),
                (one, 10_000, fields(1)),
                (other.clone(), 1, fields(1)),
                (other.clone(), 15_001, fields(1)),
                (other.clone(), 20_000, Damage::Category { column: "C1".to_owned() }),
                (other.clone(), 20_001, Damage::Long),
            ]
        );
        assert_eq!(
            report.first_damaged[1].to_string(),
            format!("{}:8: 3 fields instead of 40", files[0].display())
        );
        report.passes.clear();
        assert_eq!(*first.get_or_insert_with(|| report.clone()), report);
    }
}

#[test]
fn counts_beyond_the_memory_go_to_the_disk_with_the_same_ids() {
    // 780,000 different categories, whose counts need 12 MB and more, in 8 MB.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("day_0");
    let mut random = random(3);
    let mut text = String::new();
    for row in 0..60_000_u64 {
        let categories =
            (0..26).map(|_| format!("\t{:08x}", if row % 2 == 0 { random(1 << 32) } else { random(1000) }));
        text += &format!("{}{}{}\n", row % 2, "\t1".repeat(13), categories.collect::<String>());
    }
    fs::write(&file, text).expect("written");
    let convert = |name: &str, memory| {
        let place = folder.path().join(name);
        let limited = ConvertOptions { memory, ..options(frequency(2), 2) };
        criteo(std::slice::from_ref(&file), &place, &limited).expect("converted");
        bytes(&place)
    };
    assert!(convert("small", 16_000_000) == convert("large", 1_000_000_000));
    // Ids of all of them do not fit, and nothing is left.
    let limited = ConvertOptions { memory: 16_000_000, ..options(frequency(1), 2) };
    let error = criteo(&[file], &folder.path().join("all"), &limited).expect_err("too many").to_string();
    assert!(error.contains("raise the frequency threshold, hash the categories"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 3);
}

#[test]
fn unusable_inputs_leave_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("day_0");
    let place = folder.path().join("data");
    let fails = |options: &ConvertOptions, message: &str| {
        let error = criteo(std::slice::from_ref(&file), &place, options).expect_err(message).to_string();
        assert!(error.contains(message), "{error} for {message}");
        let left: Vec<_> =
            fs::read_dir(folder.path()).expect("a folder").flatten().map(|e| e.path()).collect();
        assert!(left.iter().all(|path| *path == file), "{left:?}");
    };
    fails(&options(frequency(1), 2), "day_0");
    fs::write(&file, "nonsense\nand more").expect("written");
    fails(&options(frequency(1), 2), "day_0:1: 1 fields instead of 40");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text(&lines(5000, 1)).join("\n").as_bytes()).expect("compressed");
    let whole = encoder.finish().expect("compressed");
    fs::write(&file, &whole[..whole.len() / 2]).expect("written");
    fails(&options(frequency(1), 2), "day_0");
    fs::write(&file, text(&lines(5, 1)).join("\n")).expect("written");
    fails(&options(frequency(0), 2), "invalid frequency threshold: 0");
    fails(&options(IdRule::Hash { buckets: 1 }, 2), "invalid number of buckets: 1");
    fails(&options(IdRule::Stored, 2), "choose frequency or hash");
    fails(&options(IdRule::Planted { seed: 1, zipf: 0.0 }, 2), "invalid rule of ids");
    fails(&options(frequency(1), 0), "invalid number of threads: 0");
    fails(&ConvertOptions { memory: 1, ..options(frequency(1), 2) }, "invalid memory limit: 1");
    let half = Validation::Fraction(1.5);
    fails(&ConvertOptions { validation: half, ..options(frequency(1), 2) }, "invalid fraction of validation");
    fs::create_dir(&place).expect("a folder");
    fs::write(place.join("mine"), "").expect("written");
    let error = criteo(&[file], &place, &options(frequency(1), 2)).expect_err("occupied").to_string();
    assert!(error.contains("already exists") && !place.join(FEATURES).exists(), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_text_is_converted_or_refused(text in proptest::collection::vec(any::<u8>(), 0..2000), valid in 0_usize..4) {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, place) = (folder.path().join("day_0"), folder.path().join("data"));
        let valid = crate::criteo::text(&lines(valid, 1)).join("\n");
        fs::write(&file, [valid.as_bytes(), b"\n", &text].concat()).expect("written");
        let none = ConvertOptions { transform: Transform::None, ..options(frequency(1), 2) };
        if criteo(&[file], &place, &none).is_ok() {
            let split = Dataset::open(&place).expect("a dataset").split(SplitName::Train);
            prop_assert_eq!(Selection::Range(0..split.rows()).len() as u64, split.rows());
        }
    }
}
