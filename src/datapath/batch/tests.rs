use super::check::Totals;
use super::*;
use crate::datapath::buffer::Lengths;
use crate::datapath::memory::{MemoryPacket, MemoryPool, MemoryQueue};
use crate::datapath::snapshot::NextHop;
use crate::fib::{Ipv4Routes, Ipv6Routes};
use crate::packet::{self, Frame};
use etherparse::{Ipv4Header, PacketBuilder};
use proptest::prelude::*;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

fn batch(pool: &MemoryPool, frames: &[Vec<u8>]) -> Box<Batch<MemoryPacket>> {
    let mut queue = MemoryQueue::new(LANES);
    queue.packets.extend(frames.iter().map(|frame| pool.packet(frame)));
    let mut batch = Batch::new();
    assert_eq!(batch.receive(&mut queue, LANES), frames.len());
    batch
}

fn frames(batch: &mut Batch<MemoryPacket>) -> Vec<Vec<u8>> {
    batch.packets().iter().map(MemoryPacket::frame).collect()
}

/// What a way of checking says of all packets: those that are odd, and the totals.
struct Checked<'a, B>(Family, &'a mut Batch<B>);

impl<B: PacketBuf> Work for Checked<'_, B> {
    type Output = (u64, Totals);

    #[inline(always)]
    fn run<C: Check>(self, proof: C::Proof) -> Self::Output {
        let Self(family, batch) = self;
        let (mut check, mut odd) = (C::new(proof, family, MAC), 0);
        batch.gather();
        for at in (0..batch.len()).step_by(GROUP) {
            let len = GROUP.min(batch.len() - at);
            // SAFETY: as in `Batch::pass`.
            odd |= u64::from(unsafe { check.group(family, &mut batch.lanes, at, len) }) << at;
        }
        (odd, check.totals())
    }
}

/// A good IPv4 or IPv6 header in a frame, then some bytes of it damaged.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let ipv4 = (any::<[u8; 2]>(), 0..30usize, any::<u8>(), 0..12usize, any::<[u8; 8]>()).prop_map(
        |(id, payload, ttl, padding, addresses)| {
            let mut frame = [&MAC.0[..], &[2, 0, 0, 0, 0, 9, 8, 0], &[0; 20]].concat();
            frame[14] = 0x45;
            frame[16..18].copy_from_slice(&(20 + payload as u16).to_be_bytes());
            frame[18..20].copy_from_slice(&id);
            (frame[22], frame[23]) = (ttl, 17);
            frame[26..34].copy_from_slice(&addresses);
            let sum = packet::checksum::Sum::of(&frame[14..34]).checksum();
            frame[24..26].copy_from_slice(&sum.get().to_be_bytes());
            frame.resize(34 + payload + padding, 0x5a);
            frame
        },
    );
    let ipv6 = (any::<u8>(), 0..30usize, any::<u8>(), 0..12usize, any::<[u8; 32]>()).prop_map(
        |(class, payload, limit, padding, addresses)| {
            let mut frame = [&MAC.0[..], &[2, 0, 0, 0, 0, 9, 0x86, 0xdd], &[0; 40]].concat();
            frame[14] = 0x60 | class >> 4;
            frame[18..20].copy_from_slice(&(payload as u16).to_be_bytes());
            (frame[20], frame[21]) = (17, limit);
            frame[22..54].copy_from_slice(&addresses);
            frame.resize(54 + payload + padding, 0x5a);
            frame
        },
    );
    let damage = proptest::option::weighted(0.4, (0..64usize, any::<u8>()));
    let cut = proptest::option::weighted(0.1, 0..60usize);
    (prop_oneof![ipv4, ipv6], damage, cut).prop_map(|(mut frame, damage, cut)| {
        if let Some((at, with)) = damage
            && let Some(byte) = frame.get_mut(at)
        {
            *byte = with;
        }
        frame.truncate(cut.unwrap_or(frame.len()));
        frame
    })
}

/// What one packet's closer look notes, with the TTL.
fn look(frame: &[u8]) -> Option<(Family, u32, Key, u8)> {
    let frame =
        Frame { first_segment: frame, frame_len: frame.len() as u32, checksum: packet::ChecksumStatus::Unknown };
    match packet::examine(frame, MAC).ok()? {
        packet::Examined::V4 { destination, total_len, ttl } => {
            Some((Family::Ipv4, 14 + u32::from(total_len), Key::Ipv4(destination), ttl))
        }
        packet::Examined::V6 { destination: (high, low), total_len, hop_limit } => {
            Some((Family::Ipv6, 14 + total_len, Key::Ipv6(Ipv6Key { high, low }), hop_limit))
        }
    }
}

/// Any way of validating that this processor has.
fn way() -> impl Strategy<Value = Isa> {
    proptest::sample::select(Isa::available())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// What any way calls good, the exact examination does and both note the same.
    #[test]
    fn every_way_of_checking_agrees_with_the_examination(
        frames in proptest::collection::vec(frame(), 1..=LANES),
        ipv6: bool,
        isa in way(),
    ) {
        let family = if ipv6 { Family::Ipv6 } else { Family::Ipv4 };
        let pool = MemoryPool::default();
        let mut batch = batch(&pool, &frames);
        let (odd, totals) = isa.apply(Checked(family, &mut batch));
        prop_assert_eq!(totals.bytes as usize, frames.iter().map(Vec::len).sum::<usize>());
        for (i, frame) in frames.iter().enumerate() {
            if odd >> i & 1 != 0 {
                continue;
            }
            let Some((found, wire, key, ttl)) = look(frame) else {
                return Err(TestCaseError::fail(format!("packet {i} passed: {frame:02x?}")));
            };
            prop_assert_eq!(found, family);
            prop_assert!(ttl > 1);
            prop_assert_eq!(batch.lanes.wire[i], wire);
            prop_assert!(totals.padded || wire as usize == frame.len());
            match key {
                Key::Ipv4(key) => {
                    prop_assert_eq!(batch.lanes.keys[i], key);
                    let word = u32::from_le_bytes(frame[22..26].try_into().unwrap());
                    prop_assert_eq!(batch.lanes.words[i], decrement_ttl(word));
                }
                Key::Ipv6(key) => prop_assert_eq!(batch.lanes.keys6[i], key),
            }
        }
    }

    /// A good frame is not odd, whatever is beside it: else it would be right but slow.
    #[test]
    fn common_packets_need_no_closer_look(frame in frame(), beside in frame(), copies in 1..LANES, isa in way()) {
        let Some((family, wire, _, ttl)) = look(&frame) else { return Ok(()) };
        let coarse = family == Family::Ipv6 && (wire == 54 || matches!(frame[22], 0 | 0xfe));
        prop_assume!(ttl > 1 && !coarse && frame[14] != 0x46);
        let plain = family == Family::Ipv6 || frame[14] == 0x45;
        prop_assume!(plain);
        let pool = MemoryPool::default();
        let mut frames = vec![frame.clone(); copies];
        let (odd, totals) = isa.apply(Checked(family, &mut batch(&pool, &frames)));
        prop_assert_eq!((odd, totals.padded), (0, wire as usize != frame.len()));
        frames[copies / 2] = beside;
        let (odd, _) = isa.apply(Checked(family, &mut batch(&pool, &frames)));
        prop_assert_eq!(odd & !(1 << (copies / 2)), 0);
    }

    /// Parting keeps each packet once, on its side, in order.
    #[test]
    fn parting_keeps_every_packet_in_order(count in 1..=LANES, mask: u64) {
        let pool = MemoryPool::default();
        let all: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8; 14 + i]).collect();
        let mut here = batch(&pool, &all);
        let mut there = Batch::new();
        here.part(mask, &mut there);
        let side = |bit| all.iter().enumerate().filter(|(i, _)| mask >> i & 1 == bit).map(|(_, f)| f.clone()).collect::<Vec<_>>();
        for (batch, bit) in [(&mut here, 0), (&mut there, 1)] {
            prop_assert_eq!(frames(batch), side(bit));
        }
        drop((here, there));
        prop_assert_eq!(pool.outstanding(), 0);
    }

    /// Dismissing takes exactly the marked packets and keeps the others in order, lengths and next hops along.
    #[test]
    fn dismissing_keeps_the_others_in_order(count in 1..=LANES, mask: u64) {
        let pool = MemoryPool::default();
        let all: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8; 14 + i]).collect();
        let mut batch = batch(&pool, &all);
        for i in 0..count {
            batch.lanes.wire[i] = 14 + i as u32;
            batch.lanes.hops[i] = NextHopId::new(i).unwrap();
        }
        let mut trash = Burst::new();
        batch.dismiss(mask, &mut trash);
        let side = |bit| (0..count).filter(|i| mask >> i & 1 == bit).collect::<Vec<_>>();
        let mut gone: Vec<usize> = trash.iter().map(|packet| packet.frame().len() - 14).collect();
        gone.sort_unstable();
        prop_assert_eq!(gone, side(1));
        let hops: Vec<usize> = (0..batch.len()).map(|i| batch.lanes.hops[i].index()).collect();
        let lengths: Vec<usize> = (0..batch.len()).map(|i| batch.lanes.wire[i] as usize - 14).collect();
        let kept: Vec<usize> = frames(&mut batch).iter().map(|frame| frame.len() - 14).collect();
        prop_assert_eq!((&hops, &lengths, &kept), (&side(0), &side(0), &side(0)));
    }

    #[test]
    fn bits_are_the_positions_of_those_set(mask: u64) {
        let expected: Vec<usize> = (0..64).filter(|i| mask >> i & 1 != 0).collect();
        prop_assert_eq!(bits(mask).collect::<Vec<_>>(), expected);
    }
}

/// A table in which all destinations have one next hop, with this Ethernet header before IPv4 and IPv6.
fn one_way(headers: [[u8; 14]; 2]) -> Snapshot {
    let (mut ipv4, mut ipv6) = (Ipv4Routes::new().unwrap(), Ipv6Routes::new().unwrap());
    let hops = [1, 2].map(|position| NextHopId::new(position).unwrap());
    ipv4.insert("0.0.0.0/0".parse().unwrap(), hops[0]).unwrap();
    ipv6.insert("::/0".parse().unwrap(), hops[1]).unwrap();
    let [v4, v6] = [(Family::Ipv4, headers[0]), (Family::Ipv6, headers[1])].map(|(family, header)| {
        let mac = |at| MacAddr(header[at..at + 6].try_into().unwrap());
        NextHop::forwarding(family, PortId(3), 1500, mac(6), Some(mac(0)))
    });
    let next_hops = NextHops::new(&[NextHop::dropping(DropReason::NoRoute), v4, v6]);
    Snapshot { ipv4: ipv4.fib(), ipv6: ipv6.fib(), next_hops, policing: None }
}

/// The whole pass over a burst of one family.
struct Whole<'a>(Family, &'a mut Batch<MemoryPacket>, &'a Snapshot);

impl Work for Whole<'_> {
    type Output = Passed;

    #[inline(always)]
    fn run<C: Check>(self, proof: C::Proof) -> Passed {
        let Self(family, batch, tables) = self;
        batch.pass::<C>(family, MAC, proof, tables)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// What is forwarded has a new Ethernet header, a lower TTL and a right checksum; all else is as it was.
    #[test]
    fn forwarded_packets_are_rewritten_and_nothing_else_of_them(
        sources: [u8; 16],
        destinations: [u8; 16],
        ttls in proptest::collection::vec(2u8.., 1..=LANES),
        payload in proptest::collection::vec(any::<u8>(), 1..50),
        ipv6: bool,
        isa in way(),
    ) {
        // No martian, whatever the rest is.
        let (mut source4, mut source6) = ([10; 4], sources);
        source4[1..].copy_from_slice(&sources[..3]);
        source6[0] = 0x20;
        let destination4 = destinations[..4].try_into().unwrap();
        let before: Vec<Vec<u8>> = ttls.iter().map(|ttl| {
            let ethernet = PacketBuilder::ethernet2([3; 6], MAC.0);
            let mut frame = Vec::new();
            match ipv6 {
                false => ethernet.ipv4(source4, destination4, *ttl).udp(7, 9).write(&mut frame, &payload),
                true => ethernet.ipv6(source6, destinations, *ttl).udp(7, 9).write(&mut frame, &payload),
            }.unwrap();
            frame
        }).collect();
        let headers = [[8, 0], [0x86, 0xdd]].map(|ethertype| {
            [&[2, 0, 0, 0, 9, 1, 2, 0, 0, 0, 9, 2][..], &ethertype].concat().try_into().unwrap()
        });
        let pool = MemoryPool::default();
        let mut batch = batch(&pool, &before);
        let family = if ipv6 { Family::Ipv6 } else { Family::Ipv4 };
        let passed = isa.apply(Whole(family, &mut batch, &one_way(headers)));
        let bytes = before.iter().map(|frame| frame.len() as u64).sum();
        prop_assert_eq!(passed, Passed { left: 0, odd: 0, special: 0, ports: 1 << 3, padded: false, bytes });
        for (before, after) in before.iter().zip(frames(&mut batch)) {
            let mut expected = before.clone();
            expected[..14].copy_from_slice(&headers[usize::from(ipv6)]);
            if ipv6 {
                expected[21] -= 1;
            } else {
                let (mut header, _) = Ipv4Header::from_slice(&before[14..]).unwrap();
                header.time_to_live -= 1;
                header.header_checksum = header.calc_header_checksum();
                expected[14..34].copy_from_slice(&header.to_bytes());
            }
            prop_assert_eq!(after, expected);
        }
    }
}

#[test]
fn a_chained_frame_is_odd_even_if_its_first_segment_has_the_packet() {
    let pool = MemoryPool::default();
    let mut frame = [&MAC.0[..], &[2, 0, 0, 0, 0, 9, 8, 0], &[0x45, 0, 0, 20, 0, 0, 0, 0, 9, 17, 0, 0]].concat();
    frame.extend([192, 0, 2, 1, 192, 0, 2, 2]);
    let sum = packet::checksum::Sum::of(&frame[14..34]).checksum();
    frame[24..26].copy_from_slice(&sum.get().to_be_bytes());
    for (rest, odd) in [(&[][..], 0), (&[0; 26][..], 1)] {
        for isa in Isa::available().into_iter().filter(|isa| *isa != Isa::Scalar) {
            let mut queue = MemoryQueue::new(1);
            queue.packets.push_back(pool.chain(&frame, rest, packet::ChecksumStatus::Unknown));
            let mut batch = Batch::new();
            batch.receive(&mut queue, LANES);
            assert_eq!(isa.apply(Checked(Family::Ipv4, &mut batch)).0, odd);
        }
    }
}

/// A packet whose driver says that it is longer than memory.
#[repr(transparent)]
struct Boundless(MemoryPacket);

// SAFETY: laid out as the inner packet.
unsafe impl crate::queue::Item for Boundless {
    const ALIGNMENT: usize = <MemoryPacket as crate::queue::Item>::ALIGNMENT;
}

// SAFETY: all that the contract is about is the inner packet's; the length of the frame is not.
unsafe impl PacketBuf for Boundless {
    fn head(&self) -> *mut u8 {
        self.0.head()
    }

    fn lengths(&self) -> Lengths {
        Lengths::new(1 << 31, self.0.lengths().segment())
    }

    fn segment(&self) -> &[u8] {
        self.0.segment()
    }

    fn truncate(&mut self, len: u32) {
        self.0.truncate(len);
    }

    fn checksum(&self) -> packet::ChecksumStatus {
        self.0.checksum()
    }
}

struct One(Option<Boundless>);

impl RxBurst for One {
    type Buf = Boundless;

    fn receive(&mut self, burst: &mut Burst<Boundless>, _: usize) -> usize {
        burst.extend(self.0.take());
        burst.len()
    }
}

#[test]
fn a_length_that_no_frame_has_is_odd_and_counted_as_it_is() {
    for isa in Isa::available() {
        let mut batch = Batch::new();
        batch.receive(&mut One(Some(Boundless(MemoryPool::default().packet(&[0; 60])))), LANES);
        let (odd, totals) = isa.apply(Checked(Family::Ipv4, &mut batch));
        assert_eq!((odd, totals.bytes), (1, 1 << 31));
    }
}
