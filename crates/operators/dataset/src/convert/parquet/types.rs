//! Types of a file's columns.

use std::path::Path;

use arrow_schema::DataType;

use super::reader::open;
use super::{ParquetColumn, ParquetColumns};
use crate::{Error, Hotness, IdRule};

/// Checks the types of a file's columns, and returns the hotness of its categorical columns.
pub(super) fn hotness(path: &Path, columns: &ParquetColumns, ids: IdRule) -> Result<Vec<Hotness>, Error> {
    let builder = open(path)?;
    let schema = builder.schema();
    let found = |column: &str| {
        schema.field_with_name(column).map(|field| field.data_type().clone()).map_err(|_| {
            let known: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            Error::NoColumn { path: path.to_owned(), column: column.to_owned(), known: known.join(", ") }
        })
    };
    let refused = |column: &str, found: &DataType, role, expected| Error::ColumnType {
        path: path.to_owned(),
        column: column.to_owned(),
        found: found.to_string(),
        role,
        expected,
    };
    for (column, role) in std::iter::once((&columns.label, "a label"))
        .chain(columns.dense.iter().map(|c| (c, "a dense column")))
    {
        let found = found(column)?;
        if !(found.is_integer() || found.is_floating() || found == DataType::Boolean) {
            return Err(refused(column, &found, role, "numbers or booleans"));
        }
    }
    let checked = |column: &ParquetColumn| {
        let found = found(&column.name)?;
        let (element, list) = match &found {
            DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                (field.data_type(), true)
            }
            other => (other, false),
        };
        let texts = matches!(
            element,
            DataType::Boolean
                | DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::FixedSizeBinary(_)
        );
        if ids == IdRule::Stored && !element.is_integer() {
            return Err(refused(
                &column.name,
                &found,
                "a column of indices",
                "whole numbers or lists of them",
            ));
        }
        if !element.is_integer() && !texts {
            let expected = "whole numbers, booleans, texts, bytes, or lists of these";
            return Err(refused(&column.name, &found, "a categorical column", expected));
        }
        Ok(match column.hotness {
            _ if !list => Hotness::Fixed(1),
            Some(hotness) => Hotness::Fixed(hotness.max(1)),
            None => Hotness::Ragged,
        })
    };
    columns.categorical.iter().map(checked).collect()
}
