//! The mapped files of a dataset.

use std::path::{Path, PathBuf};

use crate::map::Map;
use crate::{Categorical, Error, Features, Hotness};

/// The mapped files of a dataset.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) features: Features,
    pub(super) label: Stored,
    pub(super) dense: Option<Stored>,
    pub(super) categorical: Vec<StoredColumn>,
}

/// A mapped file and its path.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) map: Map,
    pub(super) path: PathBuf,
}

#[derive(Debug)]
pub(super) struct StoredColumn {
    pub(super) values: Stored,
    pub(super) offsets: Option<Stored>,
}

impl Opened {
    /// Maps the files, and checks their lengths.
    pub(super) fn open(folder: &Path) -> Result<Opened, Error> {
        let features = Features::read(folder)?;
        let rows = features.rows;
        let label = Stored::open(folder, &features.label.file, Some(rows), 4)?;
        let dense = &features.dense;
        let row = dense.columns.len() * dense.r#type.width();
        let dense = (row > 0).then(|| Stored::open(folder, &dense.file, Some(rows), row)).transpose()?;
        let column = |column| StoredColumn::open(folder, column, rows);
        let categorical = features.categorical.iter().map(column).collect::<Result<_, _>>()?;
        Ok(Opened { features, label, dense, categorical })
    }
}

impl Stored {
    /// Maps a file of `count` values of `width` bytes each; without a count the file cannot have the right length.
    fn open(folder: &Path, name: &str, count: Option<u64>, width: usize) -> Result<Stored, Error> {
        let path = folder.join(name);
        let map = Map::open(&path)?;
        let (count, width, found) = (count.unwrap_or(u64::MAX), width as u64, map.len() as u64);
        let expected = count.saturating_mul(width);
        if found != expected {
            return Err(Error::Length { path, count, width, expected, found });
        }
        Ok(Stored { map, path })
    }
}

impl StoredColumn {
    fn open(folder: &Path, column: &Categorical, rows: u64) -> Result<StoredColumn, Error> {
        let count = match column.hotness {
            Hotness::Fixed(hotness) => rows.checked_mul(u64::from(hotness)),
            Hotness::Ragged => column.values,
        };
        let values = Stored::open(folder, &column.file, count, column.r#type.width())?;
        let offsets = column
            .offsets
            .as_deref()
            .map(|name| Stored::open(folder, name, rows.checked_add(1), 8))
            .transpose()?;
        Ok(StoredColumn { values, offsets })
    }
}
