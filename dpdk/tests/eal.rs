//! The life of the environment, in one process from before its start until after its end.

use dpdk::mempool::DEFAULT_DATA_ROOM;
use dpdk::{Eal, EalError, Mempool, Port, PortError, clock, eal, ring, thread};
use rustix::thread::sched_getaffinity;

#[test]
fn starts_once_restores_the_cores_and_is_given_up_when_unused() {
    assert!(matches!(Port::open("net_null0"), Err(PortError::Eal(EalError::NotRunning))));
    assert!(Mempool::create("early", 255, 0, DEFAULT_DATA_ROOM, None).is_err());
    assert!(thread::register().is_err());

    let cores = sched_getaffinity(None).unwrap();
    let started = Eal::init(arguments("eal").into_iter().chain(["--vdev=net_null5".to_owned()])).unwrap();
    assert_eq!(sched_getaffinity(None).unwrap(), cores, "the mask is restored");
    assert!(matches!(Eal::init(arguments("again")), Err(EalError::AlreadyStarted)));
    assert!(clock::tsc_hz() > 1_000_000);
    let ticks = clock::tsc();
    assert!(clock::tsc() > ticks);
    assert!(eal::version().starts_with("DPDK 2"), "{}", eal::version());

    let pool = Mempool::create("packets", 255, 0, DEFAULT_DATA_ROOM, None).unwrap();
    let packet = pool.alloc().unwrap();
    let rings = ring::create("ring", 16, None).unwrap();
    let port = Port::open("net_null0").unwrap();
    // A device that is there from the start is found, not probed again.
    let early = Port::open("net_null5").unwrap();
    assert!(matches!(Port::open("net_null5"), Err(PortError::AlreadyOpen { .. })));

    let mut started = refused(started, "2 ports, 1 rings, 1 pools with handles, 1 packets left");
    drop((port, early, rings));
    started = refused(started, "1 pools with handles, 1 packets left");
    drop(pool);
    started = refused(started, "1 packets left");
    drop(packet);
    started.shutdown().map_err(|(_, error)| error).unwrap();

    assert!(matches!(Port::open("net_null0"), Err(PortError::Eal(EalError::NotRunning))));
    assert!(matches!(Eal::init(arguments("late")), Err(EalError::AlreadyStarted)));
}

/// Gives the environment back when it refuses to be given up for this reason.
fn refused(eal: Eal, reason: &str) -> Eal {
    let (eal, error) = eal.shutdown().expect_err("something is left");
    assert!(error.to_string().contains(reason), "{error}");
    eal
}

/// The arguments of an environment that needs neither root nor hugepages nor devices.
fn arguments(prefix: &str) -> Vec<String> {
    let prefix = format!("--file-prefix=dpdk-test-{prefix}");
    ["--no-huge", "-m", "128", "--no-pci", "--no-shconf", "--no-telemetry", "--iova-mode=va", prefix.as_str()]
        .map(str::to_owned)
        .to_vec()
}
