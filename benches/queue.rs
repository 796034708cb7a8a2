//! Enqueueing and dequeueing on one core, in bulks of 1, 8 and 32: the ring, also with one producer only, and crossbeam's
//! `ArrayQueue`. `thruway bench queue` measures on several cores, and beside DPDK's ring.

use arrayvec::ArrayVec;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use crossbeam_queue::ArrayQueue;
use std::hint::black_box;
use thruway::queue::{Producer, Ring};

const CAPACITY: usize = 1024;

fn one_core(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("enqueue and dequeue");
    for bulk in [1, 8, 32] {
        group.throughput(Throughput::Elements(bulk));
        let boxes = || -> ArrayVec<Box<u64>, 32> { (0..bulk).map(Box::new).collect() };
        let (ring, mut consumer) = Ring::new(CAPACITY).expect("the capacity is small");
        group.bench_function(BenchmarkId::new("ring", bulk), |bencher| {
            let mut burst = boxes();
            bencher.iter(|| {
                ring.enqueue(black_box(&mut burst));
                consumer.dequeue(&mut burst, 32);
            });
            assert_eq!(burst.len() as u64, bulk);
        });
        let (mut producer, mut consumer) = Producer::new(CAPACITY).expect("the capacity is small");
        group.bench_function(BenchmarkId::new("ring of one producer", bulk), |bencher| {
            let mut burst = boxes();
            bencher.iter(|| {
                producer.enqueue(black_box(&mut burst));
                consumer.dequeue(&mut burst, 32);
            });
            assert_eq!(burst.len() as u64, bulk);
        });
        let queue = ArrayQueue::new(CAPACITY);
        group.bench_function(BenchmarkId::new("ArrayQueue", bulk), |bencher| {
            let mut burst = boxes();
            bencher.iter(|| {
                for item in black_box(&mut burst).drain(..) {
                    drop(queue.push(item));
                }
                burst.extend(std::iter::from_fn(|| queue.pop()));
            });
            assert_eq!(burst.len() as u64, bulk);
        });
    }
    group.finish();
}

criterion_group!(benches, one_core);
criterion_main!(benches);
