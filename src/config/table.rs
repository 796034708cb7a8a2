//! Reading one TOML table by hand: typed getters that record what is wrong and carry on.
//!
//! Invariant: a getter that yields [`Field::Bad`] has recorded an error, so that nobody downstream has to
//! complain again. A table reports the keys it does not know when it is opened.

use super::error::{Log, quote};
use super::units;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// A value with its byte offset in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At<T> {
    pub value: T,
    pub offset: usize,
}

/// What a key of a table came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Field<T> {
    /// The key is not there.
    #[default]
    Absent,
    /// The key is there, its value is wrong and the error is recorded.
    Bad,
    /// The key is there and its value by itself is right.
    Given(At<T>),
}

impl<T> Field<T> {
    /// The value, if it is right.
    pub(super) fn given(self) -> Option<At<T>> {
        match self {
            Self::Given(at) => Some(at),
            Self::Absent | Self::Bad => None,
        }
    }

    pub(super) fn as_ref(&self) -> Field<&T> {
        match self {
            Self::Given(at) => Field::Given(At { value: &at.value, offset: at.offset }),
            Self::Absent => Field::Absent,
            Self::Bad => Field::Bad,
        }
    }

    /// The value, or `default` in its place when it is not there or wrong (then no configuration comes of it).
    pub(super) fn or(self, default: T) -> T {
        self.given().map_or(default, |at| at.value)
    }
}

/// Why a text is not a value: what is wrong, what would be right.
pub(super) type Complaint = (String, String);

/// A table with the keys it may have.
#[derive(Clone, Copy)]
pub(super) struct Table<'t> {
    entries: &'t DeTable<'t>,
}

impl<'t> Table<'t> {
    /// Opens a table and records an error for each key that is not in `keys`. `name` as in `[runtime]`. Those in
    /// `planned` are known too, but what they ask for does not exist yet.
    pub(super) fn open(
        entries: &'t DeTable<'t>,
        name: &str,
        keys: &[&str],
        planned: &[&str],
        log: &mut Log<'_>,
    ) -> Self {
        let table = Self { entries };
        for key in planned {
            table.refuse(key, log);
        }
        let known = |key: &str| keys.contains(&key) || planned.contains(&key);
        for key in entries.keys().filter(|key| !known(key.get_ref().as_ref())) {
            let text = key.get_ref().as_ref();
            let remedy = match closest(text, keys) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("keys of {name}: {}", keys.join(", ")),
            };
            log.error(key.span().start, format!("unknown key {} in {name}", quote(text)), remedy);
        }
        table
    }

    fn entry(&self, key: &str) -> Option<(usize, &'t Spanned<DeValue<'t>>)> {
        self.entries.get_key_value(key).map(|(key, value)| (key.span().start, value))
    }

    /// Records an error at a key that is there but whose feature is not, whatever its value.
    pub(super) fn refuse(&self, key: &str, log: &mut Log<'_>) {
        if let Some((offset, _)) = self.entry(key) {
            log.error(offset, format!("not supported yet: {key}"), format!("leave out `{key}`"));
        }
    }

    /// Where a key stands, if it is there.
    pub(super) fn key(&self, key: &str) -> Option<usize> {
        self.entry(key).map(|(offset, _)| offset)
    }

    fn read<T>(&self, key: &str, read: impl FnOnce(&str, &'t Spanned<DeValue<'t>>) -> Option<At<T>>) -> Field<T> {
        match self.entry(key) {
            None => Field::Absent,
            Some((_, value)) => read(&format!("`{key}`"), value).map_or(Field::Bad, Field::Given),
        }
    }

    pub(super) fn boolean(&self, key: &str, log: &mut Log<'_>) -> Field<bool> {
        self.read(key, |label, value| match value.get_ref() {
            DeValue::Boolean(boolean) => Some(At { value: *boolean, offset: value.span().start }),
            _ => wrong_type(label, value, "true or false, without quotes", log),
        })
    }

    pub(super) fn integer(&self, key: &str, range: RangeInclusive<u16>, log: &mut Log<'_>) -> Field<u16> {
        self.read(key, |label, value| integer(label, value, range, log))
    }

    /// A number of bytes, or a size as a string.
    pub(super) fn size(&self, key: &str, range: RangeInclusive<u32>, log: &mut Log<'_>) -> Field<u32> {
        self.read(key, |label, value| {
            let wanted = format!("{} to {} bytes, such as 3000 or \"100k\"", range.start(), range.end());
            let bytes = match value.get_ref() {
                DeValue::Integer(integer) => At { value: small(integer), offset: value.span().start },
                DeValue::String(_) => {
                    let At { value, offset } = parsed(label, value, &wanted, log, units::size)?;
                    At { value: i64::try_from(value).ok(), offset }
                }
                _ => return wrong_type(label, value, &wanted, log),
            };
            let offset = bytes.offset;
            match bytes.value.and_then(|bytes| u32::try_from(bytes).ok()).filter(|bytes| range.contains(bytes)) {
                Some(value) => Some(At { value, offset }),
                None => {
                    log.error(offset, format!("{label} is out of range"), wanted);
                    None
                }
            }
        })
    }

    /// A number, or text that `parse` makes a number of. A number is as if it had been text.
    pub(super) fn quantity<T>(
        &self,
        key: &str,
        wanted: &str,
        log: &mut Log<'_>,
        parse: impl FnOnce(&str) -> Result<T, Complaint>,
    ) -> Field<T> {
        self.read(key, |label, value| {
            let DeValue::Integer(integer) = value.get_ref() else { return parsed(label, value, wanted, log, parse) };
            let offset = value.span().start;
            match small(integer).filter(|number| *number >= 0).and_then(|number| parse(&number.to_string()).ok()) {
                Some(value) => Some(At { value, offset }),
                None => {
                    log.error(offset, format!("{label} is out of range: {integer}"), wanted);
                    None
                }
            }
        })
    }

    pub(super) fn text(&self, key: &str, wanted: &str, log: &mut Log<'_>) -> Field<&'t str> {
        self.read(key, |label, value| text(label, value, wanted, log))
    }

    /// A string that `parse` makes a value of.
    pub(super) fn parsed<T>(
        &self,
        key: &str,
        wanted: &str,
        log: &mut Log<'_>,
        parse: impl FnOnce(&'t str) -> Result<T, Complaint>,
    ) -> Field<T> {
        self.read(key, |label, value| parsed(label, value, wanted, log, parse))
    }

    /// A value of any type.
    pub(super) fn value(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.entry(key).map(|(_, value)| value)
    }

    /// An array, each of whose elements `read` makes a value of; `Bad` when any of them is.
    pub(super) fn array<T>(
        &self,
        key: &str,
        wanted: &str,
        log: &mut Log<'_>,
        mut read: impl FnMut(&str, &'t Spanned<DeValue<'t>>, &mut Log<'_>) -> Option<At<T>>,
    ) -> Field<Array<T>> {
        self.read(key, |label, value| {
            let DeValue::Array(items) = value.get_ref() else { return wrong_type(label, value, wanted, log) };
            let label = format!("an element of {label}");
            let mut elements = Vec::with_capacity(items.len());
            for item in items.iter() {
                elements.extend(read(&label, item, log));
            }
            let complete = elements.len() == items.len();
            Some(At { value: Array { elements, complete }, offset: value.span().start })
        })
    }

    /// A table inside this one.
    pub(super) fn table(&self, key: &str, header: &str, log: &mut Log<'_>) -> Option<(&'t DeTable<'t>, usize)> {
        let (offset, value) = self.entry(key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some((table, value.span().start)),
            DeValue::Array(_) => {
                log.error(offset, format!("`{key}` is a list"), format!("one table: {header}, in single brackets"));
                None
            }
            other => {
                log.error(offset, format!("`{key}` is {}", type_name(other)), format!("a table: {header}"));
                None
            }
        }
    }

    /// The tables of a list inside this one.
    pub(super) fn tables(&self, key: &str, header: &str, log: &mut Log<'_>) -> Vec<(&'t DeTable<'t>, usize)> {
        let Some((offset, value)) = self.entry(key) else { return Vec::new() };
        match value.get_ref() {
            DeValue::Array(items) => {
                let mut tables = Vec::with_capacity(items.len());
                for item in items.iter() {
                    match item.get_ref() {
                        DeValue::Table(table) => tables.push((table, item.span().start)),
                        other => {
                            let what = format!("an element of `{key}` is {}", type_name(other));
                            log.error(item.span().start, what, "a table");
                        }
                    }
                }
                tables
            }
            other => {
                let remedy = format!("a list of tables: {header}, in double brackets");
                log.error(offset, format!("`{key}` is {}", type_name(other)), remedy);
                Vec::new()
            }
        }
    }
}

/// The elements of an array that are right by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Array<T> {
    pub elements: Vec<At<T>>,
    /// None was wrong.
    pub complete: bool,
}

/// An integer in a range; `label` names the value in messages.
pub(super) fn integer(
    label: &str,
    value: &Spanned<DeValue<'_>>,
    range: RangeInclusive<u16>,
    log: &mut Log<'_>,
) -> Option<At<u16>> {
    let wanted = format!("an integer from {} to {}", range.start(), range.end());
    let DeValue::Integer(integer) = value.get_ref() else { return wrong_type(label, value, &wanted, log) };
    let offset = value.span().start;
    match small(integer).and_then(|number| u16::try_from(number).ok()).filter(|number| range.contains(number)) {
        Some(value) => Some(At { value, offset }),
        None => {
            log.error(offset, format!("{label} is out of range: {integer}"), wanted);
            None
        }
    }
}

/// The value of an integer, `None` when it has more than 64 bits.
pub(super) fn small(integer: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A string without NUL, which neither the EAL nor the kernel would take.
pub(super) fn text<'t>(
    label: &str,
    value: &'t Spanned<DeValue<'t>>,
    wanted: &str,
    log: &mut Log<'_>,
) -> Option<At<&'t str>> {
    let DeValue::String(text) = value.get_ref() else { return wrong_type(label, value, wanted, log) };
    let offset = value.span().start;
    if text.contains('\0') {
        log.error(offset, format!("{label} contains a NUL character"), wanted);
        return None;
    }
    Some(At { value: text.as_ref(), offset })
}

/// A string that `parse` makes a value of.
pub(super) fn parsed<'t, T>(
    label: &str,
    value: &'t Spanned<DeValue<'t>>,
    wanted: &str,
    log: &mut Log<'_>,
    parse: impl FnOnce(&'t str) -> Result<T, Complaint>,
) -> Option<At<T>> {
    let At { value, offset } = text(label, value, wanted, log)?;
    match parse(value) {
        Ok(value) => Some(At { value, offset }),
        Err((what, remedy)) => {
            log.error(offset, what, remedy);
            None
        }
    }
}

/// Records that a value has the wrong type.
pub(super) fn wrong_type<T>(label: &str, value: &Spanned<DeValue<'_>>, wanted: &str, log: &mut Log<'_>) -> Option<T> {
    log.error(value.span().start, format!("{label} is {}", type_name(value.get_ref())), wanted);
    None
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// The known word that a misspelt one was meant to be: at most one mistake in three characters.
pub(super) fn closest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    // Longer words are no slip of the pen, and distance is quadratic in the length.
    if word.len() > 40 {
        return None;
    }
    let word = word.to_ascii_lowercase().replace('-', "_");
    let distance = |candidate: &&&str| strsim::osa_distance(&word, candidate);
    known.iter().min_by_key(distance).filter(|near| distance(near) <= near.len() / 3).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found() {
        let keys = ["name", "rx_queues", "tx_queues", "mtu", "mac"];
        assert_eq!(closest("rx-queues", &keys), Some("rx_queues"));
        assert_eq!(closest("rxqueues", &keys), Some("rx_queues"));
        assert_eq!(closest("MTU", &keys), Some("mtu"));
        assert_eq!(closest("nmae", &keys), Some("name"));
        assert_eq!(closest("speed", &keys), None);
        assert_eq!(closest(&"x".repeat(1 << 20), &keys), None);
    }
}
