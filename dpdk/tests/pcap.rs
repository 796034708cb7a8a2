//! Packets from a capture file to another through a real driver.

mod common;

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use arrayvec::ArrayVec;
use common::frames;
use dpdk::mempool::DEFAULT_DATA_ROOM;
use dpdk::{Mbuf, Mempool, Port, PortConfig, PortError};
use pcap_file::pcap::{PcapPacket, PcapReader, PcapWriter};

fn write(path: &Path, frames: &[Vec<u8>]) {
    let mut file = PcapWriter::new(File::create(path).unwrap()).unwrap();
    for frame in frames {
        file.write_packet(&PcapPacket::new(Duration::ZERO, frame.len() as u32, frame)).unwrap();
    }
}

fn read(path: &Path) -> Vec<Vec<u8>> {
    let mut file = PcapReader::new(File::open(path).unwrap()).unwrap();
    std::iter::from_fn(|| file.next_packet().map(|packet| packet.unwrap().data.into_owned())).collect()
}

#[test]
fn frames_cross_from_file_to_file_unchanged() {
    common::start("pcap");
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.pcap"), folder.path().join("out.pcap"));
    // The longest frames take several packet buffers.
    let sent = frames(300, 4000);
    write(&input, &sent);
    let pool = Mempool::create("packets", 1023, 64, DEFAULT_DATA_ROOM, None).unwrap();
    let device = format!("net_pcap0,rx_pcap={},tx_pcap={}", input.display(), output.display());

    let port = Port::open(&device).unwrap();
    assert_eq!(port.info().unwrap().driver, "net_pcap");
    assert!(matches!(Port::open(&device), Err(PortError::AlreadyOpen { .. })));
    let port = port.configure_and_start(&PortConfig::new(vec![pool.clone()], 1)).unwrap();
    let applied = port.applied();
    assert!(!applied.mtu_enforced && applied.mtu == 1500 && !applied.scatter);
    assert_eq!((applied.rx_descriptors, applied.tx_descriptors), (1024, 1024));
    assert!(port.link().unwrap().up);
    let (mut rx, mut tx) = (port.take_rx_queue(0).unwrap(), port.take_tx_queue(0).unwrap());

    let mut burst = ArrayVec::<Mbuf, 64>::new();
    let (mut received, mut segments) = (Vec::new(), 0);
    while rx.receive(&mut burst) > 0 {
        received.extend(common::all_bytes(&burst));
        segments += burst.iter().map(|packet| usize::from(packet.nb_segs())).sum::<usize>();
        assert!(burst.iter().all(|packet| packet.port() == port.id()));
        tx.transmit(&mut burst);
        assert!(burst.is_empty());
    }
    assert_eq!(received, sent);
    assert!(segments > sent.len());
    assert_eq!(pool.in_use(), 0);

    let bytes: u64 = sent.iter().map(|frame| frame.len() as u64).sum();
    let counters = port.stats().unwrap();
    assert_eq!((counters.rx_packets, counters.rx_bytes), (300, bytes));
    assert_eq!((counters.tx_packets, counters.tx_bytes), (300, bytes));
    let extended = port.extended_stats().unwrap();
    assert!(extended.contains(&("rx_good_packets".to_owned(), 300)), "{extended:?}");

    drop((port, rx, tx));
    assert_eq!(read(&output), sent);
    // The device is gone with its port, so that it can be had again.
    Port::open(&device).unwrap();
}
