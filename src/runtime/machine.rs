//! What the machine offers: cores, hugepages.

use super::error::RuntimeError;
use crate::units::CoreId;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

/// The cores this process may run on.
pub(super) fn allowed_cores() -> Result<Vec<CoreId>, RuntimeError> {
    let set = sched_getaffinity(None).map_err(|errno| RuntimeError::system("read the allowed cores")(errno.into()))?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).map(|core| CoreId(core as u16)).collect())
}

/// Cores for control and forwarding where nothing says which: the first and the last that this process may use.
pub(super) fn outer_cores() -> Result<(CoreId, CoreId), RuntimeError> {
    let allowed = allowed_cores()?;
    let first = allowed.first().copied().unwrap_or(CoreId(0));
    Ok((first, allowed.last().copied().unwrap_or(first)))
}

/// The cores this process may run on, such that the first ones share as little as possible: one thread of each physical core,
/// then the others.
pub(super) fn spread_cores() -> Result<Vec<CoreId>, RuntimeError> {
    let siblings = |core: CoreId| {
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")).ok()
    };
    Ok(spread(&allowed_cores()?, siblings))
}

/// `siblings` says which threads are on the same physical core, in the same words for each of them.
fn spread(cores: &[CoreId], siblings: impl Fn(CoreId) -> Option<String>) -> Vec<CoreId> {
    let mut seen = BTreeSet::new();
    let is_first = |core: &CoreId| siblings(*core).is_none_or(|siblings| seen.insert(siblings));
    let (mut first, others): (Vec<_>, Vec<_>) = cores.iter().copied().partition(is_first);
    first.extend(others);
    first
}

/// Numbers as `taskset` writes them: `0-3,8`.
pub(super) fn ranges(cores: &[CoreId]) -> String {
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for CoreId(core) in cores.iter().copied() {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => runs.push((core, core)),
        }
    }
    let run = |(first, last): &(u16, u16)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

/// What there is of hugepages for this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hugepages {
    /// No file system for them is mounted.
    NotMounted,
    /// One is, here, but this process may not write to it.
    NotWritable(String),
    /// So many bytes are free.
    Free(u64),
}

impl Hugepages {
    /// Bytes that are free and that this process can use.
    pub fn free(&self) -> u64 {
        match self {
            Self::Free(bytes) => *bytes,
            Self::NotMounted | Self::NotWritable(_) => 0,
        }
    }
}

/// Why there are not enough, and what to do.
impl fmt::Display for Hugepages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMounted => f.write_str("no hugetlbfs is mounted: mount -t hugetlbfs nodev /dev/hugepages"),
            Self::NotWritable(directory) => {
                write!(f, "{directory} is not writable for this user: run as root, or change its owner")
            }
            Self::Free(bytes) => write!(f, "{} MiB are free: reserve more (sysctl vm.nr_hugepages=N)", bytes >> 20),
        }
    }
}

/// The hugepages for this process.
pub(super) fn hugepages() -> Hugepages {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let writable = |directory: &str| rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).is_ok();
    hugepages_in(&mounts, writable, Path::new("/sys/kernel/mm/hugepages"))
}

fn hugepages_in(mounts: &str, writable: impl Fn(&str) -> bool, sizes: &Path) -> Hugepages {
    let directories = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (directory, kind) = (fields.next()?, fields.next()?);
        (kind == "hugetlbfs").then_some(directory)
    });
    let mut refused = Hugepages::NotMounted;
    for directory in directories {
        if writable(directory) {
            return Hugepages::Free(free_in(sizes));
        }
        refused = Hugepages::NotWritable(directory.to_owned());
    }
    refused
}

fn free_in(sizes: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(sizes) else { return 0 };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let size: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
            let free: u64 = fs::read_to_string(entry.path().join("free_hugepages")).ok()?.trim().parse().ok()?;
            Some(size * 1024 * free)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_like_taskset() {
        let text = |cores: &[u16]| ranges(&cores.iter().map(|core| CoreId(*core)).collect::<Vec<_>>());
        assert_eq!(text(&[]), "");
        assert_eq!(text(&[3]), "3");
        assert_eq!(text(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }

    #[test]
    fn threads_of_one_core_come_last() {
        let numbers = |cores: &[CoreId]| cores.iter().map(|core| core.0).collect::<Vec<_>>();
        let cores: Vec<_> = [0, 1, 2, 4, 5, 6].map(CoreId).into();
        let siblings = |core: CoreId| Some(format!("{},{}", core.0 % 4, core.0 % 4 + 4));
        assert_eq!(numbers(&spread(&cores, siblings)), [0, 1, 2, 4, 5, 6]);
        assert_eq!(numbers(&spread(&cores, |core| Some(format!("{}", core.0 / 2)))), [0, 2, 4, 6, 1, 5]);
        assert_eq!(numbers(&spread(&cores, |_| None)), [0, 1, 2, 4, 5, 6]);
    }

    #[test]
    fn hugepages_of_all_sizes_count() {
        let sizes = tempfile::tempdir().unwrap();
        for (name, free) in [("hugepages-2048kB", "3\n"), ("hugepages-1048576kB", "2\n"), ("junk", "9\n")] {
            fs::create_dir(sizes.path().join(name)).unwrap();
            fs::write(sizes.path().join(name).join("free_hugepages"), free).unwrap();
        }
        let free = Hugepages::Free(3 * (2 << 20) + 2 * (1 << 30));
        let mounts =
            "proc /proc proc rw 0 0\nnodev /mnt/huge hugetlbfs rw 0 0\nnodev /dev/hugepages hugetlbfs rw 0 0\n";
        assert_eq!(hugepages_in(mounts, |directory| directory == "/dev/hugepages", sizes.path()), free);
        let refused = Hugepages::NotWritable("/dev/hugepages".to_owned());
        assert_eq!(hugepages_in(mounts, |_| false, sizes.path()), refused);
        assert_eq!(refused.free(), 0);
        let elsewhere = "nodev /hugetlbfs tmpfs rw 0 0\n";
        assert_eq!(hugepages_in(elsewhere, |_| true, sizes.path()), Hugepages::NotMounted);
    }
}
