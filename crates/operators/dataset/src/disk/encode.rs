//! Rows in memory as bytes of the format.

use half::f16;

use crate::{Categorical, DenseType, Error, Features, Hotness, IndexType};

/// Rows in memory, column by column.
#[derive(Debug, Clone)]
pub struct Rows<'a> {
    /// Labels, `[rows]`.
    pub label: &'a [f32],
    /// Dense values, `[rows, columns]` row by row.
    pub dense: &'a [f32],
    /// Categorical columns.
    pub categorical: Vec<Column<'a>>,
}

/// Indices of one categorical column.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    /// Indices: `[rows, hotness]`, or those of all rows one after another.
    pub values: &'a [i32],
    /// Number of indices of each row, if the hotness varies.
    pub lengths: Option<&'a [u32]>,
}

/// Rows as bytes of the files.
#[derive(Debug)]
pub struct Block {
    pub(super) rows: u64,
    pub(super) label: Vec<u8>,
    pub(super) dense: Vec<u8>,
    pub(super) categorical: Vec<EncodedColumn>,
}

#[derive(Debug)]
pub(super) struct EncodedColumn {
    pub(super) values: Vec<u8>,
    /// Number of indices of each row, if the hotness varies.
    pub(super) lengths: Option<Vec<u32>>,
}

impl Block {
    /// Encodes rows of a described dataset.
    ///
    /// # Errors
    ///
    /// If the rows do not have the described columns, or an index is outside `0..cardinality`.
    pub fn encode(features: &Features, rows: &Rows<'_>) -> Result<Block, Error> {
        let count = rows.label.len();
        let dense = features.dense.columns.len();
        if rows.dense.len() != count * dense || rows.categorical.len() != features.categorical.len() {
            let reason = format!(
                "{count} labels, {} dense values for {dense} columns, {} categorical columns for {}",
                rows.dense.len(),
                rows.categorical.len(),
                features.categorical.len()
            );
            return Err(Error::Columns { reason });
        }
        let columns = features.categorical.iter().zip(&rows.categorical);
        Ok(Block {
            rows: count as u64,
            label: rows.label.iter().flat_map(|value| value.to_le_bytes()).collect(),
            dense: encode_dense(features.dense.r#type, rows.dense),
            categorical: columns
                .map(|(described, column)| EncodedColumn::new(described, column, count))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

impl EncodedColumn {
    fn new(described: &Categorical, column: &Column<'_>, rows: usize) -> Result<EncodedColumn, Error> {
        let fits = match (described.hotness, column.lengths) {
            (Hotness::Fixed(hotness), None) => column.values.len() == rows * hotness as usize,
            (Hotness::Ragged, Some(lengths)) => {
                lengths.len() == rows
                    && lengths.iter().map(|&length| u64::from(length)).sum::<u64>()
                        == column.values.len() as u64
            }
            _ => false,
        };
        if !fits {
            let reason = format!(
                "column {} has {} indices in {rows} rows, which is not its hotness {:?}",
                described.name,
                column.values.len(),
                described.hotness
            );
            return Err(Error::Columns { reason });
        }
        let outside = |&&index: &&i32| index.cast_unsigned() >= described.cardinality;
        if let Some(index) = column.values.iter().find(outside) {
            let reason =
                format!("column {}: index {index} is outside 0..{}", described.name, described.cardinality);
            return Err(Error::Columns { reason });
        }
        let indices = column.values.iter();
        let values = match described.r#type {
            IndexType::U8 => indices.map(|&index| index as u8).collect(),
            IndexType::U16 => indices.flat_map(|&index| (index as u16).to_le_bytes()).collect(),
            IndexType::I32 => indices.flat_map(|&index| index.to_le_bytes()).collect(),
        };
        Ok(EncodedColumn { values, lengths: column.lengths.map(<[u32]>::to_vec) })
    }
}

fn encode_dense(r#type: DenseType, values: &[f32]) -> Vec<u8> {
    match r#type {
        DenseType::F32 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        DenseType::F16 => values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect(),
    }
}
