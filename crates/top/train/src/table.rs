//! Tables as text.

use comfy_table::{CellAlignment, Table, presets};

/// Aligned columns without borders: the first to the left, the others to the right. Columns without cells are left out.
pub fn table<const N: usize>(heads: &[&str; N], rows: &[[String; N]]) -> String {
    let shown: Vec<usize> = (0..N).filter(|&at| rows.iter().any(|row| !row[at].is_empty())).collect();
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(shown.iter().map(|&at| heads[at]));
    for row in rows {
        table.add_row(shown.iter().map(|&at| &row[at]));
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding(if at == 0 { (0, 0) } else { (2, 0) });
        if at > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt() + "\n"
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_without_cells_are_left_out() {
        let cells = |row: [&str; 3]| row.map(str::to_owned);
        let text = table(&["", "a", "b"], &[cells(["x", "", "1"]), cells(["long", "", "200"])]);
        assert_eq!(text, "        b\nx       1\nlong  200\n");
    }
}
