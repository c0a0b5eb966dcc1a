//! Conversion of other formats.

mod counts;
mod criteo;
mod ids;
mod options;
pub(crate) mod ordered;
mod parquet;
mod parsed;
mod runs;
mod table;
mod tally;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

pub use criteo::criteo;
pub use options::{ConvertOptions, Pass, Progress, ProgressFn, Report, Validation};
pub use parquet::{ParquetColumn, ParquetColumns, parquet};
pub use parsed::{Damage, DamagedRow};

use crate::disk::is_free;
use crate::{Block, Categorical, Column, Dense, Error, Features, Hotness, IdRule, Rows, Writer};
use counts::Counts;
use ids::Ids;
use ordered::ordered;
use parsed::{Parsed, Tokens};
use tally::{Counted, Tally};

/// An input of a conversion.
trait Input: Sync {
    /// A part of one file, as it is read.
    type Part: Send;

    /// The files, in order.
    fn files(&self) -> &[PathBuf];
    /// Name of the label.
    fn label(&self) -> &str;
    /// Names of the dense columns.
    fn dense(&self) -> &[String];
    /// Names of the categorical columns.
    fn categorical(&self) -> &[String];
    /// Hotness of a categorical column.
    fn hotness(&self, column: usize) -> Hotness;
    /// Reads the parts of all files from the first on.
    fn parts(&self) -> impl FnMut() -> Result<Option<Self::Part>, Error> + Send;
    /// Parses a part.
    fn parse(&self, part: Self::Part) -> Result<Parsed, Error>;
}

/// Converts an input to the dataset `place`.
fn convert<I: Input>(input: &I, place: &Path, options: &ConvertOptions) -> Result<Report, Error> {
    options.check()?;
    is_free(place)?;
    let mut passes = Vec::new();
    let ids = ids(input, place, options, &mut passes)?;
    let writer = Writer::create(place, features(input, options, &ids))?;
    rows(input, writer, options, &ids, passes)
}

/// Pass 1, if the rule of ids needs one.
fn ids<I: Input>(
    input: &I,
    place: &Path,
    options: &ConvertOptions,
    passes: &mut Vec<Pass>,
) -> Result<Ids, Error> {
    let columns = input.categorical();
    let begin = Instant::now();
    let (ids, tally) = match options.ids {
        IdRule::Hash { buckets } => return Ok(Ids::Hash(buckets)),
        IdRule::Frequency { threshold } => {
            let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty());
            let folder = options.temporary.as_deref().or(parent).unwrap_or(Path::new("."));
            std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
            let counts = Counts::new(columns.len(), options.memory / 2, folder);
            let turn = AtomicUsize::new(0);
            let tally =
                pass(input, options, |tokens| counts.add(tokens, turn.fetch_add(1, Ordering::Relaxed)))?;
            (counts.into_ids(threshold, options.memory / 10 * 6, columns)?, tally)
        }
        IdRule::Stored | IdRule::Planted { .. } => {
            let greatest: Vec<_> = columns.iter().map(|_| std::sync::atomic::AtomicU64::new(0)).collect();
            let tally = pass(input, options, |tokens| {
                for (greatest, tokens) in greatest.iter().zip(tokens) {
                    let known = tokens.values.iter().filter(|&&token| token != table::MISSING);
                    greatest.fetch_max(known.copied().max().unwrap_or(0), Ordering::Relaxed);
                }
                Ok(())
            })?;
            (Ids::Stored(greatest.into_iter().map(|greatest| greatest.into_inner()).collect()), tally)
        }
    };
    passes.push(Pass { name: "count", bytes: tally.bytes, time: begin.elapsed() });
    Ok(ids)
}

/// Parses the whole input, and calls `each` with the tokens of its parts in any order.
fn pass<'a, I: Input>(
    input: &'a I,
    options: &'a ConvertOptions,
    each: impl Fn(&[Tokens]) -> Result<(), Error> + Sync,
) -> Result<Tally<'a>, Error> {
    let mut tally = Tally::new("count", input.files(), options.progress.as_deref());
    let work = |part| {
        let parsed = input.parse(part)?;
        each(&parsed.tokens)?;
        Ok(Counted::new(parsed))
    };
    let commit = |part| {
        tally.add(part);
        Ok(())
    };
    ordered(options.threads, input.parts(), work, commit)?;
    Ok(tally)
}

fn features<I: Input>(input: &I, options: &ConvertOptions, ids: &Ids) -> Features {
    let dense = Dense {
        columns: input.dense().to_vec(),
        r#type: options.dense,
        transform: options.transform,
        file: "dense.bin".to_owned(),
    };
    let column = |(place, name): (usize, &String)| {
        Categorical::new(name, ids.cardinality(place), input.hotness(place), place)
    };
    let categorical = input.categorical().iter().enumerate().map(column).collect();
    Features::new(options.ids, input.label(), dense, categorical)
}

/// The last pass: writes the rows.
fn rows<I: Input>(
    input: &I,
    mut writer: Writer,
    options: &ConvertOptions,
    ids: &Ids,
    mut passes: Vec<Pass>,
) -> Result<Report, Error> {
    let begin = Instant::now();
    let mut tally = Tally::new("rows", input.files(), options.progress.as_deref());
    let features = writer.features().clone();
    let work = |part| {
        let parsed = input.parse(part)?;
        let block = encode(&features, &parsed, ids)?;
        Ok((block, Counted::new(parsed)))
    };
    let commit = |(block, part)| {
        tally.add(part);
        writer.append(&block)
    };
    ordered(options.threads, input.parts(), work, commit)?;
    if tally.rows() == 0 {
        let first = tally.first.first().map_or("there is none".to_owned(), ToString::to_string);
        return Err(Error::NoRows { files: input.files().len(), first });
    }
    let features = writer.finish(tally.splits(options.validation))?;
    passes.push(Pass { name: "rows", bytes: tally.bytes, time: begin.elapsed() });
    Ok(Report { features, damaged: tally.damaged, first_damaged: tally.first, passes })
}

fn encode(features: &Features, parsed: &Parsed, ids: &Ids) -> Result<Block, Error> {
    let indices = |(column, tokens): (usize, &Tokens)| {
        let mut indices = Vec::with_capacity(tokens.values.len());
        ids.indices(column, &tokens.values, &mut indices);
        indices
    };
    let indices: Vec<Vec<i32>> = parsed.tokens.iter().enumerate().map(indices).collect();
    let columns = indices.iter().zip(&parsed.tokens);
    let categorical =
        columns.map(|(values, tokens)| Column { values, lengths: tokens.lengths.as_deref() }).collect();
    Block::encode(features, &Rows { label: &parsed.label, dense: &parsed.dense, categorical })
}
