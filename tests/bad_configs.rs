//! Configurations with mistakes: each file of `bad_configs/` gives exactly the lines of its `.expected` file.

use std::fs;
use std::path::{Path, PathBuf};
use thruway::config;

/// The files of a folder of this repository that end in `.toml`, by name.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files
}

/// The errors of a file, as if it had been given by its bare name.
fn errors(path: &Path) -> config::ConfigErrors {
    let name = path.file_name().unwrap().to_str().unwrap();
    let bytes = fs::read(path).unwrap();
    config::parse_bytes(&bytes, name).expect_err(name)
}

#[test]
fn each_mistake_is_named_with_its_place_and_its_remedy() {
    let files = files("tests/bad_configs");
    assert!(files.len() >= 45, "only {} files", files.len());
    let mut differences = String::new();
    for path in &files {
        let expected = fs::read_to_string(path.with_extension("expected")).unwrap_or_default();
        let found = format!("{}\n", errors(path));
        if found != expected {
            differences += &format!("--- expected\n{expected}--- found\n{found}");
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn each_line_has_a_place_inside_the_file_and_a_remedy() {
    for path in files("tests/bad_configs") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let bytes = fs::read(&path).unwrap();
        let lines = bytes.split(|&byte| byte == b'\n').count();
        let errors = errors(&path);
        for line in errors.to_string().lines() {
            let rest = line.strip_prefix(name).unwrap_or_else(|| panic!("{line}"));
            let mut parts = rest.splitn(4, ':');
            assert_eq!(parts.next(), Some(""), "{line}");
            let number: usize = parts.next().unwrap().parse().unwrap();
            let column: usize = parts.next().unwrap().parse().unwrap();
            assert!((1..=lines).contains(&number) && column >= 1, "{line}");
            let (what, remedy) = parts.next().unwrap().split_once(" (").unwrap_or_else(|| panic!("{line}"));
            assert!(!what.trim().is_empty() && remedy.len() > 2 && remedy.ends_with(')'), "{line}");
        }
    }
}

#[test]
fn files_that_are_no_text_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.toml");
    let message = config::load(&missing).unwrap_err().to_string();
    assert_eq!(message, format!("{}: no such file (give the path of a configuration file)", missing.display()));
    let message = config::load(folder.path()).unwrap_err().to_string();
    assert_eq!(message, format!("{}: is a directory (a TOML file in UTF-8)", folder.path().display()));
    let huge = folder.path().join("huge.toml");
    fs::File::create(&huge).unwrap().set_len(config::SIZE_MAX as u64 + 1).unwrap();
    let message = config::load(&huge).unwrap_err().to_string();
    assert_eq!(message, format!("{}: is larger than 64 MiB (a smaller file)", huge.display()));
    // It never ends.
    assert!(config::load(Path::new("/dev/zero")).unwrap_err().to_string().contains("larger than 64 MiB"));
}

#[test]
fn every_example_is_right() {
    let files = files("conf");
    assert!(files.len() >= 3, "only {} files", files.len());
    for path in files {
        if let Err(errors) = config::load(&path) {
            panic!("{errors}");
        }
    }
}
