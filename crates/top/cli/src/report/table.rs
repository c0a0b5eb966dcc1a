//! Aligned columns without borders, limited to the width of the report.
//!
//! Numbers are never cut. In a table that is too wide, names lose their middle; then optional columns are left out and
//! named below; then columns continue below the others, with the first one repeated.

use comfy_table::{CellAlignment, Table, presets};

use super::width::{self, shorten, text_width, width};
use crate::output::name;

/// Minimum width that names are cut to.
const LEAST_NAME: usize = 20;

/// A table of text and numbers.
pub struct Columns {
    heads: Vec<Head>,
    rows: Vec<Vec<String>>,
    /// Blanks on the left and on the right of each cell.
    padding: (u16, u16),
}

/// A column of a table of rows: its name, with its marks, and the text of its cell in a row.
pub type ColumnOf<'n, R> = (&'n str, fn(&R) -> String);

/// A column's name and properties.
#[derive(Clone)]
struct Head {
    name: String,
    /// Whether it holds numbers, aligned to the right.
    number: bool,
    /// Whether it holds names, which may lose their middle.
    cut: bool,
    /// Whether it may be left out.
    optional: bool,
}

impl Columns {
    /// Returns columns by their names. A prefix gives the content: `>` numbers, `~` names that may lose their middle, `?`
    /// (before these) an optional column.
    pub fn new(names: &[&str]) -> Columns {
        let head = |text: &&str| {
            let name = text.trim_start_matches(['?', '>', '~']);
            let marks = &text[..text.len() - name.len()];
            Head {
                name: name.to_owned(),
                number: marks.contains('>'),
                cut: marks.contains('~'),
                optional: marks.contains('?'),
            }
        };
        Columns { heads: names.iter().map(head).collect(), rows: Vec::new(), padding: (1, 1) }
    }

    /// Returns a table of rows.
    pub fn from_rows<'r, R: 'r>(
        columns: &[ColumnOf<'_, R>],
        rows: impl IntoIterator<Item = &'r R>,
    ) -> Columns {
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let mut table = Columns::new(&names);
        for row in rows {
            table.row(columns.iter().map(|(_, text)| text(row)));
        }
        table
    }

    /// Puts one blank between columns instead of two.
    pub fn tight(mut self) -> Columns {
        self.padding = (1, 0);
        self
    }

    /// Adds a row.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(|cell| name(&cell.into())).collect());
    }

    /// Returns the lines, each with its line end and no blanks before it.
    pub fn text(&self) -> String {
        self.fitted(width())
    }

    /// Returns the lines, none of them wider than `room`.
    fn fitted(&self, room: usize) -> String {
        let natural: Vec<usize> = (0..self.heads.len()).map(|column| self.natural(column)).collect();
        let least = |column: &usize| {
            let natural = natural[*column];
            if self.heads[*column].cut { natural.min(LEAST_NAME) } else { natural }
        };
        let total =
            |columns: &[usize]| columns.iter().map(|column| least(column) + self.blanks()).sum::<usize>();
        let mut columns: Vec<usize> = (0..self.heads.len()).collect();
        let mut missed = Vec::new();
        while total(&columns) > room
            && let Some(at) = columns.iter().rposition(|&column| self.heads[column].optional)
        {
            missed.insert(0, self.heads[columns.remove(at)].name.as_str());
        }
        let mut text = String::new();
        let mut rest = columns.as_slice();
        let first = rest.first().copied();
        while !rest.is_empty() {
            let again: Vec<usize> = first.into_iter().filter(|_| !text.is_empty()).collect();
            let fits = |count: &usize| total(&[again.as_slice(), &rest[..*count]].concat()) <= room;
            let count = (1..=rest.len()).rev().find(fits).unwrap_or(1);
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&self.block(&[again.as_slice(), &rest[..count]].concat(), &natural, room));
            rest = &rest[count..];
        }
        if !missed.is_empty() {
            let words = format!("(left out: {}; a wider terminal and --csv have it)", missed.join(", "));
            text.push_str(&format!(" {}\n", width::wrapped(&words, room - 1, 1)));
        }
        text
    }

    /// Returns the width of a column without cuts.
    fn natural(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| text_width(cell));
        cells.chain([text_width(&self.heads[column].name)]).max().unwrap_or(0)
    }

    fn blanks(&self) -> usize {
        usize::from(self.padding.0 + self.padding.1)
    }

    /// Returns the lines of some columns, with names cut to fit `room`.
    fn block(&self, columns: &[usize], natural: &[usize], room: usize) -> String {
        let mut widths: Vec<usize> = columns.iter().map(|&column| natural[column]).collect();
        let blanks = columns.len() * self.blanks();
        while widths.iter().sum::<usize>() + blanks > room {
            let cut = (0..columns.len()).filter(|&at| self.heads[columns[at]].cut && widths[at] > 1);
            let Some(widest) = cut.max_by_key(|&at| widths[at]) else { break };
            widths[widest] -= 1;
        }
        let cell = |text: &str, at: usize| match self.heads[columns[at]].cut {
            true => shorten(text, widths[at]),
            false => text.to_owned(),
        };
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(columns.iter().enumerate().map(|(at, &column)| cell(&self.heads[column].name, at)));
        for row in &self.rows {
            let cells = columns.iter().enumerate();
            let text = |column: usize| row.get(column).map_or("", String::as_str);
            table.add_row(cells.map(|(at, &column)| cell(text(column), at)).collect::<Vec<String>>());
        }
        for (column, &at) in table.column_iter_mut().zip(columns) {
            if self.heads[at].number {
                column.set_cell_alignment(CellAlignment::Right);
            }
            column.set_padding(self.padding);
        }
        table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Columns {
        let mut columns = Columns::new(&["~name", ">first", "?>second", ">third"]);
        columns.row(["a::name::that::is::longer::than::it::need::be", "123456", "7", "8"]);
        columns
    }

    #[test]
    fn where_there_is_room_nothing_is_done() {
        let text = table().fitted(100);
        assert!(
            text.contains(" a::name::that::is::longer::than::it::need::be  123456       7      8\n"),
            "{text}"
        );
    }

    #[test]
    fn names_lose_their_middle_first() {
        let text = table().fitted(60);
        assert!(text.contains("…") && text.contains("second") && text.lines().count() == 2, "{text}");
    }

    #[test]
    fn then_columns_are_left_out_and_named() {
        let text = table().fitted(40);
        assert!(text.contains("(left out: second;") && !text.contains(" 7"), "{text}");
    }

    #[test]
    fn then_they_go_below_and_no_number_is_lost() {
        let text = table().fitted(30);
        assert!(text.contains("123456") && text.contains(" 8\n"), "{text}");
        assert!(text.lines().all(|line| text_width(line) <= 30), "{text}");
        assert_eq!(text.matches("name").count(), 4, "the first column stands in both: {text}");
    }
}
