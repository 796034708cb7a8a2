//! Mistakes in the TOML itself: what they are, and what of the file can be read in spite of them.

use super::error::{Log, quote};
use toml::de::{DeTable, Error};

/// How often lines are taken out to make the rest readable. A few mistakes hide behind one another; an open
/// bracket that swallows the file cannot be helped.
const ROUNDS: usize = 3;

/// Records syntax errors and gives those that leave a part of the file unread. A key that is given twice does
/// not: the first one stands.
pub(super) fn record<'e>(text: &str, errors: &'e [Error], log: &mut Log<'_>) -> Vec<&'e Error> {
    for error in errors {
        let span = error.span().unwrap_or(text.len()..text.len());
        let place = text.get(span.clone()).unwrap_or_default();
        match error.message() {
            DUPLICATE => log.error(span.start, format!("{} is given twice", quote(place)), "each key and [table] once"),
            message if OF_VALUES.iter().any(|start| message.starts_with(start)) => {
                let (start, word) = word_at(text, span.start);
                match word {
                    "" => log.error(start, "a value is missing", "a value after `=`"),
                    _ => log.error(start, format!("{} is no value", quote(word)), what_instead(word, message)),
                }
            }
            message => match message.split_once(", expected ") {
                Some((what, expected)) => log.error(span.start, what, format!("expected {expected}")),
                None => log.error(span.start, message, "TOML as in https://toml.io"),
            },
        }
    }
    broken(errors).collect()
}

/// What `toml` calls a key or a table that is given twice.
const DUPLICATE: &str = "duplicate key";

/// How the parser's messages about values that are not in quotes begin.
const OF_VALUES: [&str; 5] =
    ["string values must be quoted", "invalid float", "invalid boolean", "invalid time", "invalid date"];

/// The word around a byte, with its place.
fn word_at(text: &str, offset: usize) -> (usize, &str) {
    let ends = |c: char| c.is_ascii_whitespace() || matches!(c, ',' | '=' | '[' | ']' | '{' | '}' | '#');
    let (before, after) = text.split_at_checked(offset).unwrap_or((text, ""));
    let start = before.rfind(ends).map_or(0, |end| end + 1);
    let end = after.find(ends).map_or(text.len(), |end| offset + end);
    (start, text.get(start..end).unwrap_or_default())
}

fn what_instead(word: &str, message: &str) -> String {
    match word.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => "true".to_owned(),
        "false" | "no" | "off" => "false".to_owned(),
        number if number.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'+' | b'-')) => {
            message.to_owned()
        }
        _ => "text in double quotes".to_owned(),
    }
}

fn broken(errors: &[Error]) -> impl Iterator<Item = &Error> {
    errors.iter().filter(|error| error.message() != DUPLICATE)
}

/// The text with blanks in place of the lines that have an error, and of all that follows a broken header, so
/// that everything else keeps its place; `None` if that is no TOML either.
pub(super) fn without_broken_lines(text: &str, errors: &[Error]) -> Option<String> {
    let mut rest = text.to_owned();
    let mut errors = errors.to_vec();
    for _ in 0..ROUNDS {
        let offsets: Vec<usize> = broken(&errors).map(|error| error.span().map_or(text.len(), |s| s.start)).collect();
        if offsets.is_empty() {
            return Some(rest);
        }
        rest = blank(&rest, offsets);
        errors = DeTable::parse_recoverable(&rest).1;
    }
    broken(&errors).next().is_none().then_some(rest)
}

fn blank(text: &str, mut offsets: Vec<usize>) -> String {
    offsets.sort_unstable();
    let mut offsets = offsets.into_iter().peekable();
    let mut blanked = String::with_capacity(text.len());
    let mut skip_table = false;
    for line in text.split_inclusive('\n') {
        let end = blanked.len() + line.len();
        let last = end == text.len();
        let mut broken = false;
        while offsets.next_if(|&offset| offset < end || last).is_some() {
            broken = true;
        }
        if line.trim_start().starts_with('[') {
            skip_table = broken;
        }
        if broken || skip_table {
            let content = line.trim_end_matches('\n');
            blanked.extend(std::iter::repeat_n(' ', content.len()));
            blanked.push_str(line.get(content.len()..).unwrap_or_default());
        } else {
            blanked.push_str(line);
        }
    }
    blanked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable(text: &str) -> Option<String> {
        let rest = without_broken_lines(text, &DeTable::parse_recoverable(text).1);
        if let Some(rest) = &rest {
            assert_eq!(rest.len(), text.len());
        }
        rest
    }

    #[test]
    fn broken_lines_are_blanked_in_place() {
        assert_eq!(readable("a = 1\nb 2\nc = 3\n").as_deref(), Some("a = 1\n   \nc = 3\n"));
        assert_eq!(readable("a = ü\r\nb = 1").as_deref(), Some("       \nb = 1"));
        assert_eq!(readable("a = 1\nb = \"x").as_deref(), Some("a = 1\n      "));
        assert_eq!(readable("a = 1\n").as_deref(), Some("a = 1\n"));
    }

    #[test]
    fn a_broken_header_takes_its_table_with_it() {
        assert_eq!(
            readable("[a]\nx = 1\n[b\nx = 2\n[c]\nx = 3\n").as_deref(),
            Some("[a]\nx = 1\n  \n     \n[c]\nx = 3\n")
        );
    }

    #[test]
    fn what_swallows_the_file_is_given_up() {
        assert_eq!(readable("a = [\n1,\n2,\n3,\n4,\n5,\n6\n"), None);
    }
}
