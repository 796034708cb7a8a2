//! The listening socket's place in the file system.
//!
//! A path is taken only if nobody answers there, and nobody can connect before the permissions
//! stand: the socket gets its mode and group between `bind` and `listen`. Takers of one path are
//! kept apart by a lock on its directory, so that of two that start together one is refused.

use rustix::fs::{FlockOperation, Gid, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Connections the kernel keeps for us until they are accepted.
const BACKLOG: i32 = 128;

/// How long another taker may hold the directory: it only binds.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Why the control socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Somebody answers at the path.
    #[error("another thruway answers on {path}: stop it, or give this one its own control.socket")]
    AlreadyRunning {
        /// The socket's path.
        path: PathBuf,
    },
    /// Something else has the path's name.
    #[error("{path} is in the way and is not a control socket: remove it, or set another control.socket")]
    InTheWay {
        /// The path.
        path: PathBuf,
    },
    /// The path does not fit into a socket's address.
    #[error("{path} is no path for a control socket: it must be at most 107 bytes long and have a file name")]
    BadPath {
        /// The path.
        path: PathBuf,
    },
    /// The group is not in `/etc/group`.
    #[error("there is no group {group} for the control socket: create it (groupadd {group}), or correct control.group")]
    NoSuchGroup {
        /// Its name.
        group: String,
    },
    /// Somebody holds a lock on the directory.
    #[error("{directory} stays locked by another process: stop that, or set another control.socket")]
    Locked {
        /// The socket's directory.
        directory: PathBuf,
    },
    /// A system call failed.
    #[error("cannot {what} {path}: {source}: set control.socket or give --socket")]
    System {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A listening socket that owns its path: the path goes when it is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    path: PathBuf,
    /// Device and inode, so that only our own socket is ever removed on drop.
    identity: (u64, u64),
}

impl Listener {
    /// Takes the path. The socket given is non-blocking.
    pub(super) fn bind(path: &Path, mode: u32, group: Option<&str>) -> Result<(Self, UnixListener), ControlError> {
        let group = group.map(find_group).transpose()?;
        let directory = match (path.parent(), path.file_name()) {
            (Some(parent), Some(_)) if parent.as_os_str().is_empty() => Path::new("."),
            (Some(parent), Some(_)) => parent,
            _ => return Err(ControlError::BadPath { path: path.to_owned() }),
        };
        let address = SocketAddrUnix::new(path).map_err(|_| ControlError::BadPath { path: path.to_owned() })?;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(directory)
            .map_err(|source| system("create the directory", directory, source))?;
        let _lock = lock(directory)?;
        make_way(path, &address)?;

        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(|errno| system("make a socket for", path, errno))?;
        rustix::net::bind(&socket, &address).map_err(|errno| system("bind", path, errno))?;
        let identity = identity(path).map_err(|source| system("look at", path, source))?;
        let place = Self { path: path.to_owned(), identity };
        if group.is_some() {
            rustix::fs::chown(path, None, group).map_err(|errno| system("change the group of", path, errno))?;
        }
        rustix::fs::chmod(path, Mode::from_raw_mode(mode & 0o777))
            .map_err(|errno| system("change the mode of", path, errno))?;
        rustix::net::listen(&socket, BACKLOG).map_err(|errno| system("listen on", path, errno))?;
        Ok((place, UnixListener::from(socket)))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity)
            && let Err(error) = fs::remove_file(&self.path)
        {
            log::warn!("cannot remove the control socket {}: {error}", self.path.display());
        }
    }
}

fn system(what: &'static str, path: &Path, source: impl Into<io::Error>) -> ControlError {
    ControlError::System { what, path: path.to_owned(), source: source.into() }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino()))
}

/// The lock ends when the descriptor is closed.
fn lock(directory: &Path) -> Result<OwnedFd, ControlError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptor =
        rustix::fs::open(directory, flags, Mode::empty()).map_err(|errno| system("open", directory, errno))?;
    for _ in 0..LOCK_ATTEMPTS {
        match rustix::fs::flock(&descriptor, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(descriptor),
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(LOCK_PAUSE),
            Err(errno) => return Err(system("lock", directory, errno)),
        }
    }
    Err(ControlError::Locked { directory: directory.to_owned() })
}

/// Removes a socket that nobody listens on any more; refuses anything else that has the name.
fn make_way(path: &Path, address: &SocketAddrUnix) -> Result<(), ControlError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(system("look at", path, error)),
        Ok(meta) if !meta.file_type().is_socket() => return Err(ControlError::InTheWay { path: path.to_owned() }),
        Ok(_) => {}
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let probe = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(|errno| system("make a socket for", path, errno))?;
    match rustix::net::connect(&probe, address) {
        // A full backlog is somebody too.
        Ok(()) | Err(Errno::AGAIN) => Err(ControlError::AlreadyRunning { path: path.to_owned() }),
        Err(Errno::CONNREFUSED) => {
            log::info!("removing the control socket {} that a stopped thruway left", path.display());
            fs::remove_file(path).map_err(|source| system("remove the stale socket", path, source))
        }
        Err(Errno::PROTOTYPE) => Err(ControlError::InTheWay { path: path.to_owned() }),
        Err(errno) => Err(system("ask who listens on", path, errno)),
    }
}

/// The number of a group, from its name or a number. Only `/etc/group` is asked.
fn find_group(group: &str) -> Result<Gid, ControlError> {
    if let Ok(number) = group.parse::<u32>() {
        return Ok(Gid::from_raw(number));
    }
    let file = Path::new("/etc/group");
    let text = fs::read_to_string(file).map_err(|source| system("read", file, source))?;
    group_number(&text, group).map(Gid::from_raw).ok_or_else(|| ControlError::NoSuchGroup { group: group.to_owned() })
}

/// Looks a group up in text of the form of group(5).
fn group_number(text: &str, group: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(group)).then(|| fields.nth(1).and_then(|number| number.parse().ok())).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_by_name() {
        let text = "root:x:0:\nadm:x:4:syslog,ops\nbroken\nnetdev:x:108:\n";
        assert_eq!(group_number(text, "root"), Some(0));
        assert_eq!(group_number(text, "netdev"), Some(108));
        assert_eq!(group_number(text, "ops"), None);
        assert_eq!(group_number(text, "broken"), None);
        assert!(find_group("root").is_ok());
        assert!(matches!(find_group("no-such-group"), Err(ControlError::NoSuchGroup { .. })));
    }
}
