//! Tables as text.

/// Aligned columns: the first to the left, the others to the right. Columns without cells are left out.
pub fn table<const N: usize>(heads: &[&str; N], rows: &[[String; N]]) -> String {
    let widths: [usize; N] = std::array::from_fn(|at| {
        let widest = rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        if widest == 0 { 0 } else { widest.max(heads[at].chars().count()) }
    });
    let line = |cells: [&str; N]| {
        let mut line = format!("{:<1$}", cells[0], widths[0]);
        for (cell, &width) in cells.iter().zip(&widths).skip(1).filter(|(_, width)| **width > 0) {
            line += &format!("  {cell:>width$}");
        }
        line.trim_end().to_owned() + "\n"
    };
    let body: String = rows.iter().map(|row| line(row.each_ref().map(String::as_str))).collect();
    line(*heads) + &body
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
