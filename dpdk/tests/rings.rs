//! Packets through ports made of rings, and the life of such ports.

mod common {
    pub mod environment;
    pub mod frames;
    pub mod packets;
}

use arrayvec::ArrayVec;
use common::environment::start;
use common::frames::{all_bytes, frames};
use common::packets::{chain, packet};
use dpdk::mempool::DEFAULT_DATA_ROOM;
use dpdk::ring::{self, Consumer, Producer};
use dpdk::{EalError, Mbuf, Mempool, Port, PortConfig, PortError, RingError, RunningPort};

/// A pool, a port with one queue each way that runs, and the other ends of its queues.
fn wire(name: &str, places: u32) -> (Mempool, RunningPort, Producer, Consumer) {
    start("rings");
    let pool = Mempool::create(name, 511, 0, DEFAULT_DATA_ROOM, None).unwrap();
    let (to_port, rx) = ring::create(&format!("{name} rx"), places, None).unwrap();
    let (tx, from_port) = ring::create(&format!("{name} tx"), places, None).unwrap();
    let port = Port::from_rings(name, vec![rx], vec![tx]).unwrap();
    let port = port.configure_and_start(&PortConfig::new(vec![pool.clone()], 1)).unwrap();
    (pool, port, to_port, from_port)
}

#[test]
fn packets_cross_a_port_unchanged() {
    let (pool, port, mut to_port, mut from_port) = wire("unchanged", 64);
    let (mut rx, mut tx) = (port.take_rx_queue(0).unwrap(), port.take_tx_queue(0).unwrap());
    let mut sent: Vec<Vec<u8>> = frames(30, 2048);
    let mut burst: ArrayVec<Mbuf, 32> = sent.iter().map(|frame| packet(&pool, frame)).collect();
    burst.push(chain(&pool, &[b"several ", b"segments"]));
    sent.push(b"several segments".to_vec());

    assert_eq!(to_port.enqueue(&mut burst), 31);
    assert!(burst.is_empty());
    assert_eq!(rx.receive(&mut burst), 31);
    assert_eq!(rx.receive(&mut burst), 0);
    assert_eq!(tx.transmit(&mut burst), 31);
    assert!(burst.is_empty());
    assert_eq!(tx.transmit(&mut burst), 0, "nothing to send");
    assert_eq!(pool.in_use(), 32, "nothing is freed that is on its way");
    assert_eq!(from_port.dequeue(&mut burst), 31);
    assert_eq!(all_bytes(&burst), sent);

    let counters = port.stats().unwrap();
    assert_eq!((counters.rx_packets, counters.tx_packets), (31, 31));
    Mbuf::free_bulk(&mut burst);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_burst_fills_only_the_room_there_is() {
    let (pool, port, mut to_port, _from_port) = wire("room", 64);
    let mut rx = port.take_rx_queue(0).unwrap();
    let mut burst: ArrayVec<Mbuf, 32> = frames(20, 100).iter().map(|frame| packet(&pool, frame)).collect();
    let sent = all_bytes(&burst);
    to_port.enqueue(&mut burst);
    let mut small = ArrayVec::<Mbuf, 8>::new();
    small.push(packet(&pool, b"was here before"));
    assert_eq!(rx.receive(&mut small), 7);
    assert_eq!(rx.receive(&mut small), 0);
    assert_eq!(small[0].segment(), b"was here before");
    assert_eq!(all_bytes(&small)[1..], sent[..7]);
}

#[test]
fn what_a_full_device_refuses_stays_in_order() {
    let (pool, port, _to_port, mut from_port) = wire("full", 16);
    let mut tx = port.take_tx_queue(0).unwrap();
    let sent = frames(40, 300);
    let mut burst: ArrayVec<Mbuf, 64> = sent.iter().map(|frame| packet(&pool, frame)).collect();
    assert_eq!(tx.transmit(&mut burst), 15);
    assert_eq!(all_bytes(&burst), sent[15..]);
    assert_eq!(tx.transmit(&mut burst), 0);
    assert_eq!(all_bytes(&burst), sent[15..]);

    let mut arrived = ArrayVec::<Mbuf, 64>::new();
    while !burst.is_empty() {
        assert!(from_port.dequeue(&mut arrived) > 0);
        tx.transmit(&mut burst);
    }
    from_port.dequeue(&mut arrived);
    assert_eq!(all_bytes(&arrived), sent);
    assert_eq!(pool.in_use(), 40);
    drop(arrived);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_full_ring_refuses_in_order() {
    start("rings");
    let pool = Mempool::create("ring", 63, 0, DEFAULT_DATA_ROOM, None).unwrap();
    let (mut producer, mut consumer) = ring::create("plain", 8, None).unwrap();
    assert_eq!(producer.capacity(), 7);
    let sent = frames(10, 60);
    let mut burst: ArrayVec<Mbuf, 16> = sent.iter().map(|frame| packet(&pool, frame)).collect();
    assert!(consumer.is_empty());
    assert_eq!(producer.enqueue(&mut burst), 7);
    assert_eq!(consumer.len(), 7);
    assert_eq!(all_bytes(&burst), sent[7..]);
    let mut arrived = ArrayVec::<Mbuf, 3>::new();
    assert_eq!(consumer.dequeue(&mut arrived), 3);
    assert_eq!(all_bytes(&arrived), sent[..3]);
    // What is left in a ring goes home with it.
    drop((burst, arrived, producer));
    assert_eq!(pool.in_use(), 4);
    drop(consumer);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_queue_has_one_user_at_a_time() {
    let (_pool, port, _to_port, _from_port) = wire("one user", 16);
    let rx = port.take_rx_queue(0).unwrap();
    assert_eq!((rx.number(), rx.port_id()), (0, port.id()));
    assert!(matches!(port.take_rx_queue(0), Err(PortError::QueueTaken { direction: "RX", queue: 0, .. })));
    let tx = port.take_tx_queue(0).unwrap();
    assert!(matches!(port.take_tx_queue(0), Err(PortError::QueueTaken { direction: "TX", queue: 0, .. })));
    assert!(matches!(port.take_rx_queue(1), Err(PortError::NoSuchQueue { count: 1, .. })));
    assert!(matches!(port.take_tx_queue(u16::MAX), Err(PortError::NoSuchQueue { count: 1, .. })));

    drop(rx);
    let rx = port.take_rx_queue(0).unwrap();
    let port = port.stop().expect_err("handles are out");
    drop(rx);
    let port = port.stop().expect_err("a handle is out");
    drop(tx);
    port.stop().map(drop).expect("no handle is out");
}

#[test]
fn a_handle_keeps_its_port_running() {
    let (pool, port, mut to_port, mut from_port) = wire("kept", 16);
    let mut rx = port.take_rx_queue(0).unwrap();
    let mut tx = port.take_tx_queue(0).unwrap();
    drop(port);
    let moved = std::thread::spawn(move || {
        let mut burst = ArrayVec::<Mbuf, 8>::new();
        burst.push(packet(&pool, b"still running"));
        to_port.enqueue(&mut burst);
        assert_eq!(rx.receive(&mut burst), 1);
        assert_eq!(tx.transmit(&mut burst), 1);
        assert_eq!(from_port.dequeue(&mut burst), 1);
        assert_eq!(burst[0].segment(), b"still running");
    });
    moved.join().unwrap();
    // The last handle is gone, and with it the device: the name is free again.
    let (_producer, rx) = ring::create("kept again rx", 16, None).unwrap();
    let (tx, _consumer) = ring::create("kept again tx", 16, None).unwrap();
    Port::from_rings("kept", vec![rx], vec![tx]).unwrap();
}

#[test]
fn a_stopped_port_starts_again_as_it_was() {
    let (pool, port, mut to_port, _from_port) = wire("again", 16);
    let applied = *port.applied();
    let mut port = port;
    for _ in 0..3 {
        port = port.stop().unwrap().start().unwrap();
        assert_eq!(*port.applied(), applied);
        let mut rx = port.take_rx_queue(0).unwrap();
        port = port.stop().expect_err("a handle is out");
        let mut burst = ArrayVec::<Mbuf, 8>::new();
        burst.push(packet(&pool, b"again"));
        to_port.enqueue(&mut burst);
        assert_eq!(rx.receive(&mut burst), 1);
    }
}

#[test]
fn a_stopped_port_is_set_up_anew() {
    let (pool, port, mut to_port, _from_port) = wire("anew", 16);
    assert_eq!((port.applied().scatter, port.applied().tx_segments), (false, false));
    let port = port.stop().unwrap().into_port();
    let mut config = PortConfig::new(vec![pool.clone()], 1);
    config.mtu = 9000;
    config.tx_segments = true;
    let port = port.configure_and_start(&config).unwrap();
    // Frames longer than a packet buffer, and a device that offers to scatter them.
    assert_eq!((port.applied().scatter, port.applied().tx_segments), (true, true));
    let mut rx = port.take_rx_queue(0).unwrap();
    let mut burst = ArrayVec::<Mbuf, 8>::new();
    burst.push(packet(&pool, b"again"));
    to_port.enqueue(&mut burst);
    assert_eq!(rx.receive(&mut burst), 1);
}

#[test]
fn rings_and_ports_refuse_what_cannot_be() {
    start("rings");
    assert!(matches!(ring::create("odd", 17, None), Err(RingError::Create { .. })));
    assert!(matches!(ring::create("one", 1, None), Err(RingError::Create { .. })));
    assert!(matches!(ring::create("", 16, None), Err(RingError::Create { .. })));
    assert!(matches!(ring::create(&"x".repeat(29), 16, None), Err(RingError::Create { .. })));
    assert!(!matches!(ring::create("n\0l", 16, None), Err(RingError::Eal(EalError::NotRunning))));
    let (tx, rx) = ring::create(&"x".repeat(28), 16, None).unwrap();
    assert!(matches!(ring::create(&"x".repeat(28), 16, None), Err(RingError::Create { .. })));
    assert!(matches!(Port::from_rings("no tx", vec![rx], vec![]), Err(PortError::NoQueues { direction: "TX", .. })));
    assert!(matches!(Port::from_rings("no rx", vec![], vec![tx]), Err(PortError::NoQueues { direction: "RX", .. })));

    let side = |name: &str| ring::create(name, 16, None).unwrap();
    let ((to, rx), (tx, from)) = (side("first a"), side("first b"));
    let first = Port::from_rings("twice", vec![rx], vec![tx]).unwrap();
    let ((_, rx), (tx, _)) = (side("second a"), side("second b"));
    assert!(Port::from_rings("twice", vec![rx], vec![tx]).is_err());
    drop((first, to, from));
}

#[test]
fn a_held_packet_tells_when_it_was_given_up() {
    let (pool, port, _to_port, mut from_port) = wire("held", 64);
    let mut tx = port.take_tx_queue(0).unwrap();
    let mut burst: ArrayVec<Mbuf, 2> = ArrayVec::new();
    burst.push(chain(&pool, &[b"head", b"tail"]));
    let held = burst[0].hold();
    assert_eq!(tx.transmit(&mut burst), 1);
    assert!(!held.is_released(), "it is on its way");
    assert_eq!(from_port.dequeue(&mut burst), 1);
    assert_eq!(all_bytes(&burst), [b"headtail"]);
    burst.clear();
    assert!(held.is_released());
    assert_eq!(pool.in_use(), 1, "the tail is free");
    drop(held);
    assert_eq!(pool.in_use(), 0);

    // The other way round.
    let packet = packet(&pool, b"one");
    drop(packet.hold());
    assert_eq!(pool.in_use(), 1);
    drop(packet);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn rings_know_nothing_of_descriptors() {
    let (_pool, port, _to_port, _from_port) = wire("descriptors", 64);
    let mut tx = port.take_tx_queue(0).unwrap();
    assert_eq!((tx.descriptor_done(0), tx.clean_up()), (None, None));
}
