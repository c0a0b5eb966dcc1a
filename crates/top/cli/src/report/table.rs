//! Aligned columns without borders.

use crate::output::name;
use comfy_table::{CellAlignment, Table, presets};

/// A table of text and numbers.
pub struct Columns {
    table: Table,
}

impl Columns {
    /// Columns by their names; one that begins with `>` holds numbers and is set to the right.
    pub fn new(names: &[&str]) -> Columns {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(names.iter().map(|name| name.trim_start_matches('>')));
        for (column, name) in table.column_iter_mut().zip(names) {
            if name.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Columns { table }
    }

    /// One blank between columns instead of two.
    pub fn tight(mut self) -> Columns {
        self.table.column_iter_mut().for_each(|column| {
            column.set_padding((1, 0));
        });
        self
    }

    /// Adds a row.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.table.add_row(cells.into_iter().map(|cell| name(&cell.into())).collect::<Vec<String>>());
    }

    /// The lines, each with its line end and no blanks before it.
    pub fn text(&self) -> String {
        self.table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}
