//! The command line: what a person types, turned into requests, and what the daemon answers, turned
//! into something to read.
//!
//! It sees the daemon only through the control protocol's types. Wrong words are refused before
//! anything is sent; every failure is one line on standard error and has its exit code
//! ([`Failure`]).

mod args;
mod client;
mod failure;
mod police;
mod show;
mod table;
mod view;
mod words;

pub use args::{
    BenchArgs, BenchOutput, BenchSuite, BqlArgs, BqlCommand, CheckArgs, Cli, Color, Command, DemoArgs, ForwardArgs,
    MeasureArgs, NeighborCommand, PoliceCommand, PortCommand, QdiscArgs, QdiscCommand, QueueArgs, RouteCommand,
    RunArgs, ShowArgs,
};
pub use failure::Failure;

use crate::config;
use crate::control::protocol::{BqlRequest, DEFAULT_SOCKET, PortRequest, QdiscRequest, Request, RouteRequest};
use clap::{CommandFactory, Parser};
use std::io::Write;
use std::path::Path;

impl Cli {
    /// Reads the command line of this process.
    ///
    /// # Errors
    /// [`Failure::Usage`] for what cannot be understood; [`Failure::Help`] when help or the version
    /// was asked for.
    pub fn read() -> Result<Self, Failure> {
        Self::try_parse().map_err(|error| Failure::from_clap(&error))
    }

    /// The control socket of the daemon to talk to.
    pub fn socket(&self) -> &Path {
        self.socket.as_deref().unwrap_or(Path::new(DEFAULT_SOCKET))
    }

    /// Starts logging to standard error. `RUST_LOG` goes before `-v` and `-q`.
    pub fn start_logging(&self) {
        let style = match self.color {
            Color::Auto => env_logger::WriteStyle::Auto,
            Color::Always => env_logger::WriteStyle::Always,
            Color::Never => env_logger::WriteStyle::Never,
        };
        let mut builder = env_logger::Builder::new();
        // What DPDK calls informative is noise to all but those who ask for more.
        let of_dpdk = if self.verbose == 0 { self.log_level().min(log::LevelFilter::Warn) } else { self.log_level() };
        builder.filter_level(self.log_level()).filter_module("dpdk", of_dpdk).parse_default_env().write_style(style);
        // Fails only when a logger is there already, which then is the one to use.
        let _ = builder.try_init();
    }

    /// What is worth logging: where figures are printed, only what disturbs them.
    fn log_level(&self) -> log::LevelFilter {
        let usual = match &self.command {
            #[cfg(feature = "dpdk")]
            Command::Demo(_) | Command::Bench(_) => -1,
            _ => 0,
        };
        match usual + i16::from(self.verbose) - i16::from(self.quiet) {
            ..=-3 => log::LevelFilter::Off,
            -2 => log::LevelFilter::Error,
            -1 => log::LevelFilter::Warn,
            0 => log::LevelFilter::Info,
            1 => log::LevelFilter::Debug,
            2.. => log::LevelFilter::Trace,
        }
    }
}

/// `thruway check`: says of a configuration file whether it is right, without touching the machine.
///
/// # Errors
/// [`Failure::Config`] with everything that is wrong.
pub fn check(args: &CheckArgs) -> Result<(), Failure> {
    config::load(&args.file).map_err(Failure::Config)?;
    writeln!(std::io::stdout().lock(), "{}: no errors", args.file.display())?;
    Ok(())
}

/// `thruway show`: prints a report of the daemon, once or again and again.
///
/// # Errors
/// The daemon cannot be reached or refuses; standard output cannot be written.
pub fn show(socket: &Path, color: Color, args: &ShowArgs) -> Result<(), Failure> {
    show::show(socket, color, args)
}

/// `thruway route`: changes a route, or says which way a packet takes.
///
/// # Errors
/// The words make no sense, the daemon cannot be reached or refuses.
pub fn route(socket: &Path, command: &RouteCommand) -> Result<(), Failure> {
    let request = match command {
        RouteCommand::Add { words } => RouteRequest::Add(words::route(words)?),
        RouteCommand::Replace { words } => RouteRequest::Replace(words::route(words)?),
        RouteCommand::Del { words } => RouteRequest::Del(words::route_selector(words)?),
        RouteCommand::Get { address, json } => return show::route_get(socket, *address, *json),
    };
    change(socket, &Request::Route(request))
}

/// `thruway neighbor`: changes a neighbour.
///
/// # Errors
/// As [`route`].
pub fn neighbor(socket: &Path, command: &NeighborCommand) -> Result<(), Failure> {
    change(socket, &Request::Neighbor(words::neighbor(command)?))
}

/// `thruway qdisc`: tunes qdiscs.
///
/// # Errors
/// As [`route`].
pub fn qdisc(socket: &Path, command: &QdiscCommand) -> Result<(), Failure> {
    let QdiscCommand::Change { words } = command;
    change(socket, &Request::Qdisc(QdiscRequest::Change(words::qdisc_change(words)?)))
}

/// `thruway bql`: tunes byte limits.
///
/// # Errors
/// As [`route`].
pub fn bql(socket: &Path, command: &BqlCommand) -> Result<(), Failure> {
    let BqlCommand::Change { words } = command;
    change(socket, &Request::Bql(BqlRequest::Change(words::bql_change(words)?)))
}

/// `thruway police`: adds, changes or removes a policer.
///
/// # Errors
/// As [`route`].
pub fn police(socket: &Path, command: &PoliceCommand) -> Result<(), Failure> {
    change(socket, &Request::Police(police::police(command)?))
}

/// `thruway port`: takes a port up or down.
///
/// # Errors
/// As [`route`].
pub fn port(socket: &Path, command: &PortCommand) -> Result<(), Failure> {
    let PortCommand::Set { words } = command;
    change(socket, &Request::Port(PortRequest::Set(words::port_setting(words)?)))
}

/// `thruway reload`: has the daemon read its configuration again.
///
/// # Errors
/// As [`route`].
pub fn reload(socket: &Path) -> Result<(), Failure> {
    change(socket, &Request::Reload {})
}

/// `thruway completions`: prints a script for a shell.
///
/// # Errors
/// Standard output cannot be written.
pub fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "thruway", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}

/// `thruway man`: prints the manual page, in roff.
///
/// # Errors
/// Standard output cannot be written.
pub fn man() -> Result<(), Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    Ok(std::io::stdout().write_all(&page)?)
}

fn change(socket: &Path, request: &Request) -> Result<(), Failure> {
    request.check().map_err(|bad| Failure::Usage(bad.to_string()))?;
    client::ask(socket, request).map(|_| ())
}
