//! Counts of lines, rows and damage of a pass, in the order of the input.

use std::path::PathBuf;

use super::parsed::{Damage, Parsed};
use super::{DamagedRow, Progress, ProgressFn, Validation};
use crate::Splits;

/// Number of damaged rows whose places are kept.
const KEPT: usize = 10;

/// Counts of a pass.
pub(super) struct Tally<'a> {
    pass: &'static str,
    files: &'a [PathBuf],
    progress: Option<&'a ProgressFn>,
    /// Lines and rows of each file.
    counts: Vec<(u64, u64)>,
    pub(super) bytes: u64,
    pub(super) damaged: u64,
    pub(super) first: Vec<DamagedRow>,
}

/// Counts of a part of the input.
#[derive(Debug)]
pub(super) struct Counted {
    file: usize,
    bytes: u64,
    lines: u64,
    rows: u64,
    damaged: Vec<(u64, Damage)>,
}

impl Counted {
    pub(super) fn new(parsed: Parsed) -> Counted {
        let Parsed { file, bytes, lines, label, damaged, .. } = parsed;
        Counted { file, bytes, lines, rows: label.len() as u64, damaged }
    }
}

impl<'a> Tally<'a> {
    pub(super) fn new(
        pass: &'static str,
        files: &'a [PathBuf],
        progress: Option<&'a ProgressFn>,
    ) -> Tally<'a> {
        let counts = vec![(0, 0); files.len()];
        Tally { pass, files, progress, counts, bytes: 0, damaged: 0, first: Vec::new() }
    }

    /// Adds the next part of the input.
    pub(super) fn add(&mut self, part: Counted) {
        let (lines, rows) = &mut self.counts[part.file];
        self.bytes += part.bytes;
        self.damaged += part.damaged.len() as u64;
        for (line, damage) in part.damaged.into_iter().take(KEPT - self.first.len()) {
            let file = self.files[part.file].clone();
            self.first.push(DamagedRow { file, line: *lines + line + 1, damage });
        }
        *lines += part.lines;
        *rows += part.rows;
        if let Some(progress) = self.progress {
            let (pass, bytes, rows) = (self.pass, self.bytes, self.rows());
            progress(&Progress { pass, file: part.file, bytes, rows });
        }
    }

    pub(super) fn rows(&self) -> u64 {
        self.counts.iter().map(|(_, rows)| rows).sum()
    }

    /// Ranges of rows of the splits.
    pub(super) fn splits(&self, validation: Validation) -> Splits {
        let rows = self.rows();
        let last = match validation {
            Validation::Fraction(fraction) => (rows as f64 * fraction).round() as u64,
            Validation::LastFiles(files) => self.counts.iter().rev().take(files).map(|(_, rows)| rows).sum(),
        };
        Splits { train: [0, rows - last], validation: [rows - last, rows] }
    }
}
