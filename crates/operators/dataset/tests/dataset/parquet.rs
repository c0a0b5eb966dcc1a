//! Conversion of Parquet files.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int8Array, Int64Array, RecordBatch, UInt32Array};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use steptime_dataset::convert::{ConvertOptions, Damage, ParquetColumn, ParquetColumns, Validation, parquet};
use steptime_dataset::{BatchOptions, Batches, Dataset, Hotness, IdRule, SplitName, Transform};

use crate::rows::{Row, of_batch};

fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    );
    let batch = batch.expect("columns");
    // The name chooses the compression.
    let compressions = [
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
    ];
    let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
    let compression = compressions[name.parse::<usize>().expect("a number")];
    let properties = WriterProperties::builder().set_compression(compression).build();
    let file = File::create(path).expect("a file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
    writer.write(&batch).and_then(|()| writer.close().map(drop)).expect("written");
    path.to_owned()
}

/// Rows of every type, beginning at a number. Row 5 has an infinite dense value, row 6 no label.
fn file(path: &Path, rows: std::ops::Range<i64>) -> PathBuf {
    let column = |name: &'static str, array: ArrayRef| (name, array);
    let mut tags = ListBuilder::new(StringBuilder::new());
    let mut pair = ListBuilder::new(Int64Builder::new());
    let mut shops = StringDictionaryBuilder::<Int32Type>::new();
    for row in rows.clone() {
        (0..row % 4).for_each(|tag| tags.values().append_value(format!("tag {}", row % 2 + tag)));
        tags.append(row % 5 != 4);
        pair.values().append_value(row % 3);
        pair.values().append_option((row % 7 != 0).then_some(row % 2));
        pair.append(true);
        shops.append_value(format!("shop {}", row % 6));
    }
    let label = rows.clone().map(|row| (row != 6).then_some(row % 2 == 0));
    let price = rows.clone().map(|row| match row % 10 {
        3 => None,
        _ if row == 5 => Some(f64::INFINITY),
        _ => Some(row as f64 - 2.0),
    });
    let age = rows.clone().map(|row| Some((row % 100) as i8));
    let user = rows.clone().map(|row| (row % 11 != 0).then_some(row % 9));
    let item = rows.clone().map(|row| Some((row % 1000) as u32));
    write(
        path,
        vec![
            column("unused", Arc::new(Int64Array::from_iter_values(rows.clone()))),
            column("user", Arc::new(Int64Array::from_iter(user))),
            column("price", Arc::new(Float64Array::from_iter(price))),
            column("label", Arc::new(BooleanArray::from_iter(label))),
            column("tags", Arc::new(tags.finish())),
            column("pair", Arc::new(pair.finish())),
            column("shop", Arc::new(shops.finish())),
            column("age", Arc::new(Int8Array::from_iter(age))),
            column("item", Arc::new(UInt32Array::from_iter(item))),
        ],
    )
}

fn columns(names: &[&str]) -> ParquetColumns {
    let hotness = |name: &&str| (*name == "pair").then_some(2);
    let column = |name| ParquetColumn { hotness: hotness(name), ..ParquetColumn::new(name) };
    ParquetColumns {
        label: "label".to_owned(),
        dense: vec!["age".to_owned(), "price".to_owned()],
        categorical: names.iter().map(column).collect(),
    }
}

fn options(ids: IdRule, threads: usize) -> ConvertOptions {
    let validation = Validation::LastFiles(2);
    ConvertOptions { threads, transform: Transform::None, validation, ..ConvertOptions::new(ids) }
}

fn rows(place: &Path, split: SplitName) -> Vec<Row> {
    let dataset = Dataset::open(place).expect("a dataset");
    let batches = Batches::new(Arc::new(dataset.split(split)), BatchOptions::new(64)).expect("batches");
    batches.flat_map(|batch| of_batch(&batch.expect("a batch"))).collect()
}

#[test]
fn columns_of_all_types_become_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [
        file(&folder.path().join("0.parquet"), 0..20_000),
        file(&folder.path().join("1.parquet"), 20_000..20_050),
        file(&folder.path().join("2.parquet"), 20_050..20_100),
    ];
    let columns = columns(&["shop", "user", "tags", "pair"]);
    let mut first = None;
    for threads in [1, 2, 5] {
        let place = folder.path().join(format!("data_{threads}"));
        let report = parquet(&files, &columns, &place, &options(IdRule::Frequency { threshold: 1 }, threads))
            .expect("converted");
        assert_eq!(report.damaged, 2);
        let damaged: Vec<_> =
            report.first_damaged.iter().map(|row| (&row.file, row.line, &row.damage)).collect();
        let price = Damage::Dense { column: "price".to_owned() };
        assert_eq!(damaged, [(&files[0], 6, &price), (&files[0], 7, &Damage::Label)]);
        let described = &report.features.categorical;
        assert!(described.iter().map(|c| (&*c.name, c.hotness)).eq([
            ("shop", Hotness::Fixed(1)),
            ("user", Hotness::Fixed(1)),
            ("tags", Hotness::Ragged),
            ("pair", Hotness::Fixed(2)),
        ]));
        assert!(described.iter().map(|c| c.cardinality).eq([7, 10, 5, 4]));
        let found = [SplitName::Train, SplitName::Validation].map(|split| rows(&place, split));
        assert_eq!(found.each_ref().map(Vec::len), [19_998, 100]);
        assert!(*first.get_or_insert_with(|| found.clone()) == found, "{threads}");
    }
    let found = first.expect("rows").concat();
    let kept = (0..20_100_i64).filter(|row| ![5, 6].contains(row));
    // Ids are a one-to-one function of categories.
    let mut seen = std::collections::BTreeMap::new();
    let mut same = |column: &str, category: Option<i64>, id: i32| match category {
        None => assert_eq!(id, 0, "{column}"),
        Some(category) => {
            assert!(id > 0, "{column}");
            assert_eq!(*seen.entry((column.to_owned(), category)).or_insert(id), id);
            assert_eq!(
                *seen.entry((format!("{column} of"), i64::from(id))).or_insert(category as i32),
                category as i32
            );
        }
    };
    for ((label, dense, ids), row) in found.into_iter().zip(kept) {
        assert_eq!(label, f32::from(row % 2 == 0));
        assert_eq!(dense, [(row % 100) as f32, if row % 10 == 3 { 0.0 } else { row as f32 - 2.0 }]);
        same("shop", Some(row % 6), ids[0][0]);
        same("user", (row % 11 != 0).then_some(row % 9), ids[1][0]);
        let tags = if row % 5 == 4 { 0 } else { row % 4 };
        assert_eq!(ids[2].len(), tags as usize, "{row}");
        ids[2].iter().zip(0..).for_each(|(&id, tag)| same("tag", Some(row % 2 + tag), id));
        same("pair", Some(row % 3), ids[3][0]);
        same("pair", (row % 7 != 0).then_some(row % 2), ids[3][1]);
    }
}

#[test]
fn stored_indices_are_kept_and_hashes_are_below_the_buckets() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [file(&folder.path().join("0.parquet"), 0..3000)];
    let (stored, hashed) = (folder.path().join("stored"), folder.path().join("hashed"));
    let report = parquet(&files, &columns(&["item", "user"]), &stored, &options(IdRule::Stored, 2))
        .expect("converted");
    assert!(report.features.categorical.iter().map(|c| c.cardinality).eq([1000, 9]));
    for ((_, _, ids), row) in
        rows(&stored, SplitName::Validation).into_iter().zip((0..).filter(|row| ![5, 6].contains(row)))
    {
        assert_eq!(ids, [vec![row % 1000], vec![if row % 11 == 0 { 0 } else { row % 9 }]]);
    }
    parquet(&files, &columns(&["shop"]), &hashed, &options(IdRule::Hash { buckets: 50 }, 2))
        .expect("converted");
    let rows = rows(&hashed, SplitName::Validation);
    assert!(rows.iter().all(|row| (1..50).contains(&row.2[0][0])));
}

#[test]
fn rows_with_impossible_categories_are_skipped() {
    let folder = tempfile::tempdir().expect("a folder");
    let ids = Int64Array::from(vec![Some(3), Some(-2), None, Some(i64::from(i32::MAX)), Some(5)]);
    let mut lists = ListBuilder::new(Int64Builder::new());
    for count in [2, 2, 2, 2, 3] {
        (0..count).for_each(|value| lists.values().append_value(value));
        lists.append(true);
    }
    let label: ArrayRef = Arc::new(Int8Array::from(vec![1, 0, 1, 0, 1]));
    let columns = ParquetColumns {
        label: "label".to_owned(),
        dense: Vec::new(),
        categorical: vec![
            ParquetColumn::new("id"),
            ParquetColumn { name: "list".to_owned(), hotness: Some(2) },
        ],
    };
    let path = folder.path().join("0.parquet");
    let files =
        [write(&path, vec![("label", label), ("id", Arc::new(ids)), ("list", Arc::new(lists.finish()))])];
    let report = parquet(&files, &columns, &folder.path().join("data"), &options(IdRule::Stored, 1))
        .expect("converted");
    let damage = |line: usize| &report.first_damaged[line].damage;
    assert_eq!(report.first_damaged.iter().map(|row| row.line).collect::<Vec<_>>(), [2, 4, 5]);
    assert_eq!(*damage(0), Damage::Category { column: "id".to_owned() });
    assert_eq!(*damage(2), Damage::Hotness { column: "list".to_owned(), found: 3 });
    let rows = rows(&folder.path().join("data"), SplitName::Validation);
    assert_eq!(rows, [(1.0, vec![], vec![vec![3], vec![0, 1]]), (1.0, vec![], vec![vec![0], vec![0, 1]])]);
}

#[test]
fn unusable_columns_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder.path().join("0.parquet"), 0..10);
    let fails = |columns: &ParquetColumns, ids: IdRule, message: &str| {
        let place = folder.path().join("data");
        let error = parquet(std::slice::from_ref(&path), columns, &place, &options(ids, 1))
            .expect_err(message)
            .to_string();
        assert!(error.contains(message) && !place.exists(), "{error} for {message}");
    };
    let counted = IdRule::Frequency { threshold: 1 };
    fails(
        &columns(&["color"]),
        counted,
        "has no column color; its columns are unused, user, price, label, tags",
    );
    fails(
        &columns(&["price"]),
        counted,
        "column price is Float64, and a categorical column needs whole numbers",
    );
    fails(
        &columns(&["shop"]),
        IdRule::Stored,
        "column shop is Utf8, and a column of indices needs whole numbers",
    );
    let label = ParquetColumns { label: "shop".to_owned(), ..columns(&[]) };
    fails(&label, counted, "column shop is Utf8, and a label needs numbers or booleans");
    let bytes = std::fs::read(&path).expect("bytes");
    for length in [0, 3, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..length]).expect("written");
        fails(&columns(&["user"]), counted, "0.parquet");
    }
}
