//! Parquet files, opened within bounds.
//!
//! A file claims lengths for its pages, texts and lists. The Parquet reader allocates memory by these claims, and a few bytes
//! can claim any length. So the claims are compared with the length of the file first.

use std::fs::File;
use std::path::Path;

use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use steptime_trace::{open_regular, read_regular};

use crate::error::Error;
use crate::thrift::Values;

/// Longest file that is read, in bytes.
const LONGEST: u64 = 1 << 30;
/// Bytes at the end of a file: the length of its metadata, and a mark.
const END: usize = 8;
/// Ids of the lengths in the header of a page, in bytes: unpacked, and packed.
const UNPACKED: i64 = 2;
const PACKED: i64 = 3;
/// Rows of a batch, at most: few, as each may hold a long text.
const BATCH: usize = 64;

/// The most rows and bytes of a file by its length. Our sweeps take 14 to 32 bytes per row, and unpack to less than ten times
/// their length.
struct Bounds {
    rows: u64,
    unpacked: u64,
    texts: u64,
}

impl Bounds {
    fn from_length(length: u64) -> Bounds {
        Bounds {
            rows: 100_000 + length / 4,
            unpacked: (1 << 20) + 32 * length,
            texts: (32 << 20) + 64 * length,
        }
    }
}

/// Remaining bytes for the texts of a file.
pub(crate) struct Room(u64);

impl Room {
    /// Takes room for a text; `None` if too little is left.
    pub(crate) fn take(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.checked_sub(text.len() as u64)?;
        Some(())
    }
}

/// A file whose sizes fit its length, and the room for its texts.
///
/// # Errors
/// If the file cannot be read. `broken` if it is not Parquet, or claims more than its length allows.
pub(crate) fn open(
    path: &Path,
    broken: impl Fn(String) -> Error,
) -> Result<(ParquetRecordBatchReaderBuilder<File>, Room), Error> {
    let unread = |source| Error::Read { path: path.to_owned(), source };
    let bytes = read_regular(path, LONGEST).map_err(unread)?;
    let bounds = Bounds::from_length(bytes.len() as u64);
    if !has_sound_end(&bytes) {
        return Err(broken("its metadata are cut off or damaged".into()));
    }
    // The types that Arrow stores in addition to Parquet's own are not needed, and reading them may panic.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let file = open_regular(path).map_err(unread)?;
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)
        .map_err(|error| broken(error.to_string()))?;
    let (mut rows, mut unpacked) = (0_u64, 0_u64);
    for group in builder.metadata().row_groups() {
        rows = rows.saturating_add(u64::try_from(group.num_rows()).unwrap_or(u64::MAX));
        for column in group.columns() {
            let (start, length) = column.byte_range();
            let pages = chunk(&bytes, start, length).and_then(unpacked_length);
            let pages = pages.ok_or_else(|| broken("a column is cut off or damaged".into()))?;
            unpacked = unpacked.saturating_add(pages);
        }
    }
    if rows > bounds.rows || unpacked > bounds.unpacked {
        let what = format!("it claims {rows} rows of {unpacked} bytes, more than it has room for");
        return Err(broken(what));
    }
    Ok((builder.with_batch_size(BATCH), Room(bounds.texts)))
}

fn chunk(bytes: &[u8], start: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(start).ok()?;
    bytes.get(start..start.checked_add(usize::try_from(length).ok()?)?)
}

/// Whether the metadata at the end of a file are a value of the length that the file states.
fn has_sound_end(bytes: &[u8]) -> bool {
    let metadata = || {
        let (front, end) = bytes.split_last_chunk::<END>()?;
        let length = end.first_chunk().map(|length| u32::from_le_bytes(*length))?;
        let start = front.len().checked_sub(usize::try_from(length).ok()?)?;
        Values { bytes: &front[start..] }.fields()
    };
    metadata().is_some()
}

/// Number of bytes that the pages of a column unpack to.
fn unpacked_length(bytes: &[u8]) -> Option<u64> {
    let mut pages = Values { bytes };
    let mut length = 0_u64;
    while !pages.bytes.is_empty() {
        let fields = pages.fields()?;
        let of = |id: i64| {
            fields.iter().rfind(|field| field.0 == id).and_then(|field| u64::try_from(field.1).ok())
        };
        length = length.saturating_add(of(UNPACKED)?);
        pages.bytes = pages.bytes.get(usize::try_from(of(PACKED)?).ok()?..)?;
    }
    Some(length)
}
