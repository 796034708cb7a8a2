//! What is wrong with a configuration, and where.
//!
//! Errors are collected in a [`Log`] by byte offset while the file is read and turned into
//! [`ConfigErrors`] at the end, sorted by position. Each has a text and a remedy, neither empty, and fits
//! one line: what is quoted from the file goes through [`quote`].

use std::cell::OnceCell;
use std::fmt;

/// Where in a file: both count from 1. A tab or any other character is one column; a byte order mark is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// One thing that is wrong. Its `Display` is `LINE:COL: what (remedy)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where it stands; `None` when there is no text to point at, as with a file that cannot be read.
    pub position: Option<Position>,
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub remedy: String,
}

/// Everything that is wrong with one configuration, sorted by position; never empty.
///
/// Its `Display` is one line each: `FILE:LINE:COL: what is wrong (what would be right)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    file: String,
    errors: Vec<ConfigError>,
}

impl ConfigErrors {
    /// An error of the file as a whole.
    pub(super) fn of_file(file: &str, what: String, remedy: &str) -> Self {
        let error = ConfigError { position: None, what, remedy: remedy.to_owned() };
        Self { file: file.to_owned(), errors: vec![error] }
    }

    /// An error at a byte of a text.
    pub(super) fn at(file: &str, text: &str, offset: usize, what: String, remedy: &str) -> Self {
        let position = Some(Lines::new(text).position(offset));
        Self { file: file.to_owned(), errors: vec![ConfigError { position, what, remedy: remedy.to_owned() }] }
    }

    /// The file's name, as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The errors, sorted by position.
    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Position { line, column }) = self.position {
            write!(f, "{line}:{column}: ")?;
        }
        write!(f, "{} ({})", self.what, self.remedy)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().enumerate() {
            let newline = if i == 0 { "" } else { "\n" };
            let space = if error.position.is_some() { "" } else { " " };
            write!(f, "{newline}{}:{space}{error}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// A text of the file, fit to stand in a message: in backquotes, without control characters, not too long.
pub(super) fn quote(text: &str) -> String {
    const LONGEST: usize = 64;
    let mut quoted = String::from("`");
    for (i, character) in text.chars().enumerate() {
        if i == LONGEST {
            quoted.push('…');
            break;
        }
        match character {
            // Line separators count as line ends to many tools.
            '\u{2028}' | '\u{2029}' => quoted.extend(character.escape_unicode()),
            c if c.is_control() => quoted.extend(c.escape_debug()),
            c => quoted.push(c),
        }
    }
    quoted.push('`');
    quoted
}

/// Turns byte offsets into positions.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        Self { text, starts: std::iter::once(0).chain(ends.map(|(end, _)| end + 1)).collect() }
    }

    /// Offsets past the end, and inside a character, count as the next place there is.
    fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let before = self.text.as_bytes().get(start..offset).unwrap_or_default();
        // Every byte that does not continue a character begins one.
        let characters = before.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
        Position { line, column: characters + 1 }
    }
}

/// Collects the errors of one file.
pub(super) struct Log<'t> {
    text: &'t str,
    lines: OnceCell<Lines<'t>>,
    errors: Vec<(usize, ConfigError)>,
}

impl<'t> Log<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, lines: OnceCell::new(), errors: Vec::new() }
    }

    /// Records an error at a byte offset.
    pub(super) fn error(&mut self, offset: usize, what: impl Into<String>, remedy: impl Into<String>) {
        let position = Some(self.position(offset));
        self.errors.push((offset, ConfigError { position, what: what.into(), remedy: remedy.into() }));
    }

    /// The line that a byte offset is on, to name it in a message about another place.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.position(offset).line
    }

    fn position(&self, offset: usize) -> Position {
        self.lines.get_or_init(|| Lines::new(self.text)).position(offset)
    }

    /// How many errors there are so far.
    pub(super) fn count(&self) -> usize {
        self.errors.len()
    }

    /// `Ok` when nothing was recorded. Two equal errors at one place are one.
    pub(super) fn finish(mut self, file: &str) -> Result<(), ConfigErrors> {
        self.errors.sort_by_key(|&(offset, _)| offset);
        let mut errors: Vec<_> = self.errors.into_iter().map(|(_, error)| error).collect();
        errors.dedup();
        if errors.is_empty() { Ok(()) } else { Err(ConfigErrors { file: file.to_owned(), errors }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let lines = Lines::new("a\tb\r\nü€x\n\nlast");
        let at = |offset| {
            let Position { line, column } = lines.position(offset);
            (line, column)
        };
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(2), (1, 3), "a tab is one column");
        assert_eq!(at(5), (2, 1));
        assert_eq!(at(10), (2, 3), "ü and € are one column each");
        assert_eq!(at(11), (2, 4), "the line end belongs to its line");
        assert_eq!(at(12), (3, 1));
        assert_eq!(at(13), (4, 1));
        assert_eq!(at(17), (4, 5));
        assert_eq!(at(9999), (4, 5));
        assert_eq!(Lines::new("").position(0), Position { line: 1, column: 1 });
    }

    #[test]
    fn quoted_text_stays_on_one_line() {
        assert_eq!(quote("a\nb\u{2028}c"), "`a\\nb\\u{2028}c`");
        assert_eq!(quote(&"x".repeat(99)).chars().count(), 67);
    }

    #[test]
    fn errors_are_sorted_and_equal_ones_merged() {
        let mut log = Log::new("one\ntwo\n");
        log.error(4, "late", "r");
        log.error(1, "early", "r");
        log.error(4, "late", "r");
        assert_eq!(log.finish("f").unwrap_err().to_string(), "f:1:2: early (r)\nf:2:1: late (r)");
        assert_eq!(Log::new("").finish("f"), Ok(()));
        let whole = ConfigErrors::of_file("f", "is a directory".into(), "give a file");
        assert_eq!(whole.to_string(), "f: is a directory (give a file)");
    }
}
