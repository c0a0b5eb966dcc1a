//! Record batches of Parquet files.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;

use super::ParquetColumns;
use crate::Error;

/// Rows of a part.
const ROWS: usize = 8192;

/// Rows of one file.
#[derive(Debug)]
pub(super) struct Part {
    /// Position of the file among the inputs.
    pub(super) file: usize,
    pub(super) batch: RecordBatch,
}

/// Reader of the rows of several files.
pub(super) struct Reader<'a> {
    files: &'a [PathBuf],
    columns: &'a ParquetColumns,
    /// Position of the next file.
    next: usize,
    current: Option<ParquetRecordBatchReader>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(files: &'a [PathBuf], columns: &'a ParquetColumns) -> Reader<'a> {
        Reader { files, columns, next: 0, current: None }
    }

    /// The next rows, or none at the end of the last file.
    pub(super) fn next(&mut self) -> Result<Option<Part>, Error> {
        loop {
            let reader = match &mut self.current {
                Some(reader) => reader,
                none => {
                    let Some(path) = self.files.get(self.next) else { return Ok(None) };
                    self.next += 1;
                    none.insert(read(path, self.columns)?)
                }
            };
            let file = self.next - 1;
            match reader.next() {
                None => self.current = None,
                Some(Ok(batch)) => return Ok(Some(Part { file, batch })),
                Some(Err(error)) => {
                    return Err(failed(&self.files[file])(ParquetError::ArrowError(error.to_string())));
                }
            }
        }
    }
}

fn failed(path: &Path) -> impl Fn(ParquetError) -> Error + '_ {
    |source| Error::Parquet { path: path.to_owned(), source }
}

pub(super) fn open(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>, Error> {
    let file = File::open(path).map_err(Error::io(path))?;
    // Types by Parquet alone: Arrow's own schema in the file may ask for dictionaries or views.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).map_err(failed(path))
}

fn read(path: &Path, columns: &ParquetColumns) -> Result<ParquetRecordBatchReader, Error> {
    let builder = open(path)?;
    let names = names(columns);
    let wanted = builder.schema().fields().iter().enumerate();
    let wanted: Vec<usize> =
        wanted.filter(|(_, field)| names.contains(&field.name().as_str())).map(|(place, _)| place).collect();
    let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
    builder.with_projection(mask).with_batch_size(ROWS).build().map_err(failed(path))
}

fn names(columns: &ParquetColumns) -> Vec<&str> {
    let dense = columns.dense.iter().map(String::as_str);
    let categorical = columns.categorical.iter().map(|column| column.name.as_str());
    std::iter::once(&*columns.label).chain(dense).chain(categorical).collect()
}
