//! Columns of text, in which each row is a line whatever a cell is.

use crate::basics::sanitize;

/// Writes rows below a header, each column as wide as its widest cell.
pub(super) fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        sanitize::row(padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    let header = line(&header.map(str::to_owned));
    rows.iter().fold(header, |text, row| text + &line(row))
}
