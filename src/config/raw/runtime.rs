//! `[runtime]` and `[control]` as they are written.

use crate::config::error::{Log, quote};
use crate::config::table::{Array, At, Complaint, Field, Table, integer, parsed, small, wrong_type};
use crate::config::{Memory, eal_args, units};
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Cores that can be named: what the EAL of common builds (`RTE_MAX_LCORE`) and the kernel's masks take.
pub(super) const CORES: RangeInclusive<u16> = 0..=1023;

/// `[runtime]`
#[derive(Debug, Default)]
pub(in crate::config) struct Runtime<'t> {
    pub main_core: Field<u16>,
    pub worker_cores: Field<Array<u16>>,
    pub memory: Field<Memory>,
    pub eal_args: Field<Array<&'t str>>,
    pub file_prefix: Field<&'t str>,
}

impl<'t> Runtime<'t> {
    const KEYS: [&'static str; 5] = ["main_core", "worker_cores", "memory", "eal_args", "file_prefix"];

    pub(super) fn read(table: &'t DeTable<'t>, log: &mut Log<'_>) -> Self {
        let table = Table::open(table, "[runtime]", &Self::KEYS, &[], log);
        Self {
            main_core: table.integer("main_core", CORES, log),
            worker_cores: table.array("worker_cores", "a list of cores such as [1, 2]", log, |label, item, log| {
                integer(label, item, CORES, log)
            }),
            memory: memory(table, log),
            eal_args: table.array("eal_args", "a list of strings", log, |label, item, log| {
                parsed(label, item, "a string", log, eal_args::check)
            }),
            file_prefix: table.parsed("file_prefix", FILE_PREFIX, log, file_prefix),
        }
    }
}

/// `[control]`
#[derive(Debug, Default)]
pub(in crate::config) struct Control<'t> {
    pub socket: Field<&'t str>,
    pub mode: Field<u32>,
    pub group: Field<&'t str>,
}

impl<'t> Control<'t> {
    const KEYS: [&'static str; 3] = ["socket", "mode", "group"];

    pub(super) fn read(table: &'t DeTable<'t>, log: &mut Log<'_>) -> Self {
        let table = Table::open(table, "[control]", &Self::KEYS, &["metrics"], log);
        Self {
            socket: table.parsed("socket", SOCKET, log, socket),
            mode: mode(table, log),
            group: table.parsed("group", GROUP, log, group),
        }
    }
}

/// Less would not even hold the EAL; more than any machine has is a slip of the pen.
const MEMORY: RangeInclusive<u64> = 1 << 20..=1 << 44;

fn memory(table: Table<'_>, log: &mut Log<'_>) -> Field<Memory> {
    const WANTED: &str = "\"auto\", or a size from 1M to 16384G such as \"512M\"";
    let Some(value) = table.value("memory") else { return Field::Absent };
    let offset = value.span().start;
    let (written, bytes) = match value.get_ref() {
        DeValue::String(text) if text == "auto" => return Field::Given(At { value: Memory::Auto, offset }),
        DeValue::String(text) => match units::size(text) {
            Ok(bytes) => (quote(text), Some(bytes)),
            Err((what, remedy)) => {
                log.error(offset, what, format!("\"auto\", or {remedy}"));
                return Field::Bad;
            }
        },
        DeValue::Integer(integer) => (integer.to_string(), small(integer).and_then(|bytes| u64::try_from(bytes).ok())),
        _ => {
            wrong_type::<()>("`memory`", value, WANTED, log);
            return Field::Bad;
        }
    };
    match bytes.filter(|bytes| MEMORY.contains(bytes)) {
        Some(bytes) => Field::Given(At { value: Memory::Bytes(bytes), offset }),
        None => {
            log.error(offset, format!("`memory` is out of range: {written}"), WANTED);
            Field::Bad
        }
    }
}

/// Permission bits. An integer must be written in octal: `mode = 600` would be 0o1130.
fn mode(table: Table<'_>, log: &mut Log<'_>) -> Field<u32> {
    const WANTED: &str = "octal permission bits: 0o660 or \"0660\"";
    let Some(value) = table.value("mode") else { return Field::Absent };
    match mode_bits(value) {
        Some(mode) => Field::Given(At { value: mode, offset: value.span().start }),
        None => {
            let what = match value.get_ref() {
                DeValue::String(text) => format!("`mode` is {}", quote(text)),
                DeValue::Integer(integer) => format!("`mode` is {integer}"),
                _ => return wrong_type("`mode`", value, WANTED, log).map_or(Field::Bad, Field::Given),
            };
            log.error(value.span().start, what, WANTED);
            Field::Bad
        }
    }
}

fn mode_bits(value: &Spanned<DeValue<'_>>) -> Option<u32> {
    let digits = match value.get_ref() {
        DeValue::String(text) => text.as_ref(),
        DeValue::Integer(integer) if integer.radix() == 8 => integer.as_str(),
        _ => return None,
    };
    let octal = !digits.is_empty() && digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    let mode = if octal { u32::from_str_radix(digits, 8).ok()? } else { return None };
    (mode <= 0o777).then_some(mode)
}

const FILE_PREFIX: &str = "1 to 32 letters, digits, - or _";

fn file_prefix(text: &str) -> Result<&str, Complaint> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if (1..=32).contains(&text.len()) && text.bytes().all(good) {
        Ok(text)
    } else {
        Err((format!("`file_prefix` is {}", quote(text)), FILE_PREFIX.to_owned()))
    }
}

const SOCKET: &str = "a path of 1 to 107 bytes";

/// The kernel keeps 108 bytes for the path of a Unix socket, its NUL included.
fn socket(text: &str) -> Result<&str, Complaint> {
    match text.len() {
        0 => Err(("`socket` is empty".to_owned(), SOCKET.to_owned())),
        1..108 => Ok(text),
        length => Err((format!("`socket` has {length} bytes"), SOCKET.to_owned())),
    }
}

const GROUP: &str = "the name of a group";

fn group(text: &str) -> Result<&str, Complaint> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == ':';
    if text.is_empty() || text.contains(bad) {
        return Err((format!("`group` is {}", quote(text)), GROUP.to_owned()));
    }
    Ok(text)
}
