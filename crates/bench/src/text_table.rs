//! Tables for people: the first column to the left, all others to the right.

/// Lines of equally many cells; the first line is the heading.
#[derive(Debug)]
pub(crate) struct TextTable {
    lines: Vec<Vec<String>>,
}

impl TextTable {
    /// A table with this heading.
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self { lines: vec![heading.iter().map(|cell| (*cell).to_string()).collect()] }
    }

    /// Adds a line. One that is shorter than the heading ends in text of any length.
    pub(crate) fn add(&mut self, line: Vec<String>) {
        self.lines.push(line);
    }

    /// As text.
    pub(crate) fn text(&self) -> String {
        let columns = self.lines[0].len();
        let width_of = |column: usize| {
            let whole = self.lines.iter().filter(|line| line.len() == columns || column + 1 < line.len());
            whole.map(|line| line[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width_of).collect();
        let mut text = String::new();
        for line in &self.lines {
            let mut shown = String::new();
            for (column, cell) in line.iter().enumerate() {
                let is_note = line.len() < columns && column + 1 == line.len();
                let width = widths[column];
                match column {
                    0 => shown += &format!("{cell:<width$}"),
                    _ if is_note => shown += &format!("  {cell}"),
                    _ => shown += &format!("  {cell:>width$}"),
                }
            }
            text += shown.trim_end();
            text.push('\n');
        }
        text
    }
}

/// `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `12.3 MB`.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 * 1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_under_their_heading() {
        let mut table = TextTable::new(&["file", "MB", "rows"]);
        table.add(vec!["a".into(), "1".into(), "12,345".into()]);
        table.add(vec!["longer".into(), "no such file, nothing to say".into()]);
        assert_eq!(table.text(), "file    MB    rows\na        1  12,345\nlonger  no such file, nothing to say\n");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([1, 123, 1234, 1_234_567].map(grouped), ["1", "123", "1,234", "1,234,567"]);
        assert_eq!(megabytes(12_345_678), "12.3 MB");
    }
}
