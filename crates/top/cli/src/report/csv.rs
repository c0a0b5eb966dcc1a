//! Answers as tables for other programs: CSV with a line of column names, units in the names. An empty cell is a value
//! that is not known or does not apply.

use serde::Serialize;
use serde_json::{Value, json};

/// A CSV table, derived from the rows of an answer as JSON has them.
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

struct Column {
    name: String,
    /// JSON pointer of its value in a row.
    pointer: String,
}

impl Table {
    /// Returns a table without rows. `columns` has their names, separated by blanks. A name is also the key of the value in
    /// a row; `high_ms=interval_ms/1` names another value.
    pub fn new(columns: &str) -> Table {
        let column = |text: &str| {
            let (name, path) = text.split_once('=').unwrap_or((text, text));
            Column { name: name.to_owned(), pointer: format!("/{path}") }
        };
        Table { columns: columns.split_whitespace().map(column).collect(), rows: Vec::new() }
    }

    /// Returns a table with these rows.
    pub fn from_rows<R: Serialize>(columns: &str, rows: impl IntoIterator<Item = R>) -> Table {
        let mut table = Table::new(columns);
        for row in rows {
            table.row(&row);
        }
        table
    }

    /// Adds a row.
    pub fn row(&mut self, row: &impl Serialize) {
        self.row_with(&json!({}), row);
    }

    /// Adds a row. Columns that `others` names have their values from there.
    pub fn row_with(&mut self, others: &Value, row: &impl Serialize) {
        let row = serde_json::to_value(row).unwrap_or_default();
        let value = |column: &Column| others.get(&column.name).or_else(|| row.pointer(&column.pointer));
        self.rows
            .push(self.columns.iter().map(|column| value(column).map_or_else(String::new, cell)).collect());
    }

    /// Returns the table as text. Cells that a spreadsheet would evaluate have a `'` before them.
    pub fn text(&self) -> String {
        let names = self.columns.iter().map(|column| column.name.clone()).collect();
        lines(std::iter::once(&names).chain(&self.rows))
    }

    /// Returns the rows as text, without the names.
    pub fn rows_text(&self) -> String {
        lines(&self.rows)
    }
}

fn lines<'r>(rows: impl IntoIterator<Item = &'r Vec<String>>) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    for row in rows {
        let written = out.write_record(row.iter().map(|cell| plain(cell)));
        debug_assert!(written.is_ok(), "a vector in memory takes all that is written: {written:?}");
    }
    String::from_utf8_lossy(&out.into_inner().unwrap_or_default()).into_owned()
}

/// Returns a value as text; of a list, its values separated by blanks.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(cell).collect::<Vec<String>>().join(" "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
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
    fn values_come_from_the_keys_of_a_row_or_from_others() {
        let mut table = Table::new("table name=op low_us=interval_us/0 gpus late");
        let row = json!({"op": "add", "interval_us": [1.5, 2.0], "gpus": [0, 3], "late": null, "more": 1});
        table.row_with(&json!({"table": "op"}), &row);
        table.row_with(&json!({"name": "sum"}), &row);
        assert_eq!(table.text(), "table,name,low_us,gpus,late\nop,add,1.5,0 3,\n,sum,1.5,0 3,\n");
    }

    #[test]
    fn cells_that_hold_commas_and_quotes_come_back() {
        let rows = [json!({"name": "a<b, \"c\">", "count": 3}), json!({"count": "x\ny"})];
        let text = Table::from_rows("name count", rows).text();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
        assert_eq!(rows[0], vec!["a<b, \"c\">", "3"]);
        assert_eq!(rows[1], vec!["", "x\ny"]);
    }

    #[test]
    fn no_cell_is_a_formula() {
        let cells = [("=1+1", -0.5), ("@a", 1e-7), ("-x", 2.0), ("a, \"b\"", 3.0), ("-1", 4.0)];
        let rows = cells.map(|(name, ms)| json!({"name": name, "ms": ms}));
        let text = Table::from_rows("name ms", rows).text();
        assert_eq!(text, "name,ms\n'=1+1,-0.5\n'@a,1e-7\n'-x,2.0\n\"a, \"\"b\"\"\",3.0\n-1,4.0\n");
    }
}
