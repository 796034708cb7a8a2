//! Packets made of bytes.

use dpdk::{Mbuf, Mempool};

/// A packet of these bytes.
pub fn packet(pool: &Mempool, bytes: &[u8]) -> Mbuf {
    let mut packet = pool.alloc().expect("the pool has a packet");
    packet.extend_from_slice(bytes).expect("the bytes fit");
    packet
}

/// A packet of these segments.
pub fn chain(pool: &Mempool, segments: &[&[u8]]) -> Mbuf {
    let (first, rest) = segments.split_first().expect("a packet has a segment");
    let mut head = packet(pool, first);
    for segment in rest {
        head.chain(packet(pool, segment)).expect("the chain is short");
    }
    head
}
