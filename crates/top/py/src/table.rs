//! Columns as an Arrow stream, by the PyCapsule interface that pandas, polars, pyarrow and DuckDB read.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, RecordBatchIterator,
    RecordBatchOptions, StringArray,
};
use arrow_schema::{Field, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Value of a cell.
#[derive(FromPyObject)]
pub enum Cell {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

/// Returns columns of equal length, each a name and its cells, as an Arrow stream: the capsule of `__arrow_c_stream__`.
/// A column of whole numbers and floats becomes one of floats, any other mixture becomes text.
#[pyfunction]
#[pyo3(signature = (columns) -> "object")]
pub fn arrow_stream(
    py: Python<'_>,
    columns: Vec<(String, Vec<Option<Cell>>)>,
) -> PyResult<Bound<'_, PyCapsule>> {
    let arrays: Vec<(String, ArrayRef)> =
        columns.into_iter().map(|(name, cells)| (name, array(&cells))).collect();
    let fields = arrays.iter().map(|(name, array)| Field::new(name, array.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let rows =
        RecordBatchOptions::new().with_row_count(arrays.first().map(|(_, array)| array.len()).or(Some(0)));
    let arrays = arrays.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &rows)
        .map_err(|error| PyValueError::new_err(format!("the columns do not form a table: {error}")))?;
    let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// Returns the cells as an array of the narrowest type for all.
fn array(cells: &[Option<Cell>]) -> ArrayRef {
    let all = |fits: fn(&Cell) -> bool| cells.iter().flatten().all(fits);
    if cells.iter().all(Option::is_none) {
        return Arc::new(NullArray::new(cells.len()));
    }
    if all(|cell| matches!(cell, Cell::Bool(_))) {
        let of = |cell: &Option<Cell>| match cell {
            Some(Cell::Bool(value)) => Some(*value),
            _ => None,
        };
        return Arc::new(cells.iter().map(of).collect::<BooleanArray>());
    }
    if all(|cell| matches!(cell, Cell::Int(_))) {
        let of = |cell: &Option<Cell>| match cell {
            Some(Cell::Int(value)) => Some(*value),
            _ => None,
        };
        return Arc::new(cells.iter().map(of).collect::<Int64Array>());
    }
    if all(|cell| matches!(cell, Cell::Int(_) | Cell::Float(_))) {
        let of = |cell: &Option<Cell>| match cell {
            Some(Cell::Int(value)) => Some(*value as f64),
            Some(Cell::Float(value)) => Some(*value),
            _ => None,
        };
        return Arc::new(cells.iter().map(of).collect::<Float64Array>());
    }
    Arc::new(cells.iter().map(|cell| cell.as_ref().map(Cell::text)).collect::<StringArray>())
}

impl Cell {
    fn text(&self) -> String {
        match self {
            Cell::Bool(value) => value.to_string(),
            Cell::Int(value) => value.to_string(),
            Cell::Float(value) => value.to_string(),
            Cell::Text(value) => value.clone(),
        }
    }
}
