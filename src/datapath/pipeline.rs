//! The whole way of a packet, a burst at a time.

mod policed;

use super::batch::{self, Batch, Check, Isa, Key, Passed, Work};
use super::buffer::{BURST, Burst, ChecksumStatus, PacketBuf, RxBurst, TxBurst};
use super::counters::WorkerCounters;
use super::output::Outputs;
use super::policing::Scratch;
use super::snapshot::{ETHERNET_HEADER, Family, NextHop, Snapshot};
use crate::drop_reason::DropReason;
use crate::fib::Ipv6Key;
use crate::packet::{self, Examined};
use crate::qdisc::Total;
use crate::units::{MacAddr, PortId};

/// Where a burst came in.
#[derive(Clone, Copy, Debug)]
pub struct Ingress {
    /// The port.
    pub port: PortId,
    /// Its MAC address; frames to any other are not ours.
    pub mac: MacAddr,
}

/// One worker's room to forward in. It keeps nothing from one burst to the next but a guess.
pub struct Pipeline<B> {
    ipv4: Box<Batch<B>>,
    ipv6: Box<Batch<B>>,
    groups: Box<[Group<B>]>,
    trash: Burst<B>,
    scratch: Box<Scratch>,
    guess: Guess,
    isa: Isa,
}

/// What the last burst was: the next is usually like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guess {
    All(Family),
    Mixed,
}

/// Packets of one burst that leave by one port.
struct Group<B> {
    packets: Burst<B>,
    total: Total,
}

impl<B: PacketBuf> Pipeline<B> {
    /// For `ports` ports, checking headers by `isa`.
    pub fn new(ports: usize, isa: Isa) -> Self {
        Self {
            ipv4: Batch::new(),
            ipv6: Batch::new(),
            groups: (0..ports).map(|_| Group { packets: Burst::new(), total: Total::default() }).collect(),
            trash: Burst::new(),
            scratch: Scratch::new(),
            guess: Guess::All(Family::Ipv4),
            isa,
        }
    }

    /// Receives a burst and forwards it: afterwards each packet is with a device, or freed and counted
    /// under its reason. Returns how many there were.
    #[inline(always)]
    pub fn forward<T: TxBurst<Buf = B>>(
        &mut self,
        queue: &mut impl RxBurst<Buf = B>,
        ingress: Ingress,
        tables: &Snapshot,
        outputs: &mut Outputs<T>,
        counters: &WorkerCounters,
    ) -> usize {
        let (family, mixed) = match self.guess {
            Guess::All(family) => (family, false),
            Guess::Mixed => (Family::Ipv4, true),
        };
        let count = self.batch(family).receive(queue, tables.burst());
        if count == 0 {
            return 0;
        }
        counters.count_burst(count);
        counters.port(ingress.port).rx_packets.add(count as u64);

        let merged = count != self.batch(family).len();
        let mut path = Path { ingress, tables, outputs, counters, merged };
        if mixed {
            self.part();
        }
        self.forward_whole(family, &mut path);
        if mixed {
            self.forward_whole(family.other(), &mut path);
        }
        count
    }

    /// As [`Pipeline::forward_family`], in code of its own for each family and way of checking headers: nothing
    /// asks for each packet which it is.
    #[inline(always)]
    fn forward_whole<T: TxBurst<Buf = B>>(&mut self, family: Family, path: &mut Path<'_, T>) {
        let isa = self.isa;
        match family {
            Family::Ipv4 => isa.apply(Forward::<_, _, false> { pipeline: self, path }),
            Family::Ipv6 => isa.apply(Forward::<_, _, true> { pipeline: self, path }),
        }
    }

    /// Forwards the packets of one family.
    #[inline(always)]
    fn forward_family<C: Check, T: TxBurst<Buf = B>>(
        &mut self,
        family: Family,
        proof: C::Proof,
        path: &mut Path<'_, T>,
    ) {
        // Check the headers (version, lengths, checksum, TTL, source, our MAC address), look the destinations up, and
        // rewrite what is simply forwarded.
        let (mac, tables) = (path.ingress.mac, path.tables);
        let mut passed = self.batch(family).pass::<C>(family, mac, proof, tables);
        if path.merged {
            passed.bytes += self.batch(family).followers().bytes;
        }
        path.counters.port(path.ingress.port).rx_bytes.add(passed.bytes);
        let mut as_received = passed.left | passed.special == 0 && !passed.padded;
        if let Some(policing) = &path.tables.policing {
            as_received = self.police(family, &mut passed, as_received, policing, path);
        } else if !as_received {
            self.attend(family, &mut passed, path);
        }

        // Send: as one burst where all leave by one port.
        let Self { ipv4, ipv6, groups, .. } = self;
        let batch = match family {
            Family::Ipv4 => ipv4,
            Family::Ipv6 => ipv6,
        };
        if passed.ports.is_power_of_two() {
            let port = PortId(passed.ports.trailing_zeros() as u16);
            let total = if path.merged {
                batch.total()
            } else {
                let bytes = if as_received { passed.bytes } else { batch.bytes() };
                Total { packets: batch.len() as u64, bytes }
            };
            path.send(port, batch.packets(), total);
        } else if batch.len() != 0 {
            scatter(batch, groups, path);
        }
    }

    /// Deals with what is out of the ordinary: packets that need a closer look, most of which turn out good, those
    /// that are not simply forwarded, and link padding. Those that go no further are freed and counted.
    #[inline(never)]
    fn attend<T: TxBurst<Buf = B>>(&mut self, family: Family, passed: &mut Passed, path: &mut Path<'_, T>) {
        let dropped = self.examine(family, passed, path);
        self.refuse(family, passed.special, path);
        self.dismiss(family, dropped | passed.special);
    }

    /// Takes a closer look at those that need one. Those that go no further are counted, and returned as bits.
    fn examine<T: TxBurst<Buf = B>>(&mut self, family: Family, passed: &mut Passed, path: &Path<'_, T>) -> u64 {
        let Path { ingress, tables, counters, .. } = *path;
        let mut strangers = 0;
        let look = |packet: &B| {
            let looked = look(packet, ingress.mac, tables);
            strangers += usize::from(looked.is_ok_and(|examined| examined.key.family() != family));
            looked
        };
        let batch = self.batch(family);
        let count = |reason, packets| counters.drops(reason).add(packets);
        let dropped = batch.examine(family, tables, passed, look, count);
        if strangers != 0 {
            self.guess = if strangers == batch.len() { Guess::All(family.other()) } else { Guess::Mixed };
        }
        dropped
    }

    /// Counts those that are not simply forwarded, each under its reason.
    fn refuse<T: TxBurst<Buf = B>>(&mut self, family: Family, special: u64, path: &Path<'_, T>) {
        let batch = self.batch(family);
        for i in batch::bits(special) {
            let (hop, frame_len) = batch.next_hop(i, &path.tables.next_hops);
            // The pass forwards whatever has no reason to be refused.
            let reason = hop.refusal(frame_len, false).unwrap_or(DropReason::TooBig);
            path.counters.drops(reason).add(batch.wire_packets(i));
        }
    }

    /// Frees those that go no further, and cuts link padding off the others.
    fn dismiss(&mut self, family: Family, dropped: u64) {
        let Self { ipv4, ipv6, trash, .. } = self;
        let batch = match family {
            Family::Ipv4 => ipv4,
            Family::Ipv6 => ipv6,
        };
        if dropped != 0 {
            batch.dismiss(dropped, trash);
            B::free(trash);
        }
        batch.trim();
    }

    #[inline(always)]
    fn batch(&mut self, family: Family) -> &mut Batch<B> {
        match family {
            Family::Ipv4 => &mut self.ipv4,
            Family::Ipv6 => &mut self.ipv6,
        }
    }

    /// Moves IPv6 packets over to their batch. Notes what kind of burst it was.
    fn part(&mut self) {
        let Self { ipv4, ipv6, guess, .. } = self;
        let moving = ipv4.ipv6_packets();
        *guess = match moving.count_ones() as usize {
            0 => Guess::All(Family::Ipv4),
            count if count == ipv4.len() => Guess::All(Family::Ipv6),
            _ => Guess::Mixed,
        };
        ipv4.part(moving, ipv6);
    }
}

/// To forward the packets of one family.
struct Forward<'p, 'a, B, T: TxBurst, const IPV6: bool> {
    pipeline: &'p mut Pipeline<B>,
    path: &'p mut Path<'a, T>,
}

impl<B: PacketBuf, T: TxBurst<Buf = B>, const IPV6: bool> Work for Forward<'_, '_, B, T, IPV6> {
    type Output = ();

    #[inline(always)]
    fn run<C: Check>(self, proof: C::Proof) {
        let family = if IPV6 { Family::Ipv6 } else { Family::Ipv4 };
        self.pipeline.forward_family::<C, T>(family, proof, self.path);
    }
}

/// What the stages of one burst share.
struct Path<'a, T: TxBurst> {
    ingress: Ingress,
    tables: &'a Snapshot,
    outputs: &'a mut Outputs<T>,
    counters: &'a WorkerCounters,
    /// Some packets of the burst lead others.
    merged: bool,
}

impl<T: TxBurst> Path<'_, T> {
    #[inline(always)]
    fn send(&mut self, port: PortId, packets: &mut Burst<T::Buf>, total: Total) {
        self.outputs.send(port, packets, total, self.counters);
    }
}

/// One packet, every check there is before its destination is looked up. A packet whose TTL ends here is
/// looked up at once, because having no route comes before that.
#[inline(always)]
fn look<B: PacketBuf>(packet: &B, mac: MacAddr, tables: &Snapshot) -> Result<batch::Examined, DropReason> {
    let frame = packet::Frame {
        first_segment: packet.segment(),
        frame_len: packet.lengths().frame(),
        // A card that finds fault is not believed, since those who do not come here are not asked about.
        checksum: match packet.checksum() {
            ChecksumStatus::Good => ChecksumStatus::Good,
            ChecksumStatus::Unknown | ChecksumStatus::Bad => ChecksumStatus::Unknown,
        },
    };
    let (key, length, ttl) = match packet::examine(frame, mac)? {
        Examined::V4 { destination, total_len, ttl } => (Key::Ipv4(destination), u32::from(total_len), ttl),
        Examined::V6 { destination, total_len, hop_limit } => {
            (Key::Ipv6(Ipv6Key { high: destination.0, low: destination.1 }), total_len, hop_limit)
        }
    };
    let wire = ETHERNET_HEADER + length;
    if ttl <= 1 {
        return Err(next_hop(key, tables).refusal(wire, true).unwrap_or(DropReason::TtlExpired));
    }
    Ok(batch::Examined { wire, key })
}

#[cold]
fn next_hop(key: Key, tables: &Snapshot) -> &NextHop {
    tables.next_hops.get(match key {
        Key::Ipv4(key) => tables.ipv4.lookup(key),
        Key::Ipv6(key) => tables.ipv6.lookup(key),
    })
}

/// Sorts packets by port, keeping their order, and sends each group.
#[inline(never)]
fn scatter<T: TxBurst>(batch: &mut Batch<T::Buf>, groups: &mut [Group<T::Buf>], path: &mut Path<'_, T>) {
    let mut used = 0u64;
    let merged = path.merged;
    batch.scatter(&path.tables.next_hops, |port, packet, wire| {
        let group = &mut groups[port.index()];
        group.total.add(Total {
            packets: if merged { packet.wire_packets().into() } else { 1 },
            bytes: if merged { packet.wire_bytes() } else { wire }.into(),
        });
        group.packets.push(packet);
        used |= 1 << port.index();
    });
    while used != 0 {
        let port = PortId(used.trailing_zeros() as u16);
        used &= used - 1;
        let group = &mut groups[port.index()];
        path.send(port, &mut group.packets, std::mem::take(&mut group.total));
    }
}

/// Most ports a pipeline can send to.
pub use super::snapshot::MAX_PORTS;

const _: () = assert!(BURST <= u64::BITS as usize, "a burst's packets are marked by the bits of a word");
