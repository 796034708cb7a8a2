//! Drivers that keep what has left until they are short of room: over and over a burst, then silence, and no buffer is lost.

use super::rig::{Shape, start_eal};
use crate::bql::Limits;
use crate::datapath::in_flight::{InFlight, Source};
use crate::datapath::super_packet::Cutting;
use crate::datapath::transmit::{QUOTA, TxDevice, TxRoot};
use crate::qdisc::{BandMap, Deferred, Settings, Total};
use crate::runtime::buffers::Sender;
use crate::runtime::egress::retry_interval;
use arrayvec::ArrayVec;
use dpdk::mempool::DEFAULT_DATA_ROOM;
use dpdk::{Mbuf, Mempool, Port, PortConfig};
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Packets of the pool, and of a burst.
const BUFFERS: u32 = 4095;
const BURST: usize = 3000;

/// What a driver's transmit ring has room for.
const RING: u32 = 256;

/// Bursts; with `THRUWAY_STRESS_SECONDS` as many as go in that time.
const ROUNDS: u32 = 100;

/// Sends by one port what comes out by another.
fn bursts_and_silence(name: &str, sender: &str, sink: &str) {
    let shape = Shape { workers: 1, queues: 1, room: 64, qdisc: "", more: "" };
    let (_turn, _) = start_eal(shape);
    let pools = ["sends", "takes"].map(|role| {
        let name = format!("{name} {role}");
        Mempool::create(&name, BUFFERS, 0, DEFAULT_DATA_ROOM, None).unwrap()
    });
    let start = |device: &str, pool: &Mempool| {
        let setup = PortConfig {
            rx_descriptors: RING as u16,
            tx_descriptors: RING as u16,
            ..PortConfig::new(vec![pool.clone()], 1)
        };
        Port::open(device).unwrap().configure_and_start(&setup).unwrap()
    };
    let sink = start(sink, &pools[1]);
    let port = start(sender, &pools[0]);
    let up = Instant::now();
    while !(port.link().unwrap().up && sink.link().unwrap().up) {
        assert!(up.elapsed() < Duration::from_secs(10), "{name}: no link");
        std::thread::sleep(Duration::from_millis(10));
    }

    let queue = Cutting::new(Sender { queue: port.take_tx_queue(0).unwrap(), cuts: false }, false, Arc::default());
    let in_flight = InFlight::new(Source::Paced, Arc::default(), RING as usize);
    let device = TxDevice::new(queue, Limits::default(), true, in_flight, dpdk::clock::nanoseconds);
    let byte_limit = device.byte_limit();
    let (map, retry_interval) = (BandMap::default(), retry_interval());
    let settings = Settings { id: 0, cores: 1, bypass: true, quota: QUOTA, retry_interval, map };
    let root = Arc::new(TxRoot::on_rings(settings, 1000, device).unwrap());
    let mut core = Deferred::new(0, 1);
    let mut rx = sink.take_rx_queue(0).unwrap();

    // Receive rings are full of buffers.
    let (rest, began) = (pools[0].in_use(), Instant::now());
    let long = std::env::var("THRUWAY_STRESS_SECONDS").ok().map(|seconds| seconds.parse().unwrap());
    let mut kept = Vec::new();
    let mut round = 0;
    while long.map_or(round < ROUNDS, |seconds| began.elapsed().as_secs_f64() < seconds) {
        let (mut offered, mut came, started) = (0, 0, Instant::now());
        while came < BURST {
            let mut group = ArrayVec::<Mbuf, 64>::new();
            if offered < BURST && root.statistics().backlog.packets < 500 {
                pools[0].alloc_bulk(&mut group, (BURST - offered).min(50));
                group.iter_mut().for_each(|packet| packet.extend_from_slice(&[0x5a; 60]).unwrap());
                offered += group.len();
            }
            let total = Total::of(&group);
            root.transmit(&mut core, &mut group, total);
            assert!(group.is_empty());
            core.turn(dpdk::clock::tsc, slice::from_ref(&root));
            let mut taken = ArrayVec::<Mbuf, 64>::new();
            came += rx.receive(&mut taken);
            let in_use = pools[0].in_use();
            assert!(started.elapsed() < Duration::from_secs(20), "{name}: {came} of {offered} came, {in_use} in use");
        }
        // Silence.
        let silent = Instant::now();
        while byte_limit.control.statistics().inflight > 0 {
            core.turn(dpdk::clock::tsc, slice::from_ref(&root));
            assert!(silent.elapsed() < Duration::from_secs(5), "{name}: {:?}", byte_limit.control.statistics());
        }
        (0..200).for_each(|_| core.turn(dpdk::clock::tsc, slice::from_ref(&root)));
        kept.push(pools[0].in_use() - rest);
        round += 1;
    }
    let (first, last) = (kept[0], kept[kept.len() - 1]);
    println!("{name}: {round} bursts of {BURST}; {first} buffers were kept after the first, {last} after the last");
    assert!(kept.iter().all(|kept| *kept <= RING), "{name}: {kept:?}");
    let statistics = root.statistics();
    assert_eq!((statistics.transmitted.packets, statistics.backlog.packets), (u64::from(round) * BURST as u64, 0));
    root.deactivate();
    assert!(root.reset(&mut core));
    drop(root.with_device(TxDevice::take));
    drop((root, rx));
    drop((port.stop(), sink.stop()));
}

/// One after the other: a virtio_user that comes after a memif in a process gets no link.
#[test]
fn drivers_that_keep_packets_lose_none() {
    let folder = tempfile::tempdir().unwrap();
    let vhost = folder.path().join("vhost");
    let vhost = vhost.display();
    bursts_and_silence(
        "virtio_user",
        &format!("net_virtio_user0,path={vhost},queue_size={RING}"),
        &format!("net_vhost0,iface={vhost},queues=1"),
    );
    let memif = folder.path().join("memif");
    let memif = format!("socket={},socket-abstract=no,rsize=8", memif.display());
    bursts_and_silence(
        "memif",
        &format!("net_memif1,role=client,{memif},zero-copy=yes"),
        &format!("net_memif0,role=server,{memif}"),
    );
}
