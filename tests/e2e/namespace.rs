//! Network namespaces: made, entered, and deleted when dropped.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;

/// A namespace of `ip netns`.
pub struct Namespace {
    pub name: String,
}

impl Namespace {
    /// Nothing if namespaces cannot be made here.
    pub fn new(name: String) -> Option<Self> {
        let made = Command::new("ip").args(["netns", "add", &name]).output().ok()?;
        made.status.success().then_some(Self { name })
    }

    /// Runs `ip` in it; must not fail.
    pub fn ip(&self, words: &str) {
        command(Command::new("ip").args(["-n", &self.name]).args(words.split_whitespace()));
    }

    /// A command that runs in it.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).args(words.split_whitespace());
        command
    }

    /// Does something on a thread that is in it. Sockets made there stay in it.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let enter = || {
            let file = File::open(format!("/run/netns/{}", self.name)).unwrap();
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        };
        std::thread::scope(|scope| scope.spawn(enter).join().unwrap())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

/// Runs a command, which must not fail. Returns what it prints.
pub fn command(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (standard, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {standard}{error}");
    standard
}
