//! Points of a grid as a Parquet file: one row each, with the values of the keys and the results.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use steptime_answers::GridRow;
use toml::Value;

use super::grid::{Grid, value_text};
use crate::commands::Failure;

/// Separator of doubts.
const AND: &str = "; ";

/// Metadata of a file: keys, their names in messages, and values.
pub type Metadata = Vec<(&'static str, &'static str, String)>;

pub fn write(
    out: &mut dyn Write,
    grid: &Grid,
    rows: &BTreeMap<u64, GridRow>,
    about: &Metadata,
) -> io::Result<()> {
    let pairs = about.iter().map(|(key, _, value)| KeyValue::new((*key).to_owned(), value.clone()));
    let properties = WriterProperties::builder().set_key_value_metadata(Some(pairs.collect())).build();
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    columns.push(("point".into(), Arc::new(UInt64Array::from_iter_values(rows.keys().copied()))));
    for (key, (name, values)) in grid.keys.iter().enumerate() {
        let each = rows.keys().map(|&point| grid.value(key, point));
        columns.push((name.clone(), key_column(values, each)));
    }
    let number = |of: fn(&GridRow) -> Option<f64>| -> ArrayRef {
        Arc::new(rows.values().map(of).collect::<Float64Array>())
    };
    let text = |of: fn(&GridRow) -> Option<String>| -> ArrayRef {
        Arc::new(rows.values().map(of).collect::<StringArray>())
    };
    let of_rows = [
        ("step_ms", number(|row| row.step_ms)),
        ("interval_low_ms", number(|row| row.interval_ms.map(|[low, _]| low))),
        ("interval_high_ms", number(|row| row.interval_ms.map(|[_, high]| high))),
        ("active_ms", number(|row| row.active_ms)),
        ("peak_mb", number(|row| row.peak_mb)),
        ("fits", Arc::new(rows.values().map(|row| row.fits).collect::<BooleanArray>())),
        ("samples_per_s", number(|row| row.samples_per_s)),
        ("error", text(|row| row.error.clone())),
        ("doubts", text(|row| Some(row.doubts.join(AND)))),
    ];
    columns.extend(of_rows.map(|(name, column)| (name.to_owned(), column)));
    let nullable = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(nullable).map_err(io::Error::other)?;
    let mut file = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).map_err(io::Error::other)?;
    writer.write(&batch).map_err(io::Error::other)?;
    writer.close().map_err(io::Error::other)?;
    out.write_all(&file)
}

/// Returns the values of a key as a column of the narrowest type for all.
fn key_column<'g>(known: &[Option<Value>], each: impl Iterator<Item = Option<&'g Value>>) -> ArrayRef {
    let all = |is: fn(&Value) -> bool| known.iter().flatten().all(is);
    if all(Value::is_integer) {
        return Arc::new(each.map(|value| value?.as_integer()).collect::<Int64Array>());
    }
    if all(|value| number(value).is_some()) {
        return Arc::new(each.map(|value| number(value?)).collect::<Float64Array>());
    }
    if all(Value::is_bool) {
        return Arc::new(each.map(|value| value?.as_bool()).collect::<BooleanArray>());
    }
    Arc::new(each.map(|value| Some(value_text(Some(value?)))).collect::<StringArray>())
}

/// Returns a whole number or a fraction as a float.
pub fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// Reads the rows of an earlier run of the same sweep; empty if there is no file.
///
/// # Errors
/// If the file holds something else.
pub fn read(path: &Path, about: &Metadata) -> Result<BTreeMap<u64, GridRow>, Failure> {
    if !path.is_file() {
        return Ok(BTreeMap::new());
    }
    let place = path.display();
    let other = |what: &str| -> Failure {
        format!("{place} exists already, and {what}: give another name with -o, or remove it").into()
    };
    let read = steptime_sweep::guarded(|| rows(path, about));
    match read {
        Ok(Ok(Ok(rows))) => Ok(rows),
        Ok(Ok(Err(differs))) => Err(other(&format!("holds the points of another {differs}"))),
        Ok(Err(_)) | Err(_) => Err(other("holds no points of a grid")),
    }
}

/// Reads the rows; the inner error names the property in which they differ from this sweep.
fn rows(path: &Path, about: &Metadata) -> Result<Result<BTreeMap<u64, GridRow>, &'static str>, Failure> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
    let pairs = builder.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
    let found = |key: &str| pairs.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.clone());
    if about.iter().all(|(key, ..)| found(key).is_none()) {
        return Err("no grid".into());
    }
    if let Some((_, what, _)) = about.iter().find(|(key, _, value)| found(key).as_ref() != Some(value)) {
        return Ok(Err(what));
    }
    let mut rows = BTreeMap::new();
    for batch in builder.build()? {
        take(&batch?, &mut rows).ok_or("a column is missing")?;
    }
    Ok(Ok(rows))
}

fn take(batch: &RecordBatch, rows: &mut BTreeMap<u64, GridRow>) -> Option<()> {
    let points = batch.column_by_name("point")?.as_primitive_opt::<UInt64Type>()?;
    let number = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<Float64Type>();
    let text = |name: &str| batch.column_by_name(name)?.as_string_opt::<i32>();
    let (step, active, peak) = (number("step_ms")?, number("active_ms")?, number("peak_mb")?);
    let (low, high) = (number("interval_low_ms")?, number("interval_high_ms")?);
    // Files of earlier versions do not have this column.
    let fits = batch.column_by_name("fits").and_then(|column| column.as_boolean_opt());
    let (rate, error, doubts) = (number("samples_per_s")?, text("error")?, text("doubts")?);
    for at in 0..batch.num_rows() {
        let of = |column: &Float64Array| column.is_valid(at).then(|| column.value(at));
        let said = |column: &StringArray| column.is_valid(at).then(|| column.value(at).to_owned());
        let doubts = said(doubts).unwrap_or_default();
        let row = GridRow {
            point: points.value(at),
            step_ms: of(step),
            interval_ms: of(low).zip(of(high)).map(|(low, high)| [low, high]),
            active_ms: of(active),
            peak_mb: of(peak),
            fits: fits.filter(|column| column.is_valid(at)).map(|column| column.value(at)),
            samples_per_s: of(rate),
            error: said(error),
            doubts: doubts.split(AND).filter(|doubt| !doubt.is_empty()).map(str::to_owned).collect(),
        };
        rows.insert(row.point, row);
    }
    Some(())
}
