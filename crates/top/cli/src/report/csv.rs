//! Answers as tables for other programs: CSV with a line of column names, units in the names. An empty cell is a value
//! that is not known or does not apply.

use serde::Serialize;

/// A CSV table: rows of cells below the column names.
pub struct Table(csv::Writer<Vec<u8>>);

impl Table {
    /// Returns a table without rows; `names` are those of its columns.
    pub fn new(names: &[&str]) -> Table {
        let mut table = Table::without_names();
        let written = table.0.write_record(names);
        debug_assert!(written.is_ok(), "a vector in memory takes all that is written");
        table
    }

    /// Returns a table without rows and column names.
    pub fn without_names() -> Table {
        Table(csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new()))
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl Serialize) {
        let written = self.0.serialize(cells);
        debug_assert!(written.is_ok(), "as many cells as names: {written:?}");
    }

    /// Returns the table as text. Cells that a spreadsheet would evaluate have a `'` before them.
    pub fn text(self) -> String {
        let bytes = self.0.into_inner().unwrap_or_default();
        let mut read = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&bytes[..]);
        let mut out = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        for record in read.records().flatten() {
            let written = out.write_record(record.iter().map(plain));
            debug_assert!(written.is_ok(), "a vector in memory takes all that is written");
        }
        String::from_utf8_lossy(&out.into_inner().unwrap_or_default()).into_owned()
    }
}

/// Returns a cell that no program reads as a formula: one that begins like a formula and is not a number is marked as text.
fn plain(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    if is_formula { format!("'{cell}") } else { cell.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_hold_commas_and_quotes_come_back() {
        let mut table = Table::new(&["name", "count"]);
        table.row(("a<b, \"c\">", 3));
        table.row((None::<f64>, "x\ny"));
        let text = table.text();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
        assert_eq!(rows[0], vec!["a<b, \"c\">", "3"]);
        assert_eq!(rows[1], vec!["", "x\ny"]);
    }

    #[test]
    fn no_cell_is_a_formula() {
        let mut table = Table::new(&["name", "ms"]);
        for (name, ms) in [("=1+1", -0.5), ("@a", 1e-7), ("-x", 2.0), ("a, \"b\"", 3.0), ("-1", 4.0)] {
            table.row((name, ms));
        }
        assert_eq!(table.text(), "name,ms\n'=1+1,-0.5\n'@a,1e-7\n'-x,2.0\n\"a, \"\"b\"\"\",3.0\n-1,4.0\n");
    }
}
