//! Lines of cells, one under the other.

use ratatui::text::Span;

/// The cells of each column as wide as the widest, two spaces between them.
pub(crate) fn columns<const WIDTH: usize>(lines: &[[String; WIDTH]]) -> String {
    let mut widths = [0; WIDTH];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(shown_width(cell));
        }
    }
    let mut text = String::new();
    for line in lines {
        let padded: Vec<String> = line
            .iter()
            .zip(widths)
            .map(|(cell, width)| {
                // A width in a format has an end, and whoever is above it panics.
                let missing = width - shown_width(cell);
                format!("{cell}{}", " ".repeat(missing))
            })
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// How many columns of a terminal it takes: not every character takes one.
fn shown_width(cell: &str) -> usize {
    Span::raw(cell).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As terminals show them: two cells for each of these characters, and none for an accent that stands on
    /// another.
    #[test]
    fn wide_characters_and_accents_move_no_column() {
        let line = |first: &str| [first, "|"].map(str::to_owned);
        let table = columns(&["漢字", "größe", "gro\u{308}ße", "नमस्ते", "job"].map(line));
        for line in table.lines() {
            let (before, _) = line.split_once('|').unwrap();
            assert_eq!(Span::raw(before).width(), 7, "{line}");
        }
    }

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
