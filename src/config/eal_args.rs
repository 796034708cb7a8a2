//! Which arguments a configuration may pass to the EAL: those that contradict nothing Thruway itself decides.

use super::error::quote;
use super::table::Complaint;

const CORES: &str = "main_core and worker_cores of [runtime] choose the cores";
const MEMORY: &str = "use `memory` of [runtime]";
const DEVICES: &str = "use `device` of [[port]]";

/// Long options that Thruway decides, without their dashes. The beginning of one counts as the whole, as
/// `getopt_long` reads it; none of them begins another option of the EAL.
const LONG: [(&str, &str); 12] = [
    ("lcores", CORES),
    ("main-lcore", CORES),
    ("master-lcore", CORES),
    ("file-prefix", "use `file_prefix` of [runtime]"),
    ("socket-mem", MEMORY),
    ("vdev", DEVICES),
    ("allow", DEVICES),
    ("block", DEVICES),
    ("pci-whitelist", DEVICES),
    ("pci-blacklist", DEVICES),
    ("proc-type", "leave it out: Thruway is always a primary process"),
    ("help", "leave it out: it ends the process"),
];

/// Short ones; a value may follow at once (`-l0-3`).
const SHORT: [(char, &str); 10] = [
    ('c', CORES),
    ('l', CORES),
    ('s', CORES),
    ('S', CORES),
    ('m', MEMORY),
    ('a', DEVICES),
    ('b', DEVICES),
    ('w', DEVICES),
    ('h', "leave it out: it ends the process"),
    ('-', "leave it out: it ends the EAL's arguments"),
];

/// An argument for the EAL, unchanged.
///
/// # Errors
///
/// It is empty, or it sets something that has a key of its own.
pub(super) fn check(arg: &str) -> Result<&str, Complaint> {
    if arg.is_empty() {
        return Err(("an element of `eal_args` is empty".to_owned(), "one argument in each element".to_owned()));
    }
    let option = arg.split('=').next().unwrap_or(arg);
    let refused = match option.strip_prefix("--") {
        Some(name) if !name.is_empty() => LONG.iter().find(|(long, _)| long.starts_with(name)).map(|&(_, why)| why),
        _ => option
            .strip_prefix('-')
            .and_then(|rest| rest.chars().next())
            .and_then(|letter| SHORT.iter().find(|&&(short, _)| short == letter).map(|&(_, why)| why)),
    };
    match refused {
        Some(remedy) => Err((format!("{} is not for `eal_args`", quote(arg)), remedy.to_owned())),
        None => Ok(arg),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_key_is_refused() {
        for (arg, key) in [
            ("-l", "worker_cores"),
            ("-l0-3", "worker_cores"),
            ("-c", "worker_cores"),
            ("--lcores=0@1", "worker_cores"),
            ("--main-lcore", "main_core"),
            ("--file-prefix=x", "file_prefix"),
            ("--file-p", "file_prefix"),
            ("-m", "memory"),
            ("-m512", "memory"),
            ("--socket-mem=512", "memory"),
            ("--vdev=net_null0", "device"),
            ("-a", "device"),
            ("--proc-type=secondary", "primary"),
            ("--", "ends the EAL"),
        ] {
            assert!(check(arg).unwrap_err().1.contains(key), "{arg}");
        }
        for arg in
            ["-n", "4", "--no-huge", "--in-memory", "--iova-mode=va", "--huge-dir", "--log-level=8", "-v", "--no-pci"]
        {
            assert_eq!(check(arg), Ok(arg));
        }
    }
}
