//! From a path, bytes or a text to a configuration or all its errors.

use super::error::Log;
use super::raw;
use super::validate::validate;
use super::{Config, ConfigErrors, syntax};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use toml::de::DeTable;

/// The largest file that is read, in bytes: 64 MiB. A full table of 733 000 routes has about 50.
pub const SIZE_MAX: usize = 64 << 20;

const NO_TEXT: &str = "a TOML file in UTF-8";

/// Reads and validates a file.
///
/// # Errors
///
/// The file cannot be read, is a directory, is larger than [`SIZE_MAX`], or one or more things are wrong in it.
pub fn load(path: &Path) -> Result<Config, ConfigErrors> {
    let name = path.display().to_string();
    match read(path) {
        Ok(bytes) => parse_bytes(&bytes, &name),
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
            Err(ConfigErrors::of_file(&name, "is a directory".to_owned(), NO_TEXT))
        }
        Err(error) => {
            let (what, remedy) = match error.kind() {
                io::ErrorKind::NotFound => ("no such file".to_owned(), "give the path of a configuration file"),
                io::ErrorKind::PermissionDenied => {
                    ("permission denied".to_owned(), "give a file that this user may read")
                }
                _ => (format!("cannot be read: {error}"), NO_TEXT),
            };
            Err(ConfigErrors::of_file(&name, what, remedy))
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than is taken, so that what is too large is seen to be; the file may be a pipe.
    File::open(path)?.take(SIZE_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Validates the bytes of a file; `file_name` is for messages only.
///
/// # Errors
///
/// They are not UTF-8, too many, or as for [`parse`].
pub fn parse_bytes(bytes: &[u8], file_name: &str) -> Result<Config, ConfigErrors> {
    if bytes.len() > SIZE_MAX {
        return Err(too_large(file_name));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text, file_name),
        Err(error) => {
            let (good, bad) = bytes.split_at_checked(error.valid_up_to()).unwrap_or((bytes, &[]));
            let good = std::str::from_utf8(good).unwrap_or_default();
            let what = format!("byte {:#04x} is not UTF-8", bad.first().copied().unwrap_or_default());
            Err(ConfigErrors::at(file_name, without_mark(good), usize::MAX, what, NO_TEXT))
        }
    }
}

/// Validates a text; `file_name` is for messages only. Looks at nothing but the text.
///
/// # Errors
///
/// All that is wrong with it. Where the TOML itself is malformed, values that could be read are checked by
/// themselves, but what is missing and how values go together is not: it cannot be known yet.
pub fn parse(text: &str, file_name: &str) -> Result<Config, ConfigErrors> {
    if text.len() > SIZE_MAX {
        return Err(too_large(file_name));
    }
    let text = without_mark(text);
    let mut log = Log::new(text);
    let (document, syntax_errors) = DeTable::parse_recoverable(text);
    if syntax::record(text, &syntax_errors, &mut log).is_empty() {
        let raw = raw::read(document.get_ref(), &mut log);
        let config = validate(&raw, &mut log);
        return log.finish(file_name).map(|()| config);
    }
    if let Some(rest) = syntax::without_broken_lines(text, &syntax_errors) {
        raw::read(DeTable::parse_recoverable(&rest).0.get_ref(), &mut log);
    }
    log.finish(file_name)?;
    Err(ConfigErrors::of_file(file_name, "is not TOML".to_owned(), NO_TEXT))
}

fn too_large(file_name: &str) -> ConfigErrors {
    ConfigErrors::of_file(file_name, "is larger than 64 MiB".to_owned(), "a smaller file")
}

/// Without the byte order mark that some editors put in front.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
