//! The layout of the house: who may name whom, where `unsafe` may stand, and how long a file may be.
//!
//! The sources are read as tokens, so that comments and texts do not count, and what is compiled for
//! tests only is left out. What a macro of another file makes is not seen.

#[path = "layout/names.rs"]
mod names;

use names::{Names, is_test_file};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Layers from the ground up. A module names only its own layer and those below.
const LAYERS: [&[&str]; 4] = [
    &["units", "drop_reason", "counter", "sync"],
    &["queue", "qdisc", "bql", "police", "packet", "classify", "segment", "fib", "neighbor"],
    &["datapath", "tables", "generate", "stats", "trace", "config"],
    &["control", "cli", "top", "kernel", "runtime"],
];

/// Modules that take time and input as arguments.
const PURE: &[&str] = &[
    "units",
    "drop_reason",
    "counter",
    "queue",
    "qdisc",
    "bql",
    "police",
    "packet",
    "classify",
    "segment",
    "fib",
    "neighbor",
    "datapath",
    "tables",
];

/// What those do not name: files, sockets, clocks and processes.
const IMPURE: &[&str] = &[
    "std::io",
    "std::fs",
    "std::env",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::net::ToSocketAddrs",
    "mio",
    "rustix::fs",
    "rustix::net",
    "rustix::process",
    "rustix::time",
    "signal_hook",
];

/// Between the edges, the only arrows: who, and what of whom.
const EDGES: &[(&str, &str)] = &[
    ("cli", "control::protocol"),
    ("cli", "control::report"),
    ("cli", "runtime"),
    ("top", "control::protocol"),
    ("top", "control::report"),
    ("runtime", "control"),
    ("runtime", "kernel"),
];

/// All that the command line names besides: it knows the forwarder by the protocol only.
const CLI: &[&str] = &["units", "config", "control::protocol", "control::report", "runtime"];

/// Where `unsafe` may stand.
const UNSAFE: &[&str] = &[
    "dpdk/",
    "src/sync.rs",
    "src/sync/",
    "src/fib/region.rs",
    "src/queue/",
    "src/qdisc/run.rs",
    "src/datapath/vector",
    "src/datapath/batch/",
    "src/datapath/buffer.rs",
    "src/datapath/memory.rs",
    "src/runtime/",
];

/// Lines a file may have, its tests not counted.
const LONGEST: usize = 500;

/// Signs of work that is not finished.
const UNFINISHED: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

/// The path is `root` or below it.
fn below(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn below_any(path: &str, roots: &[&str]) -> bool {
    roots.iter().any(|root| below(path, root))
}

/// Everything in one source file that breaks a rule.
fn faults(path: &str, text: &str) -> Vec<String> {
    let names = match Names::of(path, text) {
        Ok(names) => names,
        Err(error) => return vec![format!("cannot be read as Rust: {error}")],
    };
    let mut faults = BTreeSet::new();
    if !text.starts_with("//!") {
        faults.insert("does not begin with a //! header".to_owned());
    }
    for mark in UNFINISHED.iter().filter(|mark| text.contains(**mark)) {
        faults.insert(format!("has a {mark}"));
    }
    for mark in &names.unfinished {
        faults.insert(format!("has {mark}"));
    }
    if names.lines > LONGEST {
        faults.insert(format!("has {} lines without its tests; {LONGEST} are allowed", names.lines));
    }
    if names.has_unsafe && !UNSAFE.iter().any(|place| path.starts_with(place)) {
        faults.insert("has unsafe code outside of the fence".to_owned());
    }
    if let Some(module) = path.strip_prefix("src/").map(|_| names.module.first().map_or("", String::as_str)) {
        faults.extend(names.outer.iter().filter_map(|outer| outer_fault(module, outer)));
        if !matches!(module, "" | "main") {
            match layer(module) {
                None => drop(faults.insert(format!("module {module} has no layer: give it one in tests/layout.rs"))),
                Some(own) => faults.extend(names.inner.iter().filter_map(|inner| inner_fault(module, own, inner))),
            }
        }
    }
    faults.into_iter().collect()
}

/// What is wrong with naming another crate's path in a module.
fn outer_fault(module: &str, path: &str) -> Option<String> {
    if below_any(path, &["dpdk", "dpdk_sys"]) && module != "runtime" {
        return Some(format!("{module} names {path}: only runtime may name dpdk"));
    }
    // A whole module taken in by a glob could bring any of its names.
    let globbed = path.strip_suffix("::*").is_some_and(|root| IMPURE.iter().any(|impure| below(impure, root)));
    if PURE.contains(&module) && (below_any(path, IMPURE) || globbed) {
        return Some(format!("{module} names {path}: input, output and time are arguments there"));
    }
    None
}

/// What is wrong with naming a path of this crate in a module of a layer.
fn inner_fault(module: &str, own: usize, path: &str) -> Option<String> {
    let target = path.split("::").next().unwrap_or(path);
    let theirs = layer(target)?;
    if target == module {
        return None;
    }
    if theirs > own {
        return Some(format!("{module} names {path}: arrows point down"));
    }
    if module == "cli" && !below_any(path, CLI) {
        return Some(format!("cli names {path}: it knows the protocol only"));
    }
    let edges = own + 1 == LAYERS.len();
    if edges && theirs == own && !EDGES.iter().any(|(who, what)| *who == module && below(path, what)) {
        return Some(format!("{module} names {path}: the edges do not know each other"));
    }
    if module == "datapath" && target == "config" {
        return Some(format!("datapath names {path}: it sees tables, never the configuration"));
    }
    None
}

/// Pairs of modules that name each other.
fn circles<'a>(arrows: &'a BTreeSet<(String, String)>) -> impl Iterator<Item = String> + 'a {
    let both = |(from, to): &&(String, String)| from < to && arrows.contains(&(to.clone(), from.clone()));
    arrows.iter().filter(both).map(|(one, other)| format!("{one} and {other} name each other"))
}

fn sources(directory: &Path, into: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().to_str().unwrap().to_owned();
            if !is_test_file(&name) {
                into.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
}

#[test]
fn the_house_is_in_order() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    sources(&root.join("dpdk"), &mut files);
    assert!(files.len() > 20, "the sources were not found");

    let mut all: Vec<String> = Vec::new();
    let mut arrows = BTreeSet::new();
    for (path, text) in &files {
        all.extend(faults(path, text).into_iter().map(|fault| format!("{path}: {fault}")));
        if let Ok(names) = Names::of(path, text)
            && let Some(from) = names.module.first().filter(|from| path.starts_with("src/") && layer(from).is_some())
        {
            let tops = names.inner.iter().filter_map(|path| path.split("::").next()).filter(|to| layer(to).is_some());
            arrows.extend(tops.filter(|to| to != from).map(|to| (from.clone(), to.to_owned())));
        }
    }
    assert!(arrows.contains(&("datapath".into(), "packet".into())), "paths are not found");
    all.extend(circles(&arrows));
    assert!(all.is_empty(), "\n{}\n", all.join("\n"));
}

#[test]
fn two_that_name_each_other_are_found() {
    let arrow = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let arrows =
        BTreeSet::from([arrow("tables", "datapath"), arrow("datapath", "packet"), arrow("datapath", "tables")]);
    assert_eq!(circles(&arrows).collect::<Vec<_>>(), ["datapath and tables name each other"]);
}

#[test]
fn good_samples_pass() {
    for (path, text) in [
        ("src/packet/mod.rs", "use crate::units::PortId; use std::net::IpAddr; use std::time::Duration;"),
        ("src/packet/mod.rs", "// use crate::config; unsafe\n const A: &str = \"crate::cli::x unsafe dbg!()\";"),
        ("src/packet/mod.rs", "#[cfg(test)] mod tests { use crate::runtime::X; use std::io; use std::fs::{read}; }"),
        ("src/packet/mod.rs", "#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;\nuse super::units::PortId;"),
        ("src/packet/deep/x.rs", "use super::super::checksum; use self::inner::y; mod inner { use super::super::z; }"),
        ("src/tables/mod.rs", "use crate::{config::Config, datapath::snapshot::{self, Action}};"),
        ("src/cli/show.rs", "use crate::control::{protocol::What, report::{PortReport, *}}; use crate::config;"),
        ("src/cli/mod.rs", "use std::io; fn f() { crate::runtime::run() }"),
        ("src/runtime/ports.rs", "use dpdk::{Port, eal}; use crate::control::backend; fn f() { unsafe { g() } }"),
        ("src/control/listen.rs", "use rustix::net::bind; use crate::config::Config;"),
        ("src/main.rs", "use thruway::cli; fn f() { thruway::runtime::run() }"),
        ("src/datapath/batch/avx2.rs", "unsafe fn f() {}"),
        ("dpdk/src/eal.rs", "use dpdk_sys as sys; fn f() { unsafe { sys::rte_eal_init() } }"),
    ] {
        assert_eq!(faults(path, &format!("//! A sample.\n{text}")), [""; 0], "{path}: {text}");
    }
}

#[test]
fn bad_samples_are_found() {
    for (path, text, fault) in [
        ("src/packet/mod.rs", "use crate::datapath::Batch;", "packet names datapath::Batch: arrows point down"),
        ("src/packet/mod.rs", "fn f() { crate::config::load(x); }", "packet names config::load: arrows"),
        ("src/packet/deep/x.rs", "use super::super::super::datapath::X;", "packet names datapath::X: arrows"),
        ("src/packet/mod.rs", "mod a { use super::super::cli::X; }", "packet names cli::X: arrows"),
        ("src/packet/mod.rs", "macro_rules! m { () => { $crate::datapath::x() } }", "packet names datapath::x: arrows"),
        ("src/units.rs", "use crate::{packet::{a, b}, units};", "units names packet::a: arrows"),
        ("src/config/mod.rs", "use crate::control::protocol::What;", "config names control::protocol::What: arrows"),
        ("src/datapath/mod.rs", "use crate::config::Port;", "never the configuration"),
        ("src/control/server.rs", "use crate::cli::Cli;", "the edges do not know each other"),
        ("src/control/server.rs", "use crate::runtime::Daemon;", "the edges do not know each other"),
        ("src/cli/show.rs", "use crate::control::backend::Forwarder;", "it knows the protocol only"),
        ("src/cli/show.rs", "use crate::{datapath, units};", "cli names datapath: it knows the protocol only"),
        ("src/cli/show.rs", "use dpdk::eal;", "only runtime may name dpdk"),
        ("src/datapath/mod.rs", "use dpdk as d;", "only runtime may name dpdk"),
        ("src/main.rs", "use dpdk;", "only runtime may name dpdk"),
        ("src/lib.rs", "fn f() { ::dpdk::eal() }", "only runtime may name dpdk"),
        ("src/bql/mod.rs", "use std::time::Instant;", "time are arguments"),
        ("src/bql/mod.rs", "use std::time::*;", "time are arguments"),
        ("src/bql/mod.rs", "use std::{time::{Duration, SystemTime}};", "names std::time::SystemTime"),
        ("src/fib/mod.rs", "fn f() -> std::io::Result<()> { Ok(()) }", "names std::io::Result"),
        ("src/packet/mod.rs", "use std::net::{IpAddr, UdpSocket};", "names std::net::UdpSocket"),
        ("src/packet/mod.rs", "fn f() { unsafe { g() } }", "unsafe code outside"),
        ("src/packet/mod.rs", "#[cfg(not(test))] use crate::cli;", "arrows"),
        ("src/fib/trie.rs", "unsafe impl Send for X {}", "unsafe code outside"),
        ("src/cli/mod.rs", "#[allow(clippy::x, dead_code)] fn f() {}", "has allow(dead_code)"),
        ("src/cli/mod.rs", "fn f() { dbg!(1); }", "has dbg!"),
        ("src/cli/mod.rs", "fn f() { todo!() }", "has todo!"),
        ("src/cli/mod.rs", concat!("// TO", "DO: more"), concat!("has a TO", "DO")),
        ("src/attic/mod.rs", "", "module attic has no layer"),
        ("src/cli/mod.rs", "fn f( {", "cannot be read as Rust"),
        ("dpdk/src/eal.rs", "fn f() { unimplemented!() }", "has unimplemented!"),
    ] {
        let found = faults(path, &format!("//! A sample.\n{text}"));
        assert!(found.iter().any(|found| found.contains(fault)), "{path}: {text}: {found:?}");
    }
    assert_eq!(faults("src/units.rs", "use std::fmt;"), ["does not begin with a //! header"]);
    let long = format!("//! A sample.\n{}", "fn f() {}\n".repeat(LONGEST));
    assert_eq!(faults("src/units.rs", &long), ["has 501 lines without its tests; 500 are allowed"]);
    let tests = format!("//! A sample.\n#[cfg(test)]\nmod tests {{\n{}}}\n", "fn f() {}\n".repeat(LONGEST));
    assert_eq!(faults("src/units.rs", &tests), [""; 0]);
}
