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
        #[cfg(feature = "dpdk")]
        Command::Run(args) => {
            let config = thruway::config::load(&args.config).map_err(Failure::Config)?;
            thruway::runtime::run(config).map_err(|error| Failure::Running(error.to_string()))
        }
        Command::Check(args) => cli::check(args),
        Command::Show(args) => cli::show(&cli.socket, cli.color, args),
        Command::Route(command) => cli::route(&cli.socket, command),
        Command::Neighbor(command) => cli::neighbor(&cli.socket, command),
    }
}
