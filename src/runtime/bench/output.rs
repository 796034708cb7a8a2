//! Where figures go: tables for people to standard output, JSON to a file or in place of the tables.

use crate::runtime::error::RuntimeError;
use serde_json::Value;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Where figures go.
#[derive(Debug)]
pub(super) struct Output {
    json: Json,
    /// Whether somebody watches.
    terminal: bool,
}

#[derive(Debug)]
enum Json {
    None,
    InPlaceOfTables,
    File(PathBuf, File),
}

impl Output {
    /// With the name of a file for JSON; `-` is standard output, which then gets no tables.
    ///
    /// # Errors
    ///
    /// If the file cannot be made: better said before anything is measured, as it would be lost.
    pub fn open(json: Option<&Path>) -> Result<Self, RuntimeError> {
        let json = match json {
            None => Json::None,
            Some(path) if path == Path::new("-") => Json::InPlaceOfTables,
            Some(path) => Json::File(path.to_owned(), File::create(path).map_err(cannot_write(path))?),
        };
        Ok(Self { json, terminal: io::stderr().is_terminal() })
    }

    /// Prints lines of a table. Their reader may have left; the figures are still written to a file.
    pub fn print(&self, lines: &str) {
        if !matches!(self.json, Json::InPlaceOfTables) {
            let _ = writeln!(io::stdout(), "{lines}");
        }
    }

    /// Tells who watches what is going on.
    pub fn progress(&self, text: &str) {
        if self.terminal {
            eprint!("\r{text:<40}");
        }
    }

    /// Takes back what [`Output::progress`] told. Who does not watch is told now.
    pub fn done(&self, text: &str) {
        match self.terminal {
            true => eprint!("\r{:40}\r", ""),
            false => eprintln!("{text}"),
        }
    }

    /// Writes the figures as JSON, if that was asked for.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn finish(self, figures: &Value) -> Result<(), RuntimeError> {
        let text = format!("{figures:#}\n");
        match self.json {
            Json::None => Ok(()),
            Json::InPlaceOfTables => {
                io::stdout().write_all(text.as_bytes()).map_err(RuntimeError::system("write to standard output"))
            }
            Json::File(path, mut file) => file.write_all(text.as_bytes()).map_err(cannot_write(&path)),
        }
    }
}

fn cannot_write(path: &Path) -> impl FnOnce(io::Error) -> RuntimeError {
    move |source| RuntimeError::File { path: path.to_owned(), source }
}

/// A figure with so many decimals; a dash for what is not a number.
pub(super) fn decimal(value: f64, digits: usize) -> String {
    if value.is_nan() { "-".to_owned() } else { format!("{value:.digits$}") }
}

/// Rows under each other, the first column to the left, the others to the right.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_are_aligned() {
        let rows = [vec!["", "bulk 1"], vec!["ring", "7.94"], vec!["rte_ring µ", "11"], vec!["end"]];
        let rows = rows.map(|row| row.into_iter().map(str::to_owned).collect());
        assert_eq!(table(&rows), "            bulk 1\nring          7.94\nrte_ring µ      11\nend");
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn what_is_not_a_number_is_a_dash() {
        assert_eq!([decimal(1.256, 2), decimal(7.0, 0), decimal(f64::NAN, 2)], ["1.26", "7", "-"]);
    }

    #[test]
    fn a_file_gets_the_figures() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("figures.json");
        Output::open(Some(&path)).unwrap().finish(&json!({ "suite": "none" })).unwrap();
        let written: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(written, json!({ "suite": "none" }));
        let error = Output::open(Some(&directory.path().join("missing/figures.json"))).unwrap_err();
        assert!(error.to_string().contains("missing/figures.json") && error.to_string().contains("--json"), "{error}");
    }
}
