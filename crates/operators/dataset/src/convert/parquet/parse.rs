//! Rows of a record batch.

use arrow_array::ArrayRef;

use super::reader::Part;
use super::values::{lists, numbers, tokens};
use super::{ParquetColumn, ParquetColumns};
use crate::convert::parsed::{Parsed, Tokens};
use crate::convert::table::MISSING;
use crate::convert::{ConvertOptions, Damage};
use crate::{Hotness, IdRule};

/// Greatest index that a column of the source may have.
const GREATEST: u64 = i32::MAX as u64 - 1;

/// Categories of one column of a record batch.
struct Categories<'a> {
    column: &'a ParquetColumn,
    hotness: Hotness,
    tokens: Vec<u64>,
    rows: Vec<std::ops::Range<usize>>,
}

impl Categories<'_> {
    fn damage(&self, row: usize, stored: bool) -> Option<Damage> {
        let range = self.rows[row].clone();
        let name = || self.column.name.clone();
        match self.hotness {
            Hotness::Fixed(hotness) if range.len() != hotness as usize => {
                return Some(Damage::Hotness { column: name(), found: range.len() });
            }
            _ => {}
        }
        let invalid = |&token: &u64| token != MISSING && token > GREATEST;
        (stored && self.tokens[range].iter().any(invalid)).then(|| Damage::Category { column: name() })
    }
}

/// Parses a part whose columns were checked.
pub(super) fn parse(
    part: Part,
    columns: &ParquetColumns,
    hotness: &[Hotness],
    options: &ConvertOptions,
) -> Parsed {
    let rows = part.batch.num_rows();
    let array = |name: &str| part.batch.column_by_name(name);
    let column = |name: &String| array(name).map_or_else(|| vec![None; rows], numbers);
    let label = column(&columns.label);
    let dense: Vec<Vec<Option<f64>>> = columns.dense.iter().map(column).collect();
    let categories = |(column, &hotness): (_, &Hotness)| categories(column, hotness, array, rows);
    let categorical: Vec<Categories> = columns.categorical.iter().zip(hotness).map(categories).collect();
    let mut parsed = Parsed {
        file: part.file,
        bytes: part.batch.get_array_memory_size() as u64,
        lines: rows as u64,
        ..Parsed::default()
    };
    let stored = options.ids == IdRule::Stored;
    let empty = |&hotness: &Hotness| Tokens {
        values: Vec::new(),
        lengths: (hotness == Hotness::Ragged).then(Vec::new),
    };
    parsed.tokens = hotness.iter().map(empty).collect();
    for row in 0..rows {
        let label = label[row].map_or(f32::NAN, |label| label as f32);
        let value = |values: &Vec<Option<f64>>| options.transform.apply(values[row].unwrap_or(0.0));
        let dense_damage = || {
            // The transform must not turn a damaged value into a valid one.
            let finite = |values: &Vec<Option<f64>>| {
                values[row].is_none_or(f64::is_finite) && value(values).is_finite()
            };
            let place = dense.iter().position(|values| !finite(values))?;
            Some(Damage::Dense { column: columns.dense[place].clone() })
        };
        let damage = (!label.is_finite())
            .then_some(Damage::Label)
            .or_else(dense_damage)
            .or_else(|| categorical.iter().find_map(|column| column.damage(row, stored)));
        if let Some(damage) = damage {
            parsed.damaged.push((row as u64, damage));
            continue;
        }
        parsed.label.push(label);
        parsed.dense.extend(dense.iter().map(value));
        for (column, to) in categorical.iter().zip(&mut parsed.tokens) {
            let range = column.rows[row].clone();
            to.lengths.iter_mut().for_each(|lengths| lengths.push(range.len() as u32));
            to.values.extend(&column.tokens[range]);
        }
    }
    parsed
}

fn categories<'a, 'b>(
    column: &'a ParquetColumn,
    hotness: Hotness,
    array: impl Fn(&str) -> Option<&'b ArrayRef>,
    rows: usize,
) -> Categories<'a> {
    let Some(array) = array(&column.name) else {
        let rows = (0..rows).map(|row| row..row + 1).collect::<Vec<_>>();
        return Categories { column, hotness, tokens: vec![MISSING; rows.len()], rows };
    };
    let (elements, rows) = lists(array);
    Categories { column, hotness, tokens: tokens(&elements), rows }
}
