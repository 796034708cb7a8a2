//! What the qdisc costs a core that is alone, over a device that takes everything: packets go past it, through its bands, or
//! there is none. `thruway bench qdisc` measures with several threads.

use arrayvec::ArrayVec;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use thruway::qdisc::{BandMap, Deferred, Device, OnRings, Packet, Room, Root, Settings, Total};
use thruway::queue::Item;

const GROUP: usize = 32;
const BYTES: u32 = 60;

/// A packet that is never freed.
#[repr(transparent)]
struct Parcel(&'static u64);

// SAFETY: a reference to an integer of 64 bits, aligned.
unsafe impl Item for Parcel {
    const ALIGNMENT: usize = align_of::<u64>();
}

impl Packet for Parcel {
    fn bytes(&self) -> u32 {
        BYTES
    }

    fn traffic_class(&self) -> u8 {
        *self.0 as u8
    }
}

struct Null;

impl Device<Parcel> for Null {
    fn transmit<const N: usize>(&mut self, train: &mut ArrayVec<Parcel, N>) -> Room {
        black_box(train).clear();
        Room::Left
    }
}

static STOCK: [u64; GROUP] = [0; GROUP];

fn group(size: usize) -> ArrayVec<Parcel, GROUP> {
    STOCK.iter().take(size).map(Parcel).collect()
}

fn one_core(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("send a group");
    for size in [1, 8, 32] {
        benches.throughput(Throughput::Elements(size as u64));
        let offered = Total { packets: size as u64, bytes: size as u64 * u64::from(BYTES) };
        for (name, bypass) in [("bypass", true), ("bands", false)] {
            let settings = Settings { id: 0, cores: 1, bypass, quota: 64, retry_interval: 1, map: BandMap::default() };
            let root: Root<OnRings<Parcel, Null>, GROUP> =
                Root::on_rings(settings, 1024, Null).expect("the capacity is small");
            let mut core = Deferred::new(0, 1);
            benches.bench_function(BenchmarkId::new(name, size), |bencher| {
                bencher.iter(|| root.transmit(&mut core, &mut group(black_box(size)), offered));
            });
            assert_eq!(root.statistics().backlog.packets, 0);
        }
        benches.bench_function(BenchmarkId::new("noqueue", size), |bencher| {
            bencher.iter(|| Null.transmit(&mut group(black_box(size))));
        });
    }
    benches.finish();
}

criterion_group!(benches, one_core);
criterion_main!(benches);
