//! `thruway run`: start, serve, stop.

use super::active::ActivePort;
use super::egress::Egress;
use super::error::RuntimeError;
use super::forwarder::Running;
use super::plan::{self, Pages, PoolPlan};
use super::policing::{self, Policers};
use super::reload::Source;
use super::workers::Workers;
use super::{machine, notify, ports};
use crate::config::Config;
use crate::control::backend::Forwarder;
use crate::control::server::Server;
use crate::datapath::Isa;
use crate::tables::Tables;
use dpdk::{Eal, EalError};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How often the workers are looked after.
const CHECK: Duration = Duration::from_millis(500);

/// Runs the forwarder until SIGINT or SIGTERM. At SIGHUP it reads `file`, from which `config` came, again. Blocks the
/// calling thread, which becomes the control thread.
///
/// # Errors
///
/// If it cannot start, or a worker dies.
pub fn run(config: Config, file: &Path) -> Result<(), RuntimeError> {
    let signals = Signals::catch()?;
    let mut server = Server::bind(&config.control.socket, config.control.mode, config.control.group.as_deref())?;
    server.watch(signals.stream).map_err(RuntimeError::system("watch for signals"))?;

    let eal = start_eal(&config, 0)?;
    let source = Source { file: file.to_owned(), loaded: config.clone() };
    let mut running = start(config, Isa::detect(), 0)?;
    running.source = Some(source);
    log::info!("ready");
    notify::notify("READY=1");

    let outcome = serve(&mut server, &mut running, &signals.stop, &signals.hangup);
    notify::notify("STOPPING=1");
    drop(server);
    running.stop();
    let (received, sent, dropped) = running.totals();
    if let Err(error) = writeln!(io::stdout(), "received {received} packets, sent {sent}, dropped {dropped}") {
        log::warn!("cannot print the totals: {error}");
    }
    drop(running);
    if let Err((_, error)) = eal.shutdown() {
        log::warn!("{error}");
    }
    outcome
}

/// Starts DPDK as a configuration asks for it, with room for `extra` packets that drivers keep.
pub(super) fn start_eal(config: &Config, extra: u32) -> Result<Eal, RuntimeError> {
    let allowed = machine::allowed_cores()?;
    let cores = config.runtime.worker_cores.iter().chain([&config.runtime.main_core]);
    if let Some(&core) = cores.into_iter().find(|core| !allowed.contains(core)) {
        return Err(RuntimeError::NoSuchCore { core, allowed: machine::ranges(&allowed) });
    }
    let pool = PoolPlan::new(config, extra);
    let hugepages = machine::hugepages();
    let (arguments, pages) = plan::eal_arguments(config, &pool, hugepages.free())?;
    if pages == Pages::Plain && !config.runtime.eal_args.iter().any(|argument| argument == "--no-huge") {
        log::warn!(
            "packets are in plain pages, which costs speed: {} MiB of hugepages are needed, and {hugepages}",
            plan::memory(config, &pool, Pages::Huge)
        );
    }
    log::debug!("EAL arguments: {}", arguments.join(" "));
    Eal::init(&arguments).map_err(|error| match error {
        EalError::PrefixTaken { .. } => RuntimeError::PrefixTaken { prefix: config.runtime.file_prefix.clone() },
        error => error.into(),
    })
}

/// Brings up ports, tables and workers. DPDK runs.
pub(super) fn start(config: Config, isa: Isa, extra: u32) -> Result<Running, RuntimeError> {
    let devices = ports::open(&config)?;
    let pools = ports::pools(&config, extra, &devices)?;
    let active = ports::start(&config, &pools, devices)?;
    start_workers(config, active, isa)
}

/// Brings up tables, qdiscs and workers on ports that run.
pub(super) fn start_workers(config: Config, ports: Vec<ActivePort>, isa: Isa) -> Result<Running, RuntimeError> {
    let mut tables = Tables::new(ports::for_tables(&config, &ports), Box::new(std::thread::yield_now))?;
    load(&mut tables, &config)?;
    let policers = Policers::new(&config.policers, config.runtime.worker_cores.len())?;
    tables.set_policing(policers.policing(ports.len()));
    let egress = Egress::new(&config, &ports)?;
    egress.follow_links(&ports);
    let workers = Workers::start(&config, &ports, &egress, &tables.current(), isa)?;
    let count = workers.counters.len();
    log::info!("{count} worker{}, {} validation", if count == 1 { "" } else { "s" }, isa.name());
    Ok(Running { workers, egress, tables, policers, ports, config, source: None })
}

/// Puts a configuration's routes and neighbours in force.
fn load(tables: &mut Tables, config: &Config) -> Result<(), RuntimeError> {
    let routes = config.routes.iter().map(|route| (route.prefix, route.action));
    let neighbors = config.neighbors.iter().map(|neighbor| (neighbor.address, neighbor.mac, neighbor.port));
    Ok(tables.load(routes, neighbors)?)
}

fn serve(
    server: &mut Server,
    running: &mut Running,
    stop: &AtomicBool,
    hangup: &AtomicBool,
) -> Result<(), RuntimeError> {
    while !stop.load(Relaxed) {
        let pause = if running.policers.is_empty() { CHECK } else { policing::TICK };
        server.poll(Some(pause), running).map_err(RuntimeError::system("wait for control clients"))?;
        running.policers.tick();
        running.egress.follow_links(&running.ports);
        if let Some(core) = running.workers.dead() {
            return Err(RuntimeError::WorkerDied(core));
        }
        if hangup.swap(false, Relaxed)
            && let Err(refusal) = running.reload()
        {
            log::error!("SIGHUP: nothing is changed: {refusal}");
        }
    }
    Ok(())
}

/// The signals that end it, made to wake the control loop.
struct Signals {
    stop: Arc<AtomicBool>,
    hangup: Arc<AtomicBool>,
    stream: UnixStream,
}

impl Signals {
    fn catch() -> Result<Self, RuntimeError> {
        let failed = || RuntimeError::system("catch signals");
        let (stream, wake) = UnixStream::pair().map_err(failed())?;
        let (stop, hangup): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
        for (signal, flag) in [(SIGINT, &stop), (SIGTERM, &stop), (SIGHUP, &hangup)] {
            signal_hook::flag::register(signal, flag.clone()).map_err(failed())?;
            let wake = wake.try_clone().map_err(failed())?;
            signal_hook::low_level::pipe::register(signal, wake).map_err(failed())?;
        }
        Ok(Self { stop, hangup, stream })
    }
}
