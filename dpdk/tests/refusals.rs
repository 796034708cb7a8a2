//! What a port refuses, and how it says so.

mod common {
    pub mod environment;
}

use dpdk::mempool::{DEFAULT_DATA_ROOM, HEADROOM};
use dpdk::offload::RssTypes;
use dpdk::{Mempool, Port, PortConfig, PortError};

fn pool(name: &str, data_room: u16) -> Mempool {
    common::environment::start("refusals");
    Mempool::create(name, 255, 0, data_room, None).unwrap()
}

/// What `net_null` says to a configuration.
fn null(number: u32, config: &PortConfig) -> Result<dpdk::RunningPort, PortError> {
    Port::open(&format!("net_null{number}")).unwrap().configure_and_start(config)
}

#[test]
fn devices_that_are_not_there() {
    common::environment::start("refusals");
    let error = |device: &str| Port::open(device).unwrap_err().to_string();
    assert_eq!(error("0000:ff:1f.7"), "device 0000:ff:1f.7: no such PCI device: lspci -D lists them");
    assert_eq!(error("ff:1f.7,port=1"), "device ff:1f.7,port=1: no such PCI device: lspci -D lists them");
    assert!(error("net_nothing0").starts_with("device net_nothing0: there is no such device. "));
    let wrong_argument = error("net_pcap7,rx_pcap=/nonexistent.pcap");
    assert!(wrong_argument.contains("/nonexistent.pcap"), "{wrong_argument}");
    for name in ["", ",", "  ,x=1", "net_null0,\0"] {
        assert!(matches!(Port::open(name), Err(PortError::BadName { .. })), "{name:?}");
    }
    // A device that was refused can be had with better arguments.
    assert!(matches!(Port::open("net_pcap7,rx_pcap=/nonexistent.pcap"), Err(PortError::Probe { .. })));
}

#[test]
fn queues_that_are_not_there() {
    let pool = pool("queues", DEFAULT_DATA_ROOM);
    let most = Port::open("net_null1").unwrap().info().unwrap().max_rx_queues;
    let many = vec![pool.clone(); usize::from(most) + 1];
    let error = null(1, &PortConfig::new(many, 1)).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("device net_null1: {} RX queues asked for, the device supports at most {most}", u32::from(most) + 1)
    );
    let error = null(1, &PortConfig::new(vec![pool.clone()], u16::MAX)).unwrap_err();
    assert!(matches!(error, PortError::TooManyQueues { direction: "TX", asked: 65_535, .. }), "{error}");
    assert!(matches!(null(1, &PortConfig::new(vec![], 1)), Err(PortError::NoQueues { direction: "RX", .. })));
    assert!(matches!(null(1, &PortConfig::new(vec![pool], 0)), Err(PortError::NoQueues { direction: "TX", .. })));
}

#[test]
fn mtus_that_cannot_be() {
    let (usual, large) = (pool("usual", DEFAULT_DATA_ROOM), pool("large", HEADROOM + 9018));
    let with_mtu = |pool: &Mempool, mtu| {
        let mut config = PortConfig::new(vec![pool.clone()], 1);
        config.mtu = mtu;
        null(2, &config)
    };
    let error = with_mtu(&usual, 9000).unwrap_err().to_string();
    assert_eq!(
        error,
        "device net_null2: frames of MTU 9000 need packet buffers with a data room of 9146 bytes, the pool's have \
         2176, and the device cannot scatter a frame over several: make the data room larger or the MTU smaller"
    );
    let error = with_mtu(&usual, 30).unwrap_err();
    assert!(matches!(error, PortError::Mtu { mtu: 30, least: 68 | 46, .. }), "{error}");
    assert!(with_mtu(&large, 9001).is_err());
    assert_eq!(with_mtu(&large, 9000).unwrap().applied().mtu, 9000);
}

#[test]
fn what_the_device_changes_is_told() {
    let pool = pool("changes", DEFAULT_DATA_ROOM);
    let mut config = PortConfig::new(vec![pool.clone(), pool], 1);
    config.rx_descriptors = 0;
    config.promiscuous = true;
    let running = null(3, &config).unwrap();
    let applied = running.applied();
    assert!(applied.rx_descriptors > 0);
    assert_eq!(
        applied.rx_checksum,
        running.info().unwrap().rx_offloads.contains(dpdk::offload::RxOffloads::IPV4_CHECKSUM)
    );
    assert!(RssTypes::FLOWS.contains(applied.rss));
    assert!(running.take_rx_queue(1).is_ok());
}

#[test]
fn addresses_are_set_or_refused() {
    let pool = pool("addresses", DEFAULT_DATA_ROOM);
    let mut config = PortConfig::new(vec![pool], 1);
    // This driver makes an address up each time it is opened.
    let port = Port::open("net_null4").unwrap();
    let own = port.mac().unwrap();
    assert_eq!(port.configure_and_start(&config).unwrap().applied().mac, own);
    config.mac = Some([2, 0, 0, 0, 0, 7]);
    assert_eq!(null(4, &config).unwrap().applied().mac, [2, 0, 0, 0, 0, 7]);
    // A group address is no address of a port.
    config.mac = Some([0xff; 6]);
    let error = null(4, &config).unwrap_err();
    assert!(matches!(error, PortError::Mac { .. }), "{error}");
}
