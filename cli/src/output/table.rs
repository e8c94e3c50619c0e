//! Lines of cells, one under the other.

/// The cells of each column as wide as the widest, two spaces between them.
pub(crate) fn columns<const WIDTH: usize>(lines: &[[String; WIDTH]]) -> String {
    let mut widths = [0; WIDTH];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for line in lines {
        let padded: Vec<String> = line
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}
