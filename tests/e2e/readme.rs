//! The README's example of two hosts, word for word.

use crate::namespace::command;
use crate::process::{Home, PROGRAM, totals};
use std::path::Path;
use std::process::Command;

/// The shell commands of the chapter.
fn commands() -> String {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let (_, chapter) = readme.split_once("\n## Forward between two veth pairs\n").unwrap();
    let (chapter, _) = chapter.split_once("\n## ").unwrap();
    let blocks = chapter.split("```sh\n").skip(1).map(|block| block.split_once("```").unwrap().0);
    blocks.collect::<Vec<_>>().join("\n")
}

/// Runs them in namespaces for network and mounts, where nobody else's names are and which take with them
/// whatever is left.
pub fn works() {
    let home = Home::new("", "");
    let script = format!(
        "set -e\nmkdir -p /run/netns\nmount -t tmpfs none /run/netns\ntrap 'kill $(jobs -p) || true' EXIT\n{}\n\
         trap - EXIT\nkill %1\nwait %1\n",
        commands()
    );
    let programs = Path::new(PROGRAM).parent().unwrap();
    let path = std::env::join_paths(
        [programs.to_owned()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut shell = Command::new("timeout");
    shell.args(["60", "unshare", "--net", "--mount", "bash", "-c", &script]).current_dir(env!("CARGO_MANIFEST_DIR"));
    // Away from the forwarders of others.
    shell.env("PATH", path.unwrap()).env("RUNTIME_DIRECTORY", home.path(""));
    let output = command(&mut shell);
    assert_eq!(output.matches(" ttl=63 ").count(), 6, "three answers of each family: {output}");
    let (received, sent, dropped) = totals(&format!("{}\n", output.lines().last().unwrap()));
    assert!(sent >= 12 && received == sent + dropped, "{output}");
}
