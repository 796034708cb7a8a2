//! The `thruway` program: what the command line says, done.

use std::process::ExitCode;
use thruway::cli::{self, Cli, Command, Failure};

fn main() -> ExitCode {
    match Cli::read().and_then(|cli| run(&cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    cli.start_logging();
    match &cli.command {
        Command::Check(args) => cli::check(args),
        Command::Show(args) => cli::show(&cli.socket, cli.color, args),
        Command::Route(command) => cli::route(&cli.socket, command),
        Command::Neighbor(command) => cli::neighbor(&cli.socket, command),
    }
}
