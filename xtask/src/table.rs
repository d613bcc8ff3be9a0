//! Plain text tables.

/// Prints `rows` under `head`, columns as wide as their widest cell.
pub fn print(head: &[&str], rows: &[Vec<String>]) {
    let mut widths: Vec<usize> = head.iter().map(|h| h.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(c, &w)| format!("{c:w$}")).collect::<Vec<_>>();
        println!("{}", padded.join("  ").trim_end());
    };
    line(&head.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>());
    rows.iter().for_each(|row| line(row));
}
