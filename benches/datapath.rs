//! What forwarding itself costs: a burst of packets goes round and round through a worker, without a
//! device. Prints time-stamp counter cycles per packet, the least of many short runs, with those of
//! restoring the headers (which a device would do) taken off.

use arc_swap::ArcSwap;
use arrayvec::ArrayVec;
use std::ptr::NonNull;
use std::sync::Arc;
use thruway::config::RouteAction;
use thruway::datapath::Isa;
use thruway::datapath::buffer::{Burst, Lengths, PacketBuf, RxBurst, SMALL_BURST, TxBurst};
use thruway::datapath::counters::WorkerCounters;
use thruway::datapath::output::Outputs;
use thruway::datapath::pipeline::Ingress;
use thruway::datapath::snapshot::Snapshot;
use thruway::datapath::worker::{Input, Worker};
use thruway::generate::Profile;
use thruway::packet::ChecksumStatus;
use thruway::queue::Item;
use thruway::tables::{TablePort, Tables};
use thruway::units::{CoreId, MacAddr, PortId};

/// Laid out as network drivers do: the packet is a pointer to where the bytes are and how many.
struct Buffer {
    address: *mut u8,
    offset: u16,
    lengths: Lengths,
    template: [u8; 64],
}

#[repr(transparent)]
struct Packet(NonNull<Buffer>);

// SAFETY: the buffer is leaked, and written through the packet alone.
unsafe impl Send for Packet {}

// SAFETY: a pointer to a buffer, which is aligned.
unsafe impl Item for Packet {
    const ALIGNMENT: usize = align_of::<Buffer>();
}

impl Packet {
    fn new(frame: &[u8]) -> Self {
        let memory: &mut [u8] = Box::leak(vec![0; 2176].into_boxed_slice());
        let mut template = [0; 64];
        template[..frame.len()].copy_from_slice(frame);
        let lengths = Lengths::new(frame.len() as u32, frame.len() as u16);
        let buffer = Buffer { address: memory.as_mut_ptr(), offset: 128, lengths, template };
        Self(NonNull::from(Box::leak(Box::new(buffer))))
    }

    fn buffer(&self) -> &Buffer {
        // SAFETY: leaked, and never written after it was made.
        unsafe { self.0.as_ref() }
    }

    fn restore(&self) {
        // SAFETY: the packet's own memory, which nobody else uses.
        unsafe { self.head().copy_from_nonoverlapping(self.buffer().template.as_ptr(), 64) };
    }
}

// SAFETY: the memory is leaked, has room for 2048 bytes behind the head, and only this packet uses it.
unsafe impl PacketBuf for Packet {
    fn head(&self) -> *mut u8 {
        self.buffer().address.wrapping_add(usize::from(self.buffer().offset))
    }

    fn lengths(&self) -> Lengths {
        self.buffer().lengths
    }

    fn segment(&self) -> &[u8] {
        // SAFETY: see above; not written while it is borrowed.
        unsafe { std::slice::from_raw_parts(self.head(), usize::from(self.lengths().segment())) }
    }

    fn truncate(&mut self, _: u32) {}

    fn checksum(&self) -> ChecksumStatus {
        ChecksumStatus::Unknown
    }
}

/// Both ends of a port: what is sent comes in again, as new.
#[derive(Default)]
struct Loop(Burst<Packet>);

thread_local!(static LOOP: std::cell::RefCell<Loop> = std::cell::RefCell::default());

struct Rx;
struct Tx;

impl RxBurst for Rx {
    type Buf = Packet;

    fn receive(&mut self, burst: &mut Burst<Packet>, most: usize) -> usize {
        LOOP.with_borrow_mut(|Loop(packets)| {
            let count = packets.len().min(most);
            packets[..count].iter().for_each(Packet::restore);
            burst.extend(packets.drain(..count));
            count
        })
    }
}

impl TxBurst for Tx {
    type Buf = Packet;
    type Held = ();

    fn transmit<const N: usize>(&mut self, burst: &mut ArrayVec<Packet, N>) -> usize {
        let count = burst.len();
        LOOP.with_borrow_mut(|Loop(packets)| packets.extend(burst.drain(..)));
        count
    }
}

fn tsc() -> u64 {
    // SAFETY: every x86-64 has it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The least cycles per packet that `turn` takes.
fn least(mut turn: impl FnMut()) -> f64 {
    let run = |turn: &mut dyn FnMut()| {
        let start = tsc();
        (0..100).for_each(|_| turn());
        (tsc() - start) as f64 / (100 * SMALL_BURST) as f64
    };
    (0..5000).map(|_| run(&mut turn)).fold(f64::MAX, f64::min)
}

fn main() {
    let mac = MacAddr([2, 0, 0, 0, 0, 1]);
    let ports = vec![TablePort {
        name: "p0".into(),
        mac,
        mtu: 1500,
        addresses: ["192.0.2.1/24", "2001:db8:1::1/64"].map(|address| address.parse().unwrap()).to_vec(),
    }];
    let mut tables = Tables::new(ports, Box::new(std::thread::yield_now)).unwrap();
    let port = PortId(0);
    for (number, (v4, v6)) in (2..18).map(|n| (n, (format!("192.0.2.{n}"), format!("2001:db8:1::{n:x}")))) {
        for (address, prefix) in [(v4, format!("10.{number}.0.0/16")), (v6, format!("2001:db8:{number:x}00::/48"))] {
            let address = address.parse().unwrap();
            tables.add_neighbor(address, MacAddr([2, 0, 0, 0, 1, number]), port).unwrap();
            tables.add_route(prefix.parse().unwrap(), RouteAction::Via { address, port }).unwrap();
        }
    }
    let current: Arc<ArcSwap<Snapshot>> = tables.current();
    // cargo bench -- FILTER: only what has this in its name, such as "IPv4 AVX2".
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    for (name, isa) in Isa::available().into_iter().map(|isa| (isa.name(), isa)) {
        for (traffic, ipv6_percent) in [("IPv4", 0), ("IPv6", 100), ("mixed", 50)] {
            let title = format!("{traffic:<6} {name}");
            if !title.contains(&filter) {
                continue;
            }
            let profile = Profile {
                seed: 1,
                destination_mac: mac,
                source_mac: MacAddr([2, 0, 0, 0, 0, 9]),
                destinations_v4: (0..64u32).map(|n| (0x0a00_0000 | (2 + n % 16) << 16 | n).into()).collect(),
                destinations_v6: (0..64u128).map(|n| (0x2001_0db8u128 << 96 | (2 + n % 16) << 88 | n).into()).collect(),
                ipv6_percent,
                bad_percent: 0,
                bad_reasons: Vec::new(),
                frame_len: 60,
            };
            LOOP.with_borrow_mut(|Loop(packets)| {
                packets.clear();
                packets.extend(profile.frames().take(SMALL_BURST).map(|frame| Packet::new(&frame.bytes)));
            });
            let counters = Arc::new(WorkerCounters::new(CoreId(0), 1));
            let input = Input { ingress: Ingress { port, mac }, queue: Rx };
            let mut worker = Worker::new(vec![input], Outputs::direct([Tx]), current.clone(), counters.clone(), isa);
            let mut burst = Burst::new();
            let around = least(|| {
                Rx.receive(&mut burst, SMALL_BURST);
                Tx.transmit(&mut burst);
            });
            let all = least(|| {
                worker.turn(|| 0);
            });
            assert_eq!(counters.total_drops(), 0);
            println!("{title:<16} {:6.2} cycles/packet", all - around);
        }
    }
}
