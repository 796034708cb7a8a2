//! How a command can fail, what is said of it, and the exit code.

use crate::config::ConfigErrors;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// Help or the version was asked for: this is it. Exit code 0.
    Help(String),
    /// It failed while running, or the daemon refused. Exit code 1.
    Running(String),
    /// Standard output cannot be written. Exit code 1, but 0 when its reader has left.
    Output(io::Error),
    /// The command line makes no sense. Exit code 2.
    Usage(String),
    /// The configuration is wrong. Exit code 2.
    Config(ConfigErrors),
    /// The daemon cannot be reached. Exit code 3.
    Unreachable(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl Failure {
    /// The exit code a shell sees.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Help(_) => 0,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Running(_) | Self::Output(_) => 1,
            Self::Usage(_) | Self::Config(_) => 2,
            Self::Unreachable(_) => 3,
        }
    }

    /// Says what failed on standard error (help goes to standard output) and gives the exit code.
    pub fn report(&self) -> ExitCode {
        // With nowhere left to write to, the exit code has to do.
        let _ = match self {
            Self::Help(text) => io::stdout().write_all(text.as_bytes()),
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Self::Output(error) => writeln!(io::stderr(), "thruway: cannot write to standard output: {error}"),
            Self::Config(errors) => writeln!(io::stderr(), "{errors}"),
            Self::Running(sentence) | Self::Usage(sentence) | Self::Unreachable(sentence) => {
                writeln!(io::stderr(), "thruway: {sentence}")
            }
        };
        ExitCode::from(self.exit_code())
    }

    /// What clap says, in one line.
    pub(super) fn from_clap(error: &clap::Error) -> Self {
        use clap::error::{ContextKind, ContextValue, ErrorKind};
        let text = error.render().to_string();
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            return Self::Help(text);
        }
        if let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) =
            (error.kind(), error.get(ContextKind::InvalidSubcommand))
            && let Some(sentence) = known_elsewhere(&help_words(&text), word)
        {
            return Self::Usage(sentence);
        }
        let help = help_command(&text);
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return Self::Usage(format!("the command is incomplete: a subcommand must follow (see {help})"));
        }
        let cut = |from: &str| text.find(from).unwrap_or(text.len());
        let message = text.get(..cut("\n\nUsage:").min(cut("\n\nFor more information"))).unwrap_or(&text);
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let words: Vec<_> = message.split_whitespace().collect();
        Self::Usage(format!("{} (see {help})", words.join(" ")))
    }
}

/// What there is to say of a subcommand that does not exist where it stands, but that people may look for there.
fn known_elsewhere(command: &[&str], word: &str) -> Option<String> {
    const NO_COMMANDS: [&str; 6] = ["top", "capture", "trace", "gen", "rfc2544", "doctor"];
    const NO_SUITES: [&str; 1] = ["police"];
    let not_yet = |name: &str| Some(format!("not supported yet: {name}"));
    match (command, word) {
        (["thruway"], word) if NO_COMMANDS.contains(&word) => not_yet(word),
        (["thruway", "bench"], word) if NO_SUITES.contains(&word) => not_yet(&format!("bench {word}")),
        (["thruway", "route"], "show" | "list" | "ls") => {
            Some("routes are listed elsewhere: see thruway show routes".to_owned())
        }
        (["thruway", "neighbor"], "show" | "list" | "ls") => {
            Some("neighbours are listed elsewhere: see thruway show neighbors".to_owned())
        }
        _ => None,
    }
}

/// The command that explains the one whose usage clap's text gives.
fn help_command(text: &str) -> String {
    format!("{} --help", help_words(text).join(" "))
}

/// The words of the command whose usage clap's text gives.
fn help_words(text: &str) -> Vec<&str> {
    let usage = text.split("Usage:").nth(1).and_then(|rest| rest.lines().next()).unwrap_or("thruway");
    let is_name = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
    usage.split_whitespace().take_while(is_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    #[test]
    fn what_clap_says_becomes_one_line() {
        for (words, part) in [
            (&["thruway"][..], "subcommand must follow (see thruway --help)"),
            (&["thruway", "route"], "subcommand must follow (see thruway route --help)"),
            (&["thruway", "route", "add"], "provided: <ROUTE>... (see thruway route add --help)"),
            (&["thruway", "frobnicate"], "'frobnicate' (see thruway --help)"),
            (&["thruway", "trace", "-c", "5"], "not supported yet: trace"),
            (&["thruway", "police", "change"], "provided: <POLICER>..."),
            #[cfg(feature = "dpdk")]
            (&["thruway", "bench", "police", "--json"], "not supported yet: bench police"),
            #[cfg(feature = "dpdk")]
            (&["thruway", "bench", "trace"], "unrecognized subcommand 'trace'"),
            (&["thruway", "route", "list"], "see thruway show routes"),
            (&["thruway", "route", "show"], "see thruway show routes"),
            (&["thruway", "neigh", "show"], "see thruway show neighbors"),
            (&["thruway", "-v"], "subcommand"),
            (&["thruway", "show"], "required arguments were not provided: <WHAT>"),
            (&["thruway", "show", "teapots"], "ports, queues"),
            (&["thruway", "--frobnicate"], "unexpected argument '--frobnicate'"),
            (&["thruway", "show", "ports", "--color", "blue"], "possible values: auto, always, never"),
            (&["thruway", "route", "get", "10.0.0"], "invalid IP address"),
        ] {
            let failure = Failure::from_clap(&Cli::try_parse_from(words).unwrap_err());
            let Failure::Usage(sentence) = &failure else { panic!("{failure:?}") };
            assert!(sentence.contains(part), "{sentence}");
            assert!(!sentence.contains('\n') && !sentence.contains("Usage"), "{sentence}");
            assert_eq!(failure.exit_code(), 2);
        }
        let help = Failure::from_clap(&Cli::try_parse_from(["thruway", "--help"]).unwrap_err());
        assert_eq!(help.exit_code(), 0);
        let Failure::Help(text) = help else { panic!("{help:?}") };
        assert!(!text.contains("rfc2544"), "{text}");
    }
}
