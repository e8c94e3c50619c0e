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
            .map(|(cell, width)| {
                // A width in a format has an end, and whoever is above it panics.
                let missing = width - cell.chars().count();
                format!("{cell}{}", " ".repeat(missing))
            })
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_may_be_of_any_width() {
        let long = "x".repeat(100_000);
        let line = |first: &str, second: &str| [first, second].map(str::to_owned);
        let table = columns(&[line("A", "B"), line(&long, "b"), line("a", "")]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], format!("A{}  B", " ".repeat(99_999)));
        assert_eq!(lines[1], format!("{long}  b"));
        assert_eq!(lines[2], "a");
    }
}
