//! Tables for people: aligned columns, exact numbers, and what changed per second between two.

use std::fmt::Write as _;
use std::time::Duration;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Says what a row is about; rows of two tables with the same keys belong together.
    Key,
    /// Something else to read.
    Text,
    /// A number that goes up and down.
    Gauge,
    /// A number that only grows, so that it has a rate.
    Counter,
}

/// One entry of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    /// Words.
    Text(String),
    /// A whole number, printed with all its digits.
    Count(u64),
    /// A number with one decimal.
    Decimal(f64),
}

/// A table with a header.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Table {
    columns: Vec<(Column, String)>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub(super) fn new(columns: impl IntoIterator<Item = (Column, &'static str)>) -> Self {
        let columns = columns.into_iter().map(|(column, name)| (column, name.to_owned())).collect();
        Self { columns, rows: Vec::new() }
    }

    /// One more column on the right.
    pub(super) fn column(&mut self, column: Column, name: String) {
        self.columns.push((column, name));
    }

    /// One more row at the bottom.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The counters' growth per second since an earlier table; `None` if there are no counters.
    /// Where the earlier one has no such row, or a greater count, there is no rate.
    pub(super) fn rates(&self, earlier: &Self, elapsed: Duration) -> Option<Self> {
        let kept = |column: Column| matches!(column, Column::Key | Column::Counter);
        if !self.columns.iter().any(|(column, _)| *column == Column::Counter) {
            return None;
        }
        let columns = self.columns.iter().filter(|(column, _)| kept(*column));
        let name = |(column, name): &(Column, String)| match column {
            Column::Counter => (Column::Gauge, format!("{name}/s")),
            _ => (*column, name.clone()),
        };
        let rate = |(position, (column, _)): (usize, &(Column, String)), row: &[Cell], old: Option<&Vec<Cell>>| {
            let cell = row.get(position);
            if *column == Column::Key {
                return cell.cloned();
            }
            Some(match (cell, old.and_then(|old| old.get(position))) {
                (Some(Cell::Count(now)), Some(Cell::Count(before))) if now >= before && !elapsed.is_zero() => {
                    Cell::Count(((now - before) as f64 / elapsed.as_secs_f64()).round() as u64)
                }
                _ => Cell::Text("-".to_owned()),
            })
        };
        let rows = self.rows.iter().map(|row| {
            let old = earlier.rows.iter().find(|old| self.keys(old).eq(self.keys(row)));
            let positions = self.columns.iter().enumerate().filter(|(_, (column, _))| kept(*column));
            positions.filter_map(|position| rate(position, row, old)).collect()
        });
        Some(Self { columns: columns.map(name).collect(), rows: rows.collect() })
    }

    fn keys<'a>(&'a self, row: &'a [Cell]) -> impl Iterator<Item = &'a Cell> {
        self.columns.iter().zip(row).filter(|((column, _), _)| *column == Column::Key).map(|(_, cell)| cell)
    }

    /// The table as text, its header in bold on request.
    pub(super) fn render(&self, bold: bool) -> String {
        let texts: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(Cell::text).collect()).collect();
        let mut widths: Vec<usize> = self.columns.iter().map(|(_, name)| name.chars().count()).collect();
        for row in &texts {
            for (width, text) in widths.iter_mut().zip(row) {
                *width = (*width).max(text.chars().count());
            }
        }
        let header = self.columns.iter().map(|(_, name)| name.as_str());
        let header = self.line(header, &widths);
        let mut output = if bold { format!("\x1b[1m{header}\x1b[0m\n") } else { format!("{header}\n") };
        for row in &texts {
            output.push_str(&self.line(row.iter().map(String::as_str), &widths));
            output.push('\n');
        }
        output
    }

    fn line<'a>(&self, texts: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
        let mut line = String::new();
        for ((text, width), (column, _)) in texts.zip(widths).zip(&self.columns) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            // Writing to a string cannot fail.
            let _ = match column {
                Column::Key | Column::Text => write!(line, "{text:<width$}"),
                Column::Gauge | Column::Counter => write!(line, "{text:>width$}"),
            };
        }
        line.truncate(line.trim_end().len());
        line
    }
}

impl Cell {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(number) => number.to_string(),
            Self::Decimal(number) => format!("{number:.1}"),
        }
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::Count(number)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, u64, u64)]) -> Table {
        let mut table = Table::new([(Column::Key, "port"), (Column::Counter, "packets"), (Column::Gauge, "backlog")]);
        for (port, packets, backlog) in rows {
            table.row([Cell::from(*port), Cell::from(*packets), Cell::from(*backlog)]);
        }
        table
    }

    #[test]
    fn columns_are_aligned_and_numbers_exact() {
        let text = table(&[("p0", u64::MAX, 1), ("trunk-é", 7, 22)]).render(false);
        assert_eq!(
            text,
            "port                  packets  backlog\n\
             p0       18446744073709551615        1\n\
             trunk-é                     7       22\n"
        );
        assert!(table(&[]).render(true).starts_with("\x1b[1mport"));
    }

    #[test]
    fn rates_are_per_second_and_by_key() {
        let before = table(&[("p1", 50, 9), ("p0", 1000, 9)]);
        let now = table(&[("p0", 4000, 1), ("p1", 20, 1), ("p2", 5, 1)]);
        let rates = now.rates(&before, Duration::from_millis(1500)).unwrap().render(false);
        let lines: Vec<_> = rates.lines().collect();
        assert_eq!(lines, ["port  packets/s", "p0         2000", "p1            -", "p2            -"]);
        assert_eq!(Table::new([(Column::Key, "a"), (Column::Gauge, "b")]).rates(&before, Duration::from_secs(1)), None);
    }
}
