//! The life of the environment, in one process from before its start until after its end.

mod common;

use dpdk::mempool::DEFAULT_DATA_ROOM;
use dpdk::{Eal, EalError, Mempool, Port, PortError, clock, ring, thread};
use rustix::thread::sched_getaffinity;

#[test]
fn starts_once_restores_the_cores_and_is_given_up_when_unused() {
    assert!(matches!(Port::open("net_null0"), Err(PortError::Eal(EalError::NotRunning))));
    assert!(Mempool::create("early", 255, 0, DEFAULT_DATA_ROOM, None).is_err());
    assert!(thread::register().is_err());

    // One core only, and not the one that DPDK would choose by itself when there are several.
    let cores = sched_getaffinity(None).unwrap();
    let last = (0..1024).rev().find(|core| cores.is_set(*core)).unwrap();
    let pinned = thread::pin_to(last).unwrap();
    drop(pinned);
    assert_eq!(sched_getaffinity(None).unwrap(), cores);

    let arguments = common::arguments("eal").into_iter().chain(["--vdev=net_null5".to_owned()]);
    let eal = Eal::init(arguments).unwrap();
    assert_eq!(sched_getaffinity(None).unwrap(), cores, "the mask is restored");
    assert!(matches!(Eal::init(common::arguments("again")), Err(EalError::AlreadyStarted)));
    assert!(clock::tsc_hz() > 1_000_000);

    let pool = Mempool::create("packets", 255, 0, DEFAULT_DATA_ROOM, None).unwrap();
    let packet = pool.alloc().unwrap();
    let rings = ring::create("ring", 16, None).unwrap();
    let port = Port::open("net_null0").unwrap();
    // A device that is there from the start is found, not probed again.
    let early = Port::open("net_null5").unwrap();
    assert!(matches!(Port::open("net_null5"), Err(PortError::AlreadyOpen { .. })));

    let mut eal = refused(eal, "2 ports, 1 rings, 1 pools with handles, 1 packets left");
    drop((port, early, rings));
    eal = refused(eal, "1 pools with handles, 1 packets left");
    drop(pool);
    eal = refused(eal, "1 packets left");
    drop(packet);
    eal.shutdown().map_err(|(_, error)| error).unwrap();

    assert!(matches!(Port::open("net_null0"), Err(PortError::Eal(EalError::NotRunning))));
    assert!(matches!(Eal::init(common::arguments("late")), Err(EalError::AlreadyStarted)));
}

/// Gives the environment back when it refuses to be given up for this reason.
fn refused(eal: Eal, reason: &str) -> Eal {
    let (eal, error) = eal.shutdown().expect_err("something is left");
    assert!(error.to_string().contains(reason), "{error}");
    eal
}
