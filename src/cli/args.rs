//! The words and options of the command line.

use crate::control::protocol::What;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Traffic that `thruway bench forward` has unless told.
const CASES: &str = "ipv4,pfifo_fast,ipv6,mixed";

/// Process starts of `thruway bench forward` unless told.
const STARTS: u32 = 5;

/// Milliseconds of a start of `thruway bench forward` unless told.
const FORWARD_MILLISECONDS: u64 = 1000;

/// Rounds of the other suites unless told.
const ROUNDS: u32 = 15;

/// Milliseconds of a measurement of `thruway bench queue` unless told.
const QUEUE_MILLISECONDS: u64 = 10;

/// How often `thruway bench bql` measures unless told, and how many milliseconds each time.
const BQL_ROUNDS: u32 = 5;
const BQL_MILLISECONDS: u64 = 200;

/// Nanoseconds of a doorbell in `thruway bench bql` unless told: about those of a write to a card.
const DOORBELL: u64 = 100;

/// Milliseconds of a measurement of `thruway bench qdisc` unless told.
const QDISC_MILLISECONDS: u64 = 20;

/// Heading of the options that every command has.
const GLOBAL: &str = "Global options";

/// A poll-mode L3 forwarder on DPDK.
#[derive(Clone, Debug, Parser)]
#[command(name = "thruway", version, max_term_width = 100)]
pub struct Cli {
    /// The control socket: of the daemon to talk to, or for `run` instead of the configuration's
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Log more; twice for everything
    #[arg(short, long, global = true, help_heading = GLOBAL, action = ArgAction::Count)]
    pub verbose: u8,
    /// Log less; twice for errors only, three times for nothing
    #[arg(short, long, global = true, help_heading = GLOBAL, action = ArgAction::Count)]
    pub quiet: u8,
    /// Colours on a terminal
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Run the forwarder in the foreground
    #[cfg(feature = "dpdk")]
    Run(RunArgs),
    /// Forward between two ports in memory, with traffic of its own: needs no card, no root, no configuration
    #[cfg(feature = "dpdk")]
    Demo(DemoArgs),
    /// Measure forwarding, and its parts, on this machine
    #[cfg(feature = "dpdk")]
    Bench(BenchArgs),
    /// Check a configuration file without touching the machine
    Check(CheckArgs),
    /// Show what the daemon knows
    Show(ShowArgs),
    /// Change routes, or ask which way a packet takes
    #[command(subcommand)]
    Route(RouteCommand),
    /// Change neighbours
    #[command(subcommand, visible_alias = "neigh")]
    Neighbor(NeighborCommand),
    /// Tune qdiscs while they work
    #[command(subcommand)]
    Qdisc(QdiscCommand),
    /// Tune byte limits while they work
    #[command(subcommand)]
    Bql(BqlCommand),
    /// Add, change or remove policers while they work
    #[command(subcommand)]
    Police(PoliceCommand),
    /// Take ports up or down
    #[command(subcommand)]
    Port(PortCommand),
    /// Have the daemon read its configuration file again: routes, neighbours, policers, the limit and bypass of qdiscs,
    /// byte limits
    Reload,
    /// Print a shell's completions of this command line
    Completions {
        /// For which shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page
    Man,
}

/// Arguments of `thruway run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The configuration file
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
}

/// Arguments of `thruway demo`.
#[derive(Clone, Debug, Args)]
pub struct DemoArgs {
    /// How many seconds to forward
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `thruway bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// What to measure.
    #[command(subcommand)]
    pub suite: BenchSuite,
}

/// What `thruway bench` can measure.
#[derive(Clone, Debug, Subcommand)]
pub enum BenchSuite {
    /// The forwarding path, beside dpdk-testpmd where that is installed
    Forward(ForwardArgs),
    /// The ring between threads, beside rte_ring and others
    Queue(QueueArgs),
    /// The lockless qdisc: several threads that send to one transmit queue
    Qdisc(QdiscArgs),
    /// Byte limits: packets per doorbell, and what urgent packets gain
    Bql(BqlArgs),
    /// All of these, one after the other, as each is measured by default
    All(BenchOutput),
    /// One process's part of it, as JSON
    #[command(hide = true)]
    Measure(MeasureArgs),
}

/// Arguments of `thruway bench forward`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ForwardArgs {
    /// What to forward: ipv4, pfifo_fast, police, ipv6, mixed, bad, scalar, full-ipv4, full-ipv6, or all
    #[arg(long, value_name = "CASE,...", value_delimiter = ',', default_value = CASES)]
    pub case: Vec<String>,
    /// How often each program is started; the figures are medians over the starts
    #[arg(long, value_name = "N", default_value_t = STARTS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub starts: u32,
    /// How many milliseconds each process is watched
    #[arg(long, value_name = "N", default_value_t = FORWARD_MILLISECONDS, value_parser = clap::value_parser!(u64).range(100..=600_000))]
    pub milliseconds: u64,
    /// Where the figures go.
    #[command(flatten)]
    pub output: BenchOutput,
}

impl Default for ForwardArgs {
    fn default() -> Self {
        let case = CASES.split(',').map(str::to_owned).collect();
        Self { case, starts: STARTS, milliseconds: FORWARD_MILLISECONDS, output: BenchOutput::default() }
    }
}

/// Arguments of `thruway bench queue`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct QueueArgs {
    /// How often everything is measured; the figures are medians
    #[arg(long, value_name = "N", default_value_t = ROUNDS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// How many milliseconds each measurement takes
    #[arg(long, value_name = "N", default_value_t = QUEUE_MILLISECONDS, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub milliseconds: u64,
    /// Where the figures go.
    #[command(flatten)]
    pub output: BenchOutput,
}

impl Default for QueueArgs {
    fn default() -> Self {
        Self { rounds: ROUNDS, milliseconds: QUEUE_MILLISECONDS, output: BenchOutput::default() }
    }
}

/// Arguments of `thruway bench qdisc`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct QdiscArgs {
    /// How often everything is measured; the figures are medians
    #[arg(long, value_name = "N", default_value_t = ROUNDS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// How many milliseconds each measurement takes
    #[arg(long, value_name = "N", default_value_t = QDISC_MILLISECONDS, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub milliseconds: u64,
    /// Nanoseconds of work on each packet before it is sent
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub work: u32,
    /// Packets that are sent together [default: 32, and then 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub burst: Option<u8>,
    /// Where the figures go.
    #[command(flatten)]
    pub output: BenchOutput,
}

/// Arguments of `thruway bench bql`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct BqlArgs {
    /// How often everything is measured; the figures are medians
    #[arg(long, value_name = "N", default_value_t = BQL_ROUNDS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// How many milliseconds each measurement takes
    #[arg(long, value_name = "N", default_value_t = BQL_MILLISECONDS, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub milliseconds: u64,
    /// Nanoseconds that it costs to tell the device of new packets
    #[arg(long, value_name = "NS", default_value_t = DOORBELL, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    pub doorbell: u64,
    /// Where the figures go.
    #[command(flatten)]
    pub output: BenchOutput,
}

impl Default for BqlArgs {
    fn default() -> Self {
        let output = BenchOutput::default();
        Self { rounds: BQL_ROUNDS, milliseconds: BQL_MILLISECONDS, doorbell: DOORBELL, output }
    }
}

impl Default for QdiscArgs {
    fn default() -> Self {
        let output = BenchOutput::default();
        Self { rounds: ROUNDS, milliseconds: QDISC_MILLISECONDS, work: 0, burst: None, output }
    }
}

/// Where the figures of `thruway bench` go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct BenchOutput {
    /// Write the figures to FILE as JSON; without FILE, print them instead of the tables
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// Arguments of the part of `thruway bench forward` that runs in a process of its own.
#[derive(Clone, Debug, Args)]
pub struct MeasureArgs {
    /// What to forward
    pub case: String,
    /// Where its capture files are
    #[arg(long)]
    pub files: PathBuf,
    /// How long
    #[arg(long)]
    pub milliseconds: u64,
    /// Without what the case is about
    #[arg(long)]
    pub baseline: bool,
}

/// Arguments of `thruway check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// The configuration file
    pub file: PathBuf,
}

/// Arguments of `thruway show`.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// ports, queues, police, drops, cores, routes, neighbors, version or config
    #[arg(value_parser = what, value_name = "WHAT")]
    pub what: What,
    /// Print JSON and nothing else; with --watch one line each time
    #[arg(long)]
    pub json: bool,
    /// Show it again every SECS seconds (1 unless given), with counters per second as well
    #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds)]
    pub watch: Option<Duration>,
}

/// What to do with a route.
#[derive(Clone, Debug, Subcommand)]
pub enum RouteCommand {
    /// Add a route: PREFIX via ADDR [dev PORT], or blackhole PREFIX
    Add {
        /// PREFIX via ADDR [dev PORT], or blackhole PREFIX
        #[arg(required = true, value_name = "ROUTE")]
        words: Vec<String>,
    },
    /// Add a route, or put it in place of the one of this prefix
    Replace {
        /// PREFIX via ADDR [dev PORT], or blackhole PREFIX
        #[arg(required = true, value_name = "ROUTE")]
        words: Vec<String>,
    },
    /// Remove a route: PREFIX
    #[command(alias = "delete")]
    Del {
        /// PREFIX [via ADDR] [dev PORT], or blackhole PREFIX
        #[arg(required = true, value_name = "ROUTE")]
        words: Vec<String>,
    },
    /// Say which route and neighbour a packet to ADDR takes
    Get {
        /// Where the packet goes
        #[arg(value_name = "ADDR")]
        address: IpAddr,
        /// Print JSON and nothing else
        #[arg(long)]
        json: bool,
    },
}

/// What to do with a neighbour.
#[derive(Clone, Debug, Subcommand)]
pub enum NeighborCommand {
    /// Add a neighbour: ADDR lladdr MAC dev PORT
    Add {
        /// ADDR lladdr MAC dev PORT
        #[arg(required = true, value_name = "NEIGHBOR")]
        words: Vec<String>,
    },
    /// Add a neighbour, or put it in place of the one of this address
    Replace {
        /// ADDR lladdr MAC dev PORT
        #[arg(required = true, value_name = "NEIGHBOR")]
        words: Vec<String>,
    },
    /// Remove a neighbour: ADDR dev PORT
    #[command(alias = "delete")]
    Del {
        /// ADDR [lladdr MAC] dev PORT
        #[arg(required = true, value_name = "NEIGHBOR")]
        words: Vec<String>,
    },
}

/// What to do with a qdisc.
#[derive(Clone, Debug, Subcommand)]
pub enum QdiscCommand {
    /// Tune those of a port, or of one transmit queue: PORT or PORT:QUEUE, then limit N, bypass on|off
    Change {
        /// PORT or PORT:QUEUE, then limit N, bypass on|off
        #[arg(required = true, value_name = "CHANGE")]
        words: Vec<String>,
    },
}

/// What to do with a byte limit.
#[derive(Clone, Debug, Subcommand)]
pub enum BqlCommand {
    /// Tune those of a port, or of one transmit queue: PORT or PORT:QUEUE, then enabled on|off, limit_min N, limit_max N,
    /// hold_time_ms N, stall_thrs_ms N
    Change {
        /// PORT or PORT:QUEUE, then enabled on|off, limit_min N, limit_max N, hold_time_ms N, stall_thrs_ms N; bytes may
        /// have a unit, such as 100k
        #[arg(required = true, value_name = "CHANGE")]
        words: Vec<String>,
    },
}

/// What to do with a policer.
#[derive(Clone, Debug, Subcommand)]
pub enum PoliceCommand {
    /// Add a policer behind the others: NAME, then as in `tc action police`, and for which packets
    Add {
        /// NAME [rate R burst B] [mtu M] [pkts_rate N pkts_burst N] [overhead N] [mpu N] [linklayer ethernet|atm]
        /// [conform-exceed EXCEED[/CONFORM]]
        /// [match [dev PORT] [ingress|egress] [src PREFIX] [dst PREFIX] [dscp N] [protocol P] [sport N[-N]] [dport N[-N]]]...;
        /// EXCEED and CONFORM are drop, pass, dscp=N or band=N
        #[arg(required = true, value_name = "POLICER", verbatim_doc_comment)]
        words: Vec<String>,
    },
    /// Change what is given of it; `match` replaces all that it had, and 0 takes a limit away
    Change {
        /// NAME and what is to be changed, as for add
        #[arg(required = true, value_name = "POLICER")]
        words: Vec<String>,
    },
    /// Remove a policer: NAME
    #[command(alias = "delete")]
    Del {
        /// NAME
        #[arg(required = true, value_name = "POLICER")]
        words: Vec<String>,
    },
}

/// What to do with a port.
#[derive(Clone, Debug, Subcommand)]
pub enum PortCommand {
    /// Take it up or down: PORT up|down
    Set {
        /// PORT up|down
        #[arg(required = true, value_name = "SETTING")]
        words: Vec<String>,
    },
}

fn what(word: &str) -> Result<What, String> {
    What::ALL.into_iter().find(|what| what.name() == word).ok_or_else(|| {
        let names = What::ALL.map(What::name).join(", ");
        format!("what can be shown: {names}")
    })
}

fn seconds(word: &str) -> Result<Duration, String> {
    let seconds = word.parse::<f64>().ok().filter(|seconds| (0.1..=86_400.0).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "a number of seconds from 0.1 to 86400 is needed; WHAT goes before --watch".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn watch_takes_seconds_or_none() {
        let watch = |words: &[&str]| {
            let all = ["thruway", "show", "ports"].iter().chain(words);
            match Cli::try_parse_from(all).map(|cli| cli.command) {
                Ok(Command::Show(args)) => Ok(args.watch),
                Ok(other) => panic!("{other:?}"),
                Err(error) => Err(error.to_string()),
            }
        };
        assert_eq!(watch(&[]), Ok(None));
        assert_eq!(watch(&["--watch"]), Ok(Some(Duration::from_secs(1))));
        assert_eq!(watch(&["--watch", "0.5", "--json"]), Ok(Some(Duration::from_millis(500))));
        for bad in ["0", "nan", "inf", "1e9", "ports", ""] {
            assert!(watch(&["--watch", bad]).is_err(), "{bad}");
        }
    }

    #[cfg(feature = "dpdk")]
    fn bench(words: &[&str]) -> Result<BenchSuite, String> {
        match Cli::try_parse_from(["thruway", "bench"].iter().chain(words)).map(|cli| cli.command) {
            Ok(Command::Bench(args)) => Ok(args.suite),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[cfg(feature = "dpdk")]
    #[test]
    fn the_queue_suite_takes_rounds_and_milliseconds() {
        let queue = |words: &[&str]| match bench(&[&["queue"], words].concat()) {
            Ok(BenchSuite::Queue(args)) => Ok((args.rounds, args.milliseconds, args.output.json)),
            other => Err(other),
        };
        assert_eq!(queue(&[]).unwrap(), (15, 10, None));
        let words = ["--rounds", "3", "--milliseconds", "7", "--json", "x.json"];
        assert_eq!(queue(&words).unwrap(), (3, 7, Some(PathBuf::from("x.json"))));
        assert_eq!(queue(&["--json"]).unwrap(), (15, 10, Some(PathBuf::from("-"))));
        for bad in [["--rounds", "0"], ["--milliseconds", "0"], ["--rounds", "x"], ["--html", "x.html"]] {
            assert!(queue(&bad).is_err(), "{bad:?}");
        }
    }

    #[cfg(feature = "dpdk")]
    #[test]
    fn the_qdisc_suite_takes_work_and_burst_as_well() {
        let qdisc = |words: &[&str]| match bench(&[&["qdisc"], words].concat()) {
            Ok(BenchSuite::Qdisc(args)) => {
                Ok((args.rounds, args.milliseconds, args.work, args.burst, args.output.json))
            }
            other => Err(other),
        };
        assert_eq!(qdisc(&[]).unwrap(), (15, 20, 0, None, None));
        let words = ["--rounds", "3", "--milliseconds", "7", "--work", "20", "--burst", "8", "--json"];
        assert_eq!(qdisc(&words).unwrap(), (3, 7, 20, Some(8), Some(PathBuf::from("-"))));
        for bad in [["--burst", "0"], ["--burst", "65"], ["--work", "-1"], ["--threads", "2"]] {
            assert!(qdisc(&bad).is_err(), "{bad:?}");
        }
        assert!(matches!(bench(&["forward"]), Ok(BenchSuite::Forward(args)) if args == ForwardArgs::default()));
        assert!(matches!(bench(&["queue"]), Ok(BenchSuite::Queue(args)) if args == QueueArgs::default()));
        assert!(matches!(bench(&["qdisc"]), Ok(BenchSuite::Qdisc(args)) if args == QdiscArgs::default()));
        assert!(matches!(bench(&["all", "--json", "x"]), Ok(BenchSuite::All(BenchOutput { json: Some(_) }))));
        assert!(bench(&["all", "--rounds", "1"]).is_err());
    }

    #[cfg(feature = "dpdk")]
    #[test]
    fn figures_are_not_hidden_among_messages() {
        let level = |words: &[&str]| Cli::try_parse_from(words).unwrap().log_level();
        assert_eq!(level(&["thruway", "run", "-c", "x.toml"]), log::LevelFilter::Info);
        assert_eq!(level(&["thruway", "demo"]), log::LevelFilter::Warn);
        assert_eq!(level(&["thruway", "demo", "-v"]), log::LevelFilter::Info);
        assert_eq!(level(&["thruway", "bench", "forward", "-q"]), log::LevelFilter::Error);
    }
}
