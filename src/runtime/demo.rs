//! `thruway demo`: the forwarder between two ports of its own, with traffic of its own.
//!
//! The ports are rings in memory. A source thread is the other end of both wires: it sends a mix of
//! IPv4 and IPv6 with some frames that must be dropped, and takes back what comes out. When it ends,
//! every packet has to be accounted for.

use super::error::RuntimeError;
use super::forwarder::Running;
use super::{daemon, machine, ports};
use crate::config::{self, Config};
use crate::datapath::Isa;
use crate::drop_reason::DropReason;
use crate::generate::{GeneratedFrame, Profile};
use crate::units::{MacAddr, PortId};
use arrayvec::ArrayVec;
use dpdk::ring::{Consumer, Producer};
use dpdk::{Mbuf, Mempool, Port};
use serde_json::json;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Places in each ring.
const PLACES: u32 = 1024;

/// Packets that the source sends and takes at once.
const TRAIN: usize = 32;

/// Different frames for each port.
const FRAMES: usize = 1000;

/// Of a hundred frames, so many must be dropped.
const BAD_PERCENT: usize = 5;

/// The kinds of bad frames.
const BAD: [DropReason; 5] = [
    DropReason::BadChecksum,
    DropReason::TtlExpired,
    DropReason::MartianSource,
    DropReason::Truncated,
    DropReason::NotOurMac,
];

/// Lines are shorter than this.
const COLUMNS: usize = 100;

/// How long packets under way get to arrive when the source has stopped.
const SETTLE: Duration = Duration::from_secs(2);

/// Runs for so many seconds, printing a line each and a summary; as JSON, an object a line.
///
/// # Errors
///
/// If it cannot start, nothing was forwarded, or a packet is not accounted for.
pub fn demo(seconds: u64, json: bool) -> Result<(), RuntimeError> {
    let config = configuration()?;
    let eal = daemon::start_eal(&config, 4 * PLACES + FRAMES as u32)?;
    let mut wires = Vec::new();
    let mut devices = Vec::new();
    for name in ["demo0", "demo1"] {
        let ring = |direction: &str| dpdk::ring::create(&format!("{name}{direction}"), PLACES, None);
        let ((to_port, port_rx), (port_tx, from_port)) = (ring("rx")?, ring("tx")?);
        let failed = |source| RuntimeError::Port { name: name.to_owned(), source };
        devices.push(Port::from_rings(name, vec![port_rx], vec![port_tx]).map_err(failed)?);
        wires.push(Wire { to_port, from_port });
    }
    let pools = ports::pools(&config, 4 * PLACES + FRAMES as u32, &devices)?;
    let active = ports::start(&config, &pools, devices)?;
    let pool = pools.into_values().next().ok_or_else(|| RuntimeError::Demo("there is no packet pool".to_owned()))?;
    let frames: Vec<Vec<GeneratedFrame>> =
        active.iter().enumerate().map(|(port, active)| frames(port, active.mac)).collect();
    let mut running = daemon::start_workers(config, active, Isa::detect())?;

    let shared = Arc::new(Shared::default());
    let (source_pool, source_shared) = (pool.clone(), shared.clone());
    let source = std::thread::Builder::new()
        .name("source".to_owned())
        .spawn(move || run_source(wires, &frames, &source_pool, &source_shared))
        .map_err(RuntimeError::system("start the source thread"))?;
    let mut screen = Screen { json };
    screen.head(&running);
    let mut before = Totals::of(&running, &shared);
    for second in 1..=seconds {
        std::thread::sleep(Duration::from_secs(1));
        let now = Totals::of(&running, &shared);
        screen.second(second, &before, &now);
        before = now;
    }
    shared.stop.store(true, Relaxed);
    let settled = Instant::now();
    while !Totals::of(&running, &shared).is_at_rest() && settled.elapsed() < SETTLE {
        std::thread::sleep(Duration::from_millis(1));
    }
    shared.over.store(true, Relaxed);
    source.join().map_err(|_| RuntimeError::Demo("the source thread died: please report it".to_owned()))??;
    running.stop();
    let totals = Totals::of(&running, &shared);
    screen.summary(&running, &totals);
    let outcome = totals.check(&pool);
    drop((running, pool));
    let leftover = eal.runtime_directory();
    if let Err((_, error)) = eal.shutdown() {
        log::warn!("{error}");
    }
    // Named after this process, so nobody will use it again. Not empty, it stays.
    if let Err(error) = std::fs::remove_dir(&leftover) {
        log::debug!("{} stays: {error}", leftover.display());
    }
    outcome
}

fn configuration() -> Result<Config, RuntimeError> {
    // The source runs where the worker does not.
    let (first, worker) = machine::outer_cores()?;
    let text = format!(
        "[runtime]\nmain_core = {first}\nworker_cores = [{worker}]\nfile_prefix = \"thruway-demo-{}\"\n\
         eal_args = [\"--no-huge\", \"--no-shconf\", \"--no-telemetry\"]\n\
         [[port]]\nname = \"demo0\"\ndevice = \"net_ring_demo0\"\naddresses = [\"192.0.2.1/24\", \"2001:db8:1::1/64\"]\n\
         [[port]]\nname = \"demo1\"\ndevice = \"net_ring_demo1\"\naddresses = [\"198.51.100.1/24\", \"2001:db8:2::1/64\"]\n\
         [[neighbor]]\naddress = \"192.0.2.2\"\nmac = \"02:00:00:00:00:12\"\nport = \"demo0\"\n\
         [[neighbor]]\naddress = \"2001:db8:1::2\"\nmac = \"02:00:00:00:00:12\"\nport = \"demo0\"\n\
         [[neighbor]]\naddress = \"198.51.100.2\"\nmac = \"02:00:00:00:00:22\"\nport = \"demo1\"\n\
         [[neighbor]]\naddress = \"2001:db8:2::2\"\nmac = \"02:00:00:00:00:22\"\nport = \"demo1\"\n\
         [[route]]\nprefix = \"10.0.0.0/8\"\nvia = \"192.0.2.2\"\n\
         [[route]]\nprefix = \"10.128.0.0/9\"\nvia = \"198.51.100.2\"\n\
         [[route]]\nprefix = \"2001:db8:a::/48\"\nvia = \"2001:db8:1::2\"\n\
         [[route]]\nprefix = \"2001:db8:b::/48\"\nvia = \"2001:db8:2::2\"\n",
        std::process::id()
    );
    config::parse(&text, "demo").map_err(|errors| RuntimeError::Demo(errors.to_string()))
}

/// What comes in by a port: three quarters IPv4, and to behind the other port. Bad frames are spread evenly.
fn frames(port: usize, mac: MacAddr) -> Vec<GeneratedFrame> {
    let (v4, v6) = if port == 0 { (0x0a80_0000, 0xb) } else { (0x0a00_0000, 0xa) };
    let network = (0x2001_0db8_u128 << 32 | v6 << 16) << 64;
    let profile = Profile {
        seed: port as u64,
        destination_mac: mac,
        source_mac: MacAddr([2, 0, 0, 0, 0, 0x12 + 0x10 * port as u8]),
        destinations_v4: (0..256).map(|host| Ipv4Addr::from(v4 | host << 8)).collect(),
        destinations_v6: (0..256).map(|host| Ipv6Addr::from(network | host)).collect(),
        ipv6_percent: 25,
        bad_percent: 0,
        bad_reasons: BAD.to_vec(),
        frame_len: 64,
    };
    let spoiled = Profile { bad_percent: 100, seed: profile.seed + 2, ..profile.clone() };
    // Not every way of being bad is one of IPv6: such a frame stays good.
    let mut bad = spoiled.frames().filter(|frame| frame.reason.is_some());
    let frame = |(place, good)| if place % (100 / BAD_PERCENT) == 0 { bad.next() } else { Some(good) };
    profile.frames().take(FRAMES).enumerate().filter_map(frame).collect()
}

/// The other ends of a port's rings.
struct Wire {
    to_port: Producer,
    from_port: Consumer,
}

/// Between the source thread and the one that prints.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    over: AtomicBool,
    offered: AtomicU64,
    returned: AtomicU64,
}

/// Sends and takes back until told to stop, then only takes back until it is over.
fn run_source(
    mut wires: Vec<Wire>,
    frames: &[Vec<GeneratedFrame>],
    pool: &Mempool,
    shared: &Shared,
) -> Result<(), RuntimeError> {
    let _registered = dpdk::thread::register()?;
    let mut burst = ArrayVec::<Mbuf, TRAIN>::new();
    // Each wire sends its frames in turn, all of them.
    let mut next = vec![0; wires.len()];
    while !shared.over.load(Relaxed) {
        let mut idle = true;
        for ((wire, frames), next) in wires.iter_mut().zip(frames).zip(&mut next) {
            if !shared.stop.load(Relaxed) && wire.to_port.capacity() > 0 && pool.alloc_bulk(&mut burst, TRAIN) > 0 {
                for packet in &mut burst {
                    // No frame is longer than a buffer.
                    let _ = packet.extend_from_slice(&frames[*next % frames.len()].bytes);
                    *next += 1;
                }
                let sent = wire.to_port.enqueue(&mut burst);
                shared.offered.fetch_add(sent as u64, Relaxed);
                idle &= sent == 0;
                Mbuf::free_bulk(&mut burst);
            }
            let returned = wire.from_port.dequeue(&mut burst);
            shared.returned.fetch_add(returned as u64, Relaxed);
            idle &= returned == 0;
            Mbuf::free_bulk(&mut burst);
        }
        if idle {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    offered: u64,
    received: u64,
    sent: u64,
    dropped: u64,
    returned: u64,
    busy_cycles: u64,
}

impl Totals {
    fn of(running: &Running, shared: &Shared) -> Self {
        let (received, sent, dropped) = running.totals();
        let busy_cycles = running.workers.counters.iter().map(|worker| worker.busy_cycles.get()).sum();
        let (offered, returned) = (shared.offered.load(Relaxed), shared.returned.load(Relaxed));
        Self { offered, received, sent, dropped, returned, busy_cycles }
    }

    fn is_at_rest(&self) -> bool {
        self.offered == self.received && self.received == self.sent + self.dropped && self.sent == self.returned
    }

    fn check(&self, pool: &Mempool) -> Result<(), RuntimeError> {
        let Self { offered, received, sent, dropped, returned, .. } = *self;
        if sent == 0 {
            return Err(RuntimeError::Demo("no packet was forwarded".to_owned()));
        }
        if !self.is_at_rest() {
            return Err(RuntimeError::Demo(format!(
                "packets are missing: {offered} offered, {received} received, {sent} sent, {dropped} dropped, \
                 {returned} came back"
            )));
        }
        match pool.in_use() {
            0 => Ok(()),
            left => Err(RuntimeError::Demo(format!("{left} packets were never freed"))),
        }
    }
}

/// What the person sees. A reader who has left is no failure of the demonstration.
struct Screen {
    json: bool,
}

impl Screen {
    fn line(&self, text: &str) {
        let _ = writeln!(io::stdout().lock(), "{text}");
    }

    fn head(&mut self, running: &Running) {
        if self.json {
            return;
        }
        let workers = &running.config.runtime.worker_cores;
        self.line(&format!(
            "Two ports in memory, {} routes, one worker on core {}. A source beside it sends IPv4 and\n\
             IPv6 (3 to 1) in 64-byte frames, {BAD_PERCENT} % of them bad on purpose, and takes back what is forwarded.\n\n\
             Mpps: million packets forwarded per second (what the source can send; the worker can do more)\n\
             drops: the bad packets, and good ones that the source took back too late (queue_full)\n\
             cycles/packet: time-stamp counter cycles from receive to transmit, all included\n",
            running.config.routes.len(),
            machine::ranges(workers),
        ));
    }

    fn second(&mut self, second: u64, before: &Totals, now: &Totals) {
        let received = now.received - before.received;
        let mpps = (now.sent - before.sent) as f64 / 1e6;
        let cycles = (now.busy_cycles - before.busy_cycles) as f64 / received.max(1) as f64;
        let drops = now.dropped - before.dropped;
        self.line(&if self.json {
            json!({ "second": second, "mpps": mpps, "drops": drops, "cycles_per_packet": cycles }).to_string()
        } else {
            format!("{second:>4} s  {mpps:>7.3} Mpps  {drops:>8} drops  {cycles:>6.0} cycles/packet")
        });
    }

    fn summary(&mut self, running: &Running, totals: &Totals) {
        let Totals { offered, received, sent, dropped, returned, busy_cycles } = *totals;
        let cycles = busy_cycles as f64 / received.max(1) as f64;
        let dropped_for =
            |reason: DropReason| -> u64 { running.droppers().map(|worker| worker.drops(reason).get()).sum() };
        let reasons = || DropReason::ALL.iter().map(|&reason| (reason, dropped_for(reason))).filter(|(_, n)| *n > 0);
        if self.json {
            let drops: serde_json::Map<_, _> =
                reasons().map(|(reason, n)| (reason.name().to_owned(), n.into())).collect();
            let summary = json!({
                "summary": {
                    "offered": offered, "received": received, "sent": sent, "dropped": dropped, "returned": returned,
                    "cycles_per_packet": cycles, "drops": drops, "accounted_for": totals.is_at_rest(),
                }
            });
            return self.line(&summary.to_string());
        }
        self.line(&format!(
            "\n{offered} offered = {sent} forwarded + {dropped} dropped{}",
            if totals.is_at_rest() { ": every packet is accounted for" } else { "? Packets are MISSING" }
        ));
        for (reason, count) in reasons() {
            self.line(&reason_line(reason, count));
        }
        let bursts = running.workers.counters.iter().map(|worker| worker.busy_polls.get()).sum::<u64>();
        self.line(&format!(
            "  {:.1} packets a burst, {cycles:.0} cycles a packet; the more packets a burst, the fewer cycles each",
            received as f64 / bursts.max(1) as f64
        ));
        for position in 0..running.config.ports.len() {
            let (rx, tx) = running.port_packets(PortId(position as u16));
            let name = &running.config.ports[position].name;
            self.line(&format!("  port {name}: received {rx}, sent {tx}"));
        }
    }
}

/// How often packets were dropped for a reason and what it means, on a line of less than [`COLUMNS`].
fn reason_line(reason: DropReason, count: u64) -> String {
    let explanation = reason.explanation().trim();
    // The sentence, without the documents it rests on.
    let meaning = explanation.split(" (RFC").next().unwrap_or(explanation).trim_end_matches('.');
    let start = format!("{count:>10} {:<14} ", reason.name());
    let room = COLUMNS.saturating_sub(start.len());
    let meaning = if meaning.len() < room { meaning } else { meaning.split([':', ',']).next().unwrap_or(meaning) };
    format!("{start}{meaning}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_frames_are_bad_as_is_said() {
        for port in 0..2 {
            let frames = frames(port, MacAddr([0; 6]));
            assert_eq!(frames.len(), FRAMES);
            let bad: Vec<_> = frames.iter().filter_map(|frame| frame.reason).collect();
            assert_eq!(bad.len() * 100, FRAMES * BAD_PERCENT);
            assert!(BAD.iter().all(|reason| bad.contains(reason)), "{bad:?}");
        }
    }

    #[test]
    fn reasons_fit_their_line() {
        for &reason in DropReason::ALL {
            let line = reason_line(reason, 99_999_999);
            assert!(line.len() < COLUMNS && !line.contains("RFC") && line.len() > 30, "{line}");
        }
        assert_eq!(
            reason_line(DropReason::BadChecksum, 7),
            "         7 bad_checksum   The IPv4 header checksum is wrong"
        );
    }
}
