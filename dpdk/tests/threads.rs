//! Threads that DPDK knows, and the cores they may use.

mod common;

use std::sync::{Arc, Barrier};

use dpdk::thread;
use rustix::thread::sched_getaffinity;

#[test]
fn a_thread_has_a_number_while_it_is_registered() {
    common::start("threads");
    std::thread::spawn(|| {
        assert_eq!(thread::number(), None);
        let registration = thread::register().unwrap();
        let number = thread::number().unwrap();
        {
            let _second = thread::register().unwrap();
            assert_eq!(thread::number(), Some(number));
        }
        assert_eq!(thread::number(), Some(number), "the outer registration is the one that counts");
        drop(registration);
        assert_eq!(thread::number(), None);
    })
    .join()
    .unwrap();
}

#[test]
fn threads_have_different_numbers_until_none_is_left() {
    common::start("threads");
    let count = 130;
    let all_asked = Arc::new(Barrier::new(count));
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let all_asked = Arc::clone(&all_asked);
            std::thread::spawn(move || {
                let registration = thread::register();
                let number = registration.as_ref().ok().and_then(|_| thread::number());
                all_asked.wait();
                number
            })
        })
        .collect();
    let mut numbers: Vec<u32> = threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect();
    let given = numbers.len();
    assert!((64..128).contains(&given), "{given}");
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), given);
}

#[test]
fn pinning_lasts_as_long_as_its_guard() {
    let before = sched_getaffinity(None).unwrap();
    let core = (0..1024).find(|core| before.is_set(*core)).unwrap();
    let pinning = thread::pin_to(core).unwrap();
    let during = sched_getaffinity(None).unwrap();
    assert!(during.is_set(core) && during.count() == 1);
    drop(pinning);
    assert_eq!(sched_getaffinity(None).unwrap(), before);
    assert!(thread::pin_to(1023).is_err());
    assert!(thread::pin_to(usize::MAX).is_err());
    assert_eq!(sched_getaffinity(None).unwrap(), before);
}
