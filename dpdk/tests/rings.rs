//! Packets through ports made of rings.

mod common;

use arrayvec::ArrayVec;
use dpdk::mempool::DEFAULT_DATA_ROOM;
use dpdk::{Mbuf, Mempool, Port, PortConfig, ring};

#[test]
fn packets_cross_a_port_unchanged() {
    let eal = common::start("rings");
    let pool = Mempool::create("packets", 1023, 32, DEFAULT_DATA_ROOM, None).unwrap();
    let (mut to_port, port_rx) = ring::create("rx", 64, None).unwrap();
    let (port_tx, mut from_port) = ring::create("tx", 64, None).unwrap();
    let port = Port::from_rings("wire", vec![port_rx], vec![port_tx]).unwrap();
    let port = port.configure_and_start(&PortConfig::new(vec![pool.clone()], 1)).unwrap();
    let (mut rx, mut tx) = (port.take_rx_queue(0).unwrap(), port.take_tx_queue(0).unwrap());

    let mut packets = ArrayVec::<Mbuf, 32>::new();
    assert_eq!(pool.alloc_bulk(&mut packets, 10), 10);
    for (number, packet) in packets.iter_mut().enumerate() {
        packet.extend_from_slice(&[number as u8; 60]).unwrap();
    }
    assert_eq!(to_port.enqueue(&mut packets), 10);
    assert_eq!(rx.receive(&mut packets), 10);
    assert_eq!(tx.transmit(&mut packets), 10);
    assert!(packets.is_empty());
    assert_eq!(from_port.dequeue(&mut packets), 10);
    for (number, packet) in packets.iter().enumerate() {
        assert_eq!(packet.segment(), [number as u8; 60]);
    }
    assert_eq!(pool.in_use(), 10);
    Mbuf::free_bulk(&mut packets);
    assert_eq!(pool.in_use(), 0);
    let (port, error) = (port.stop(), eal.shutdown());
    assert!(port.is_err());
    println!("{}", error.unwrap_err().1);
}
