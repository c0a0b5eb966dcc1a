//! Reads sweeps from Parquet files.

use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ProjectionMask;
use steptime_trace::open_regular;

use crate::catch_panic::guarded;
use crate::error::Error;
use crate::meta::{SweepMeta, VERSION};
use crate::parquet_file::{self, Room};
use crate::row::{Row, State};

const COLUMNS: [&str; 16] = [
    "case", "leaf", "family", "op", "dims", "strides", "types", "concrete", "devices", "tf32", "indices",
    "state", "us", "us_min", "us_max", "kernels",
];

/// A sweep: its metadata and rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    pub path: PathBuf,
    pub meta: SweepMeta,
    /// Rows in the order of the file.
    pub rows: Vec<Row>,
}

/// Reads a sweep.
///
/// # Errors
///
/// A file that is missing, not Parquet, cut off, of another version, or empty; a row whose time is not a positive
/// number.
pub fn read(path: &Path) -> Result<Sweep, Error> {
    let broken = |what: String| Error::Broken { path: path.to_owned(), what };
    open_regular(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    if path.to_string_lossy().ends_with(".jsonl.gz") {
        let what = "it is JSON lines, not Parquet; convert it with `python -m steptime.measure --convert`";
        return Err(broken(what.into()));
    }
    guarded(|| parquet(path)).unwrap_or_else(|panic| Err(broken(format!("its reader failed ({panic})"))))
}

/// Reads a Parquet file.
fn parquet(path: &Path) -> Result<Sweep, Error> {
    let broken = |what: String| Error::Broken { path: path.to_owned(), what };
    let (builder, mut room) = parquet_file::open(path, broken)?;
    let pairs = builder.metadata().file_metadata().key_value_metadata();
    let entries = pairs.into_iter().flatten().filter(|pair| pair.key != "ARROW:schema");
    let meta = SweepMeta {
        entries: entries.map(|p| (p.key.clone(), p.value.clone().unwrap_or_default())).collect(),
    };
    match meta.get("steptime_sweep_version") {
        Some(VERSION) => {}
        Some(found) => {
            let found = found.to_owned();
            return Err(Error::Version { path: path.to_owned(), found, expected: VERSION });
        }
        None => return Err(broken("it has no version".into())),
    }
    let schema = builder.schema();
    if let Some(missing) = COLUMNS.iter().find(|name| schema.column_with_name(name).is_none()) {
        return Err(broken(format!("it has no column {missing}")));
    }
    let mask = ProjectionMask::columns(builder.parquet_schema(), COLUMNS);
    let reader = builder.with_projection(mask).build().map_err(|error| broken(error.to_string()))?;
    let mut sweep = Sweep { path: path.to_owned(), meta, rows: Vec::new() };
    for batch in reader {
        let batch = batch.map_err(|error| broken(error.to_string()))?;
        take(&batch, &mut sweep, &mut room)?;
    }
    if sweep.rows.is_empty() { Err(Error::Empty { path: path.to_owned() }) } else { Ok(sweep) }
}

/// Reads several sweeps of one GPU.
///
/// # Errors
///
/// Those of [`read`], and two sweeps of different GPUs.
pub fn read_all<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<Sweep>, Error> {
    let sweeps = paths.iter().map(|path| read(path.as_ref())).collect::<Result<Vec<Sweep>, Error>>()?;
    if let Some((first, rest)) = sweeps.split_first() {
        let other = rest.iter().find(|sweep| sweep.meta.device() != first.meta.device());
        if let Some(second) = other {
            return Err(Error::TwoDevices {
                first_path: first.path.clone(),
                first: first.meta.device(),
                second_path: second.path.clone(),
                second: second.meta.device(),
            });
        }
    }
    Ok(sweeps)
}

/// A column by its name, as the type it must have.
fn column<'a, T>(
    batch: &'a RecordBatch,
    path: &Path,
    name: &str,
    cast: impl Fn(&'a ArrayRef) -> Option<&'a T>,
) -> Result<&'a T, Error> {
    let wrong = || Error::Broken { path: path.to_owned(), what: format!("column {name} is of another type") };
    batch.column_by_name(name).and_then(cast).ok_or_else(wrong)
}

/// Appends the rows of a batch.
fn take(batch: &RecordBatch, sweep: &mut Sweep, room: &mut Room) -> Result<(), Error> {
    let path = sweep.path.clone();
    let text = |name| column(batch, &path, name, |values| values.as_string_opt::<i32>());
    let number = |name| column(batch, &path, name, |values| values.as_primitive_opt::<Float32Type>());
    let case = column(batch, &path, "case", |values| values.as_primitive_opt::<Int32Type>())?;
    let leaf = column(batch, &path, "leaf", |values| values.as_primitive_opt::<Int32Type>())?;
    let tf32 = column(batch, &path, "tf32", |values| values.as_boolean_opt())?;
    let (family, op, state) = (text("family")?, text("op")?, text("state")?);
    let (dims, strides, types) = (text("dims")?, text("strides")?, text("types")?);
    let (concrete, devices, indices) = (text("concrete")?, text("devices")?, text("indices")?);
    let kernels = text("kernels")?;
    let (us, us_min, us_max) = (number("us")?, number("us_min")?, number("us_max")?);
    for at in 0..batch.num_rows() {
        let string = |values: &StringArray| {
            if values.is_null(at) { String::new() } else { values.value(at).to_owned() }
        };
        let row = sweep.rows.len();
        let refused = |what| Error::Row { path: path.clone(), row, op: string(op), what };
        let time = us.value(at);
        if us.is_null(at) || !(time.is_finite() && time > 0.0) {
            return Err(refused(format!("a time of {time} µs")));
        }
        let texts = [family, op, dims, strides, types, concrete, devices, indices, kernels];
        let fits =
            texts.iter().filter(|text| !text.is_null(at)).try_for_each(|text| room.take(text.value(at)));
        fits.ok_or_else(|| refused("its texts are longer than the file has room for".into()))?;
        let state =
            State::parse(&string(state)).ok_or_else(|| refused(format!("a state of {:?}", string(state))))?;
        sweep.rows.push(Row {
            case: case.value(at),
            leaf: leaf.value(at),
            family: string(family),
            op: string(op),
            dims: string(dims),
            strides: string(strides),
            types: string(types),
            concrete: string(concrete),
            devices: string(devices),
            tf32: tf32.value(at),
            indices: string(indices),
            state,
            us: time,
            us_min: us_min.value(at),
            us_max: us_max.value(at),
            kernels: string(kernels),
        });
    }
    Ok(())
}
