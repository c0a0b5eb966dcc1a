//! Criteo's text: a label, 13 whole numbers and 26 hexadecimal categories a line, separated by tabs.

mod line;
mod parts;

use std::path::{Path, PathBuf};

use super::parsed::{Parsed, Tokens};
use super::table::MISSING;
use super::{ConvertOptions, Damage, Input, Report, convert};
use crate::{Error, Hotness, IdRule, Transform};
use line::{Line, Row};
use parts::{Part, Parts};

/// Dense columns of a line.
pub(super) const DENSE: usize = 13;
/// Categorical columns of a line.
pub(super) const CATEGORICAL: usize = 26;

/// Converts Criteo's text, plain or compressed by gzip or Zstandard, to the dataset `place`.
///
/// Rows keep the order of the files and lines. A damaged line is counted and skipped.
///
/// # Errors
///
/// If an option is impossible, a file cannot be read, the place is occupied or cannot be written, no row is valid, or the
/// ids of frequent categories exceed the memory limit. Nothing is left at the place then.
pub fn criteo(files: &[PathBuf], place: &Path, options: &ConvertOptions) -> Result<Report, Error> {
    if options.ids == IdRule::Stored {
        let reason = "Criteo's categories are hashes, not indices: choose frequency or hash";
        return Err(Error::Option { option: "rule of ids", reason: reason.to_owned() });
    }
    convert(&Criteo::new(files, options.transform), place, options)
}

struct Criteo {
    files: Vec<PathBuf>,
    dense: Vec<String>,
    categorical: Vec<String>,
    /// Transformed values of the first whole numbers.
    small: Vec<f32>,
    transform: Transform,
}

impl Criteo {
    fn new(files: &[PathBuf], transform: Transform) -> Criteo {
        let names = |letter: &str, count| (1..=count).map(|column| format!("{letter}{column}")).collect();
        Criteo {
            files: files.to_vec(),
            dense: names("I", DENSE),
            categorical: names("C", CATEGORICAL),
            small: (0..4096).map(|value| transform.apply(f64::from(value))).collect(),
            transform,
        }
    }

    fn transformed(&self, value: i64) -> f32 {
        let small = usize::try_from(value).ok().and_then(|value| self.small.get(value));
        small.copied().unwrap_or_else(|| self.transform.apply(value as f64))
    }
}

impl Input for Criteo {
    type Part = Part;

    fn files(&self) -> &[PathBuf] {
        &self.files
    }

    fn label(&self) -> &str {
        "label"
    }

    fn dense(&self) -> &[String] {
        &self.dense
    }

    fn categorical(&self) -> &[String] {
        &self.categorical
    }

    fn hotness(&self, _column: usize) -> Hotness {
        Hotness::Fixed(1)
    }

    fn parts(&self) -> impl FnMut() -> Result<Option<Part>, Error> + Send {
        let mut parts = Parts::new(&self.files);
        move || parts.next()
    }

    fn parse(&self, part: Part) -> Result<Parsed, Error> {
        let mut parsed = Parsed { file: part.file, bytes: part.text.len() as u64, ..Parsed::default() };
        // Few lines are shorter than this.
        let rows = part.text.len() / 128;
        parsed.label.reserve(rows);
        parsed.dense.reserve(rows * DENSE);
        parsed.tokens = (0..CATEGORICAL).map(|_| Tokens::fixed(Vec::with_capacity(rows))).collect();
        let mut row = Row { label: 0.0, dense: [0; DENSE], categorical: [MISSING; CATEGORICAL] };
        let mut rest = &*part.text;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            match Line::new(&rest[..end]).parse(&mut row) {
                Ok(()) => {
                    parsed.label.push(row.label);
                    parsed.dense.extend(row.dense.map(|value| self.transformed(value)));
                    parsed.tokens.iter_mut().zip(row.categorical).for_each(|(c, token)| c.values.push(token));
                }
                Err(damage) => parsed.damaged.push((parsed.lines, damage)),
            }
            parsed.lines += 1;
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        if part.long {
            parsed.damaged.push((parsed.lines, Damage::Long));
            parsed.lines += 1;
        }
        Ok(parsed)
    }
}
