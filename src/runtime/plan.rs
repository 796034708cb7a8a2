//! What a configuration needs of the machine: memory for packets, the EAL's arguments. Pure arithmetic.

use super::error::RuntimeError;
use crate::config::{Config, Memory, Qdisc};
use crate::datapath::buffer::BURST;
use crate::datapath::transmit;
use crate::segment::MAX_SEGMENTS;

/// Packets each thread keeps at hand, taken from the pool and not given back.
pub(super) const CACHE: u32 = 512;

/// Buffers that a driver may keep for itself, per port.
const DRIVER_RESERVE: u32 = 512;

/// Buffers of a burst of packets that wait to be cut: each as long as an IP packet can be, in the smallest buffers.
const UNCUT: u32 = BURST as u32 * 65_535_u32.div_ceil(2048);

/// Bytes in front of a frame in its buffer.
const HEADROOM: u32 = 128;

/// Bytes of a frame beyond the MTU: Ethernet header, two VLAN tags, frame check sequence.
const FRAME_OVERHEAD: u32 = 14 + 8 + 4;

/// Bytes of the smallest plain page.
const PLAIN_PAGE: u64 = 4096;

/// Bytes of a buffer beyond its data: mbuf, pool header, alignment.
const BUFFER_OVERHEAD: u32 = 256;

/// Memory of DPDK itself, in MiB: device data, rings, tables.
const EAL_RESERVE: u64 = 64;

const MIB: u64 = 1 << 20;

/// A packet pool that can never run dry: one buffer for every place where a packet can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PoolPlan {
    /// Buffers.
    pub count: u32,
    /// Bytes of each, headroom included. A whole frame of the largest MTU fits.
    pub data_room: u16,
    /// How the count comes about.
    pub arithmetic: String,
}

impl PoolPlan {
    /// For a configuration, and `extra` buffers that drivers are known to keep.
    pub fn new(config: &Config, extra: u32) -> Self {
        let sum = |bound: fn(&crate::config::Port) -> u32| config.ports.iter().map(bound).sum::<u32>();
        let rx = sum(|port| u32::from(port.rx_queues) * u32::from(port.rx_descriptors));
        let tx = sum(|port| u32::from(port.tx_queues) * u32::from(port.tx_descriptors));
        let waiting = sum(|port| match &port.qdisc {
            Qdisc::Noqueue => 0,
            Qdisc::PfifoFast(pfifo) => u32::from(port.tx_queues) * transmit::places(pfifo.limit.into()) as u32,
        });
        // Each place may be taken by a super-packet.
        let merged = if config.ports.iter().any(|port| port.gro) { MAX_SEGMENTS as u32 } else { 1 };
        let waiting = waiting * merged;
        let uncut = sum(|port| if port.gro { u32::from(port.rx_queues) * UNCUT } else { 0 });
        let workers = config.runtime.worker_cores.len() as u32;
        // A pool's cache holds up to half as much again; the control thread has one as well.
        let (per_thread, in_flight) = (CACHE + CACHE / 2, 2 * BURST as u32 * merged);
        let held = (workers + 1) * per_thread + workers * in_flight;
        let reserve = config.ports.len() as u32 * DRIVER_RESERVE + extra;
        let count = rx + tx + waiting + held + uncut + reserve;
        let mtu = config.ports.iter().map(|port| port.mtu).max().unwrap_or(1500);
        let data_room = (HEADROOM + u32::from(mtu) + FRAME_OVERHEAD).next_multiple_of(64).max(2048 + HEADROOM);
        let of_merged = if merged > 1 { format!(" (super-packets of {merged})") } else { String::new() };
        let arithmetic = format!(
            "{rx} receive descriptors + {tx} transmit descriptors + {waiting} in qdiscs{of_merged} + {uncut} to be cut + {held} held by the workers ({workers}) and control + \
             {reserve} in drivers = {count} buffers of {} bytes = {} MiB",
            data_room + BUFFER_OVERHEAD,
            (u64::from(count) * u64::from(data_room + BUFFER_OVERHEAD)).div_ceil(MIB),
        );
        Self { count, data_room: data_room as u16, arithmetic }
    }

    /// Bytes of all buffers. On plain pages none reaches over the end of one that it fits.
    pub fn bytes(&self, pages: Pages) -> u64 {
        let buffer = u64::from(self.data_room) + u64::from(BUFFER_OVERHEAD);
        u64::from(self.count)
            * match pages {
                Pages::Huge => buffer,
                Pages::Plain if buffer < PLAIN_PAGE => PLAIN_PAGE / (PLAIN_PAGE / buffer),
                Pages::Plain => buffer.next_multiple_of(PLAIN_PAGE),
            }
    }
}

/// Where packet memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    /// Hugepages.
    Huge,
    /// Plain pages: works, costs speed.
    Plain,
}

/// The least memory with which a pool can be made, in MiB.
fn needed(pool: &PoolPlan, pages: Pages) -> u64 {
    pool.bytes(pages).div_ceil(MIB) + EAL_RESERVE
}

/// The memory that DPDK gets, in MiB.
pub(super) fn memory(config: &Config, pool: &PoolPlan, pages: Pages) -> u64 {
    match config.runtime.memory {
        Memory::Auto => needed(pool, pages),
        Memory::Bytes(bytes) => bytes.div_ceil(MIB),
    }
}

/// The EAL's arguments for a configuration. `free_hugepages` is in bytes.
///
/// # Errors
///
/// If `memory` is less than the configuration needs.
pub(super) fn eal_arguments(
    config: &Config,
    pool: &PoolPlan,
    free_hugepages: u64,
) -> Result<(Vec<String>, Pages), RuntimeError> {
    let runtime = &config.runtime;
    let asked_plain = runtime.eal_args.iter().any(|argument| argument == "--no-huge");
    let huge = !asked_plain && free_hugepages >= memory(config, pool, Pages::Huge) * MIB;
    let pages = if huge { Pages::Huge } else { Pages::Plain };
    let (needed, given) = (needed(pool, pages), memory(config, pool, pages));
    if given < needed {
        let padding = match (pool.bytes(pages) - pool.bytes(Pages::Huge)).div_ceil(MIB) {
            0 => String::new(),
            mib => format!(" + {mib} MiB as no buffer reaches over the end of a plain page"),
        };
        let arithmetic = format!("{}{padding} + {EAL_RESERVE} MiB for DPDK itself", pool.arithmetic);
        return Err(RuntimeError::Memory { given, needed, arithmetic });
    }

    let mut arguments = vec![
        format!("--file-prefix={}", runtime.file_prefix),
        format!("--lcores={}", runtime.main_core),
        // No device is probed but those that the configuration names: none has this address.
        "--allow=0000:00:00.0".to_owned(),
    ];
    if !config.ports.iter().any(|port| is_pci(&port.device)) {
        arguments.pop();
        arguments.push("--no-pci".to_owned());
    }
    match pages {
        Pages::Plain => {
            let plain = (!asked_plain).then(|| "--no-huge".to_owned());
            arguments.extend(plain.into_iter().chain([format!("-m{given}"), "--iova-mode=va".to_owned()]));
        }
        Pages::Huge => {
            let size = (runtime.memory != Memory::Auto).then(|| format!("-m{given}"));
            // Files without a name: the kernel takes the pages back however the process ends.
            let unlink = !runtime.eal_args.iter().any(|argument| keeps_names(argument));
            arguments.extend(size.into_iter().chain(unlink.then(|| "--huge-unlink".to_owned())));
        }
    }
    let decided = |argument: &&String| !(argument.as_str() == "--no-pci" && arguments.contains(argument));
    let extra: Vec<String> = runtime.eal_args.iter().filter(decided).cloned().collect();
    let has_mode = extra.iter().any(|argument| argument.starts_with("--iova-mode"));
    arguments.retain(|argument| !(has_mode && argument.starts_with("--iova-mode")));
    arguments.extend(extra);
    Ok((arguments, pages))
}

/// True for an argument of the EAL that `--huge-unlink` contradicts.
fn keeps_names(argument: &str) -> bool {
    let name = argument.split('=').next().unwrap_or_default();
    ["--huge-unlink", "--in-memory", "--legacy-mem", "--single-file-segments"].contains(&name)
}

/// True for a PCI address, with or without domain and arguments.
fn is_pci(device: &str) -> bool {
    let name = device.split(',').next().unwrap_or_default();
    let mut parts = name.rsplitn(3, [':', '.']);
    let hexadecimal =
        |part: &str| !part.is_empty() && part.split(':').all(|p| p.bytes().all(|b| b.is_ascii_hexdigit()));
    parts.by_ref().take(3).filter(|part| hexadecimal(part)).count() == 3 && name.contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn parsed(runtime: &str, ports: &str) -> Config {
        let text = format!("[runtime]\nworker_cores = [0, 1]\n{runtime}\n{ports}");
        config::parse(&text, "test.toml").unwrap()
    }

    const VDEVS: &str = "[[port]]\nname = 'a'\ndevice = 'net_null0'\n[[port]]\nname = 'b'\ndevice = 'net_null1'\n";

    #[test]
    fn a_pool_has_a_buffer_for_every_place() {
        let plan = PoolPlan::new(&parsed("", VDEVS), 0);
        // 2 ports: 1 receive and 2 transmit queues of 1024 each.
        let queues = 2 * 1024 + 2 * 2 * 1024;
        // Before each transmit queue three bands, which can grow to 1024 packets, and what was refused.
        let qdiscs = 2 * 2 * (3 * 1024 + 64);
        assert_eq!(plan.count, queues + qdiscs + 3 * 768 + 2 * 128 + 2 * 512);
        let direct = VDEVS.replace("net_null0'", "net_null0'\nqdisc.kind = 'noqueue'");
        assert_eq!(PoolPlan::new(&parsed("", &direct), 0).count, plan.count - qdiscs / 2);
        assert_eq!(plan.data_room, 2176);
        assert!(plan.arithmetic.contains("2048 receive descriptors + 4096 transmit descriptors"));
        let jumbo = PoolPlan::new(&parsed("", &VDEVS.replace("net_null1'", "net_null1'\nmtu = 9000")), 0);
        assert!(u32::from(jumbo.data_room) >= 128 + 9000 + 18);
    }

    #[test]
    fn memory_comes_from_hugepages_if_there_are_enough() {
        let config = parsed("", VDEVS);
        let pool = PoolPlan::new(&config, 0);
        let (huge, pages) = eal_arguments(&config, &pool, u64::MAX).unwrap();
        assert_eq!(pages, Pages::Huge);
        assert!(huge.contains(&"--no-pci".to_owned()) && !huge.iter().any(|a| a.starts_with("-m")));
        assert!(huge.contains(&"--huge-unlink".to_owned()));
        let named = parsed("eal_args = ['--single-file-segments']", VDEVS);
        let (huge, _) = eal_arguments(&named, &pool, u64::MAX).unwrap();
        assert!(!huge.contains(&"--huge-unlink".to_owned()));
        let (plain, pages) = eal_arguments(&config, &pool, 0).unwrap();
        assert_eq!(pages, Pages::Plain);
        assert!(plain.contains(&"--no-huge".to_owned()) && plain.iter().any(|a| a.starts_with("-m")));
        let asked = parsed("eal_args = ['--no-huge', '--no-pci']", VDEVS);
        let (plain, pages) = eal_arguments(&asked, &pool, u64::MAX).unwrap();
        assert_eq!(pages, Pages::Plain);
        for once in ["--no-huge", "--no-pci"] {
            assert_eq!(plain.iter().filter(|argument| *argument == once).count(), 1, "{once}");
        }
    }

    #[test]
    fn too_little_memory_is_refused_with_the_arithmetic() {
        let config = parsed("memory = '8M'", VDEVS);
        let error = eal_arguments(&config, &PoolPlan::new(&config, 0), u64::MAX).unwrap_err().to_string();
        assert!(error.contains("memory = 8 MiB") && error.contains("receive descriptors"), "{error}");
    }

    #[test]
    fn on_plain_pages_buffers_do_not_reach_over_the_end_of_one() {
        let plan = |ports: &str| PoolPlan::new(&parsed("", ports), 0);
        let (small, large) = (plan(VDEVS), plan(&VDEVS.replace("net_null1'", "net_null1'\nmtu = 9000")));
        assert_eq!(small.bytes(Pages::Huge), u64::from(small.count) * (2176 + 256));
        assert_eq!(small.bytes(Pages::Plain), u64::from(small.count) * 4096);
        assert_eq!(large.bytes(Pages::Plain), u64::from(large.count) * 3 * 4096);
    }

    #[test]
    fn pci_addresses_are_told_from_names() {
        for pci in ["0000:3b:00.0", "3b:00.1", "0000:83:00.0,port=1"] {
            assert!(is_pci(pci), "{pci}");
        }
        for other in ["net_tap0", "net_af_packet0,iface=eth0.5", "net_pcap0,rx_pcap=a:b.c", ""] {
            assert!(!is_pci(other), "{other}");
        }
    }
}
