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
        Command::Run(args) => forwarder::run(args, cli),
        #[cfg(feature = "dpdk")]
        Command::Demo(args) => forwarder::demo(args),
        #[cfg(feature = "dpdk")]
        Command::Bench(args) => forwarder::bench(args),
        Command::Check(args) => cli::check(args),
        Command::Show(args) => cli::show(cli.socket(), cli.color, args),
        Command::Route(command) => cli::route(cli.socket(), command),
        Command::Neighbor(command) => cli::neighbor(cli.socket(), command),
        Command::Qdisc(command) => cli::qdisc(cli.socket(), command),
        Command::Bql(command) => cli::bql(cli.socket(), command),
        Command::Police(command) => cli::police(cli.socket(), command),
        Command::Port(command) => cli::port(cli.socket(), command),
        Command::Reload => cli::reload(cli.socket()),
        Command::Completions { shell } => cli::completions(*shell),
        Command::Man => cli::man(),
    }
}

/// The commands that forward packets.
#[cfg(feature = "dpdk")]
mod forwarder {
    use std::time::Duration;
    use thruway::cli::{
        BenchArgs, BenchSuite, BqlArgs, Cli, DemoArgs, Failure, ForwardArgs, MeasureArgs, QdiscArgs, QueueArgs, RunArgs,
    };
    use thruway::config;
    use thruway::runtime::bench::{self, BqlOptions, Case, ForwardOptions, QdiscOptions, QueueOptions, Suite};
    use thruway::runtime::{self, RuntimeError};

    fn failed(error: RuntimeError) -> Failure {
        Failure::Running(error.to_string())
    }

    pub fn run(args: &RunArgs, cli: &Cli) -> Result<(), Failure> {
        let mut config = config::load(&args.config).map_err(Failure::Config)?;
        if let Some(socket) = &cli.socket {
            config.control.socket.clone_from(socket);
        }
        runtime::run(config, &args.config).map_err(failed)
    }

    pub fn demo(args: &DemoArgs) -> Result<(), Failure> {
        runtime::demo(args.seconds, args.json).map_err(failed)
    }

    pub fn bench(args: &BenchArgs) -> Result<(), Failure> {
        let (suites, output) = match &args.suite {
            BenchSuite::Forward(args) => (vec![forward(args)?], &args.output),
            BenchSuite::Queue(args) => (vec![queue(args)], &args.output),
            BenchSuite::Qdisc(args) => (vec![qdisc(args)], &args.output),
            BenchSuite::Bql(args) => (vec![bql(args)], &args.output),
            BenchSuite::All(output) => {
                let all = [
                    forward(&Default::default())?,
                    queue(&Default::default()),
                    qdisc(&Default::default()),
                    bql(&Default::default()),
                ];
                (all.into(), output)
            }
            BenchSuite::Measure(args) => return measure(args),
        };
        bench::run(&suites, output.json.as_deref()).map_err(failed)
    }

    fn forward(args: &ForwardArgs) -> Result<Suite, Failure> {
        let cases = args.case.iter().map(|name| cases(name)).collect::<Result<Vec<_>, _>>()?.concat();
        let duration = Duration::from_millis(args.milliseconds);
        Ok(Suite::Forward(ForwardOptions { cases, starts: args.starts, duration }))
    }

    fn queue(args: &QueueArgs) -> Suite {
        Suite::Queue(QueueOptions { rounds: args.rounds, duration: Duration::from_millis(args.milliseconds) })
    }

    fn qdisc(args: &QdiscArgs) -> Suite {
        let duration = Duration::from_millis(args.milliseconds);
        let bursts = args.burst.map_or_else(|| vec![32, 1], |burst| vec![usize::from(burst)]);
        Suite::Qdisc(QdiscOptions { rounds: args.rounds, duration, work: args.work, bursts })
    }

    fn bql(args: &BqlArgs) -> Suite {
        let duration = Duration::from_millis(args.milliseconds);
        Suite::Bql(BqlOptions { rounds: args.rounds, duration, doorbell: Duration::from_nanos(args.doorbell) })
    }

    fn measure(args: &MeasureArgs) -> Result<(), Failure> {
        let duration = Duration::from_millis(args.milliseconds);
        for case in cases(&args.case)? {
            let measured = bench::measure(case, &args.files, args.baseline, duration).map_err(failed)?;
            println!("{}", serde_json::json!(measured));
        }
        Ok(())
    }

    fn cases(name: &str) -> Result<Vec<Case>, Failure> {
        if name == "all" {
            return Ok(Case::ALL.to_vec());
        }
        let case = Case::ALL.into_iter().find(|case| case.name() == name);
        let names = || Case::ALL.map(Case::name).join(", ");
        case.map(|case| vec![case])
            .ok_or_else(|| Failure::Usage(format!("{name} cannot be measured (what can: {}, all)", names())))
    }
}
