//! What deciding which packets of a burst become super-packets costs, per packet: where nothing merges, and where much does; and
//! what a follower costs when its list is taken apart.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use etherparse::PacketBuilder;
use std::hint::black_box;
use thruway::segment::{Frame, TransportChecksum, follow, group};

const BURST: usize = 64;

/// A burst of so many flows in turn, with payloads of so many bytes.
fn burst(flows: usize, payload: usize, tcp: bool) -> Vec<Vec<u8>> {
    let frame = |i: usize| {
        let (flow, number) = (i % flows, i / flows);
        let mut ip =
            etherparse::Ipv4Header::new(0, 64, etherparse::ip_number::TCP, [10, 0, 0, 1], [10, 0, 1, flow as u8])
                .expect("the payload is short");
        ip.identification = number as u16;
        let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ip(etherparse::IpHeaders::Ipv4(ip, Default::default()));
        let (mut frame, payload) = (Vec::new(), vec![7; payload]);
        let written = if tcp {
            builder.tcp(4000, 443, (number * payload.len()) as u32, 500).ack(1).write(&mut frame, &payload)
        } else {
            builder.udp(4000, 443).write(&mut frame, &payload)
        };
        written.expect("a vector takes all");
        frame
    };
    (0..BURST).map(frame).collect()
}

fn deciding(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("group a burst");
    benches.throughput(Throughput::Elements(BURST as u64));
    for (name, flows, payload, tcp, followers) in [
        ("TCP without payload", 64, 0, true, 0),
        ("UDP, 64 flows", 64, 18, false, 0),
        ("TCP, 64 flows", 64, 1000, true, 0),
        ("TCP, 8 flows", 8, 1000, true, 56),
        ("TCP, 1 flow", 1, 1000, true, 62),
    ] {
        let frames = burst(flows, payload, tcp);
        let decide = || {
            group(BURST, u32::MAX, |i| Frame {
                first_segment: &frames[i],
                frame_len: frames[i].len() as u32,
                transport_checksum: TransportChecksum::Good,
                is_merged: false,
            })
        };
        assert_eq!(decide().followers(), followers, "{name}");
        benches.bench_function(name, |bencher| bencher.iter(|| black_box(decide())));
    }
    benches.finish();
}

fn taking_apart(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("take a list apart");
    benches.throughput(Throughput::Elements(BURST as u64 - 1));
    let mut frames = burst(1, 1000, true);
    let mut leader = frames.remove(0);
    benches.bench_function("follow", |bencher| {
        bencher.iter(|| {
            // Up and down, so that each time there is something to change.
            leader[22] ^= 1;
            for frame in &mut frames {
                follow(black_box(&leader), frame);
            }
        });
    });
    benches.finish();
}

criterion_group!(benches, deciding, taking_apart);
criterion_main!(benches);
