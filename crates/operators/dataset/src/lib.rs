//! Training data of recommenders: labels, dense values, categorical indices.
//!
//! | module or type | contents |
//! |---|---|
//! | [`convert`] | Criteo's text and Parquet files to the format on disk, in bounded memory |
//! | [`Dataset`], [`Split`], [`Writer`] | the format on disk: mapped files, and their writing |
//! | [`Planted`] | synthetic rows whose best AUC and log loss are known |
//! | [`Batches`] | batches of a split or of planted rows, read ahead by threads into buffers of the caller's kind |
//!
//! # Conversion
//!
//! [`convert::criteo()`] reads Criteo's text, plain or compressed by gzip or Zstandard: a label, 13 whole numbers and 26
//! hexadecimal categories a line. [`convert::parquet()`] reads any Parquet files by a list of columns. Rows keep the order of
//! the input, and the result does not depend on the number of threads.
//!
//! * Categories become indices by an [`IdRule`]. With `frequency` a first pass counts the categories of each column; those
//!   that occur often enough get the indices 1, 2, ... from the most to the least frequent, all others and missing ones
//!   index 0. With `hash` one pass suffices.
//! * Dense values become `ln(max(x, 0) + 1)`, a missing value 0.
//! * The last rows are for validation: a fraction of them, or those of the last files.
//! * A damaged row is counted and skipped. The report has the file, line and reason of the first 10.
//! * Counts that exceed the memory limit go to sorted runs in a temporary file, which are merged after the pass.
//!
//! # The format on disk
//!
//! A folder with a description, `features.toml`, and a file for each column; the dense columns share one. Numbers are
//! little-endian, rows have a fixed width, and files have no header: `numpy.fromfile` reads them.
//!
//! ```toml
//! version = 1
//! rows = 45840617
//!
//! [ids]                            # source of the indices: frequency, hash, stored or planted
//! rule = "frequency"
//! threshold = 15
//!
//! [splits]                         # ranges of rows, [first, end]
//! train = [0, 41256555]
//! validation = [41256555, 45840617]
//!
//! [label]                          # [rows] of f32
//! name = "label"
//! file = "label.bin"
//!
//! [dense]                          # [rows, columns] of f32 or f16, row by row
//! columns = ["I1", "I2", "I3"]
//! type = "f32"
//! transform = "log1p"              # applied to the source's values; or "none"
//! file = "dense.bin"
//!
//! [[categorical]]                  # [rows, hotness] of u8, u16 or i32: the narrowest that the cardinality allows
//! name = "C1"
//! cardinality = 1461               # indices are in 0..cardinality
//! type = "u16"
//! hotness = 1
//! file = "00_C1.bin"
//!
//! [[categorical]]                  # any number of indices a row: those of row r are values[offsets[r]..offsets[r + 1]]
//! name = "tags"
//! cardinality = 90000
//! type = "i32"
//! hotness = "offsets"
//! file = "01_tags.bin"             # [values]
//! offsets = "01_tags.offsets.bin"  # [rows + 1] of u64
//! values = 137521851
//! ```
//!
//! A [`Writer`] writes the folder aside, under a hidden name, and renames it whole: there is never half a dataset at its
//! place. [`Dataset::open`] maps the files and checks each length against the description. Other programs must leave the
//! files of an open dataset unchanged.
//!
//! # Batches
//!
//! A batch has its columns one after another in one buffer: labels, dense values as `f32`, indices as `i32`, at the places of
//! its [`Layout`]. One copy moves it to a GPU. Columns without offsets have the same places in each batch, as a CUDA graph
//! requires. Buffers come from an [`Allocate`], so they may be pinned; each is used again when its batch is dropped. Every
//! index is compared with the cardinality of its column.
//!
//! A [`Shuffle`] orders blocks of rows at random, then the rows of each window of blocks. The order is a function of seed,
//! epoch and place: nothing is stored, and a [`Position`] continues it anywhere. Batches do not depend on the number of
//! threads.
//!
//! ```
//! use std::sync::Arc;
//! use steptime_dataset::{BatchOptions, Batches, Dataset, Planted, PlantedOptions, Shuffle, SplitName};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let place = folder.path().join("planted");
//! let planted = Planted::new(PlantedOptions::new(1, 1000))?;
//! planted.write(&place, 100, 2)?;
//!
//! let train = Arc::new(Dataset::open(&place)?.split(SplitName::Train));
//! let options = BatchOptions { shuffle: Some(Shuffle::new(7)), epochs: 2, ..BatchOptions::new(256) };
//! let mut batches = Batches::new(train.clone(), options)?;
//! let first = batches.next().ok_or("no batch")??;
//! assert_eq!((first.rows(), first.dense().len(), first.categorical(0).values.len()), (256, 256 * 13, 256));
//!
//! // Another run continues after the first batch.
//! let start = batches.position();
//! let mut resumed = Batches::new(train, BatchOptions { start, ..options })?;
//! let (second, same) = (batches.next().ok_or("no batch")??, resumed.next().ok_or("no batch")??);
//! assert_eq!(second.label(), same.label());
//! # Ok(())
//! # }
//! ```
//!
//! # Planted data
//!
//! A [`Planted`] row is a function of seed and number: dense values, indices (uniform or by Zipf's law) and a label that is
//! drawn with the probability of a fixed factorization machine. The probability of each row is known, and so are the best
//! AUC and log loss that any model can reach on average ([`Planted::best`]). It is a source of batches itself, or is written
//! to disk. The default has the 26 cardinalities of Criteo's Kaggle challenge.

#![deny(missing_docs)]
#![deny(unsafe_code)]

mod batches;
pub mod convert;
mod disk;
mod error;
mod format;
#[expect(unsafe_code, reason = "mapping a file; each use has its reason")]
mod map;
mod source;
mod synthetic;

pub use batches::{
    ALIGNMENT, Allocate, Batch, BatchOptions, Batches, Buffer, ColumnIndices, ColumnLayout, Heap, HeapBuffer,
    Last, Layout, Position, Shuffle,
};
pub use disk::{Block, Column, Dataset, Rows, Split, Writer};
pub use error::Error;
pub use format::{
    Categorical, Dense, DenseType, FEATURES, Features, Hotness, IdRule, IndexType, Label, SplitName, Splits,
    Transform, VERSION,
};
pub use source::{Selection, Slot, Slots, Source};
pub use synthetic::{Best, KAGGLE_CARDINALITIES, Planted, PlantedOptions, PlantedRow};
