//! DPDK's packets and queues as the data path knows them.

use crate::datapath::buffer::{Burst, Held, Lengths, PacketBuf, RxBurst, TxBurst};
use crate::datapath::super_packet::{Cutting, Lead, Merging};
use crate::drop_reason::DropReason;
use crate::packet::ChecksumStatus;
use crate::queue::Item;
use crate::segment::{Checksum, Cut, Frame, TransportChecksum, Tso};
use arrayvec::ArrayVec;
use dpdk::segmentation::{CutError, Request, Work};
use dpdk::{Mbuf, Mempool, RxQueue, TxQueue};
use std::ops::Range;

// SAFETY: an mbuf is laid out as the pointer to DPDK's structure, which is aligned to the smallest cache line there is
// (RTE_CACHE_LINE_MIN_SIZE), 64 bytes.
unsafe impl Item for Mbuf {
    const ALIGNMENT: usize = 64;
}

// SAFETY: an mbuf's buffer stays where it is for as long as it is owned, and a chain's segments with it.
// The pools' data room and the strides of cards that bring their own buffers leave 64 readable bytes
// behind a frame's first byte; memory for packets is never uninitialised, it comes zeroed from the kernel.
// The first segment's bytes belong to its owner alone: mbufs are shared only by holding references,
// which the safe layer does not offer.
unsafe impl PacketBuf for Mbuf {
    #[inline(always)]
    fn head(&self) -> *mut u8 {
        Mbuf::head(self)
    }

    #[inline(always)]
    fn lengths(&self) -> Lengths {
        Lengths::from_word(Mbuf::lengths(self))
    }

    #[inline(always)]
    fn segment(&self) -> &[u8] {
        Mbuf::segment(self)
    }

    #[inline(always)]
    fn wire_packets(&self) -> u32 {
        Mbuf::wire_packets(self)
    }

    #[inline(always)]
    fn wire_bytes(&self) -> u32 {
        Mbuf::wire_bytes(self)
    }

    #[inline]
    fn truncate(&mut self, len: u32) {
        Mbuf::truncate(self, len);
    }

    #[inline(always)]
    fn checksum(&self) -> ChecksumStatus {
        match self.ip_checksum() {
            dpdk::ChecksumStatus::Unknown => ChecksumStatus::Unknown,
            dpdk::ChecksumStatus::Good => ChecksumStatus::Good,
            dpdk::ChecksumStatus::Bad => ChecksumStatus::Bad,
        }
    }

    #[inline]
    fn free(packets: &mut Burst<Self>) {
        if !packets.is_empty() {
            Mbuf::free_bulk(packets);
        }
    }
}

impl Lead for Mbuf {
    type Pool = Mempool;

    #[inline(always)]
    fn unfinished(&self) -> Option<u16> {
        match self.merged_segment_size() {
            Some(0) => None,
            None if self.transport_checksum_is_left_out() => Some(u16::MAX),
            size => size,
        }
    }

    fn cut<const N: usize>(
        &self,
        pool: &Mempool,
        cut: &Cut,
        parts: Range<usize>,
        out: &mut ArrayVec<Self, N>,
    ) -> Result<(), DropReason> {
        let make = |part, frame: &mut [u8]| cut.make(part, frame, Checksum::Full);
        Mbuf::cut(self, pool, cut.header_len(), parts, |part| cut.payload(part), out, make).map_err(|error| match error
        {
            CutError::NoBuffers(_) => DropReason::NoBuffers,
            // A buffer is as long as the longest frame of any port.
            CutError::NoRoom(_) => DropReason::TooBig,
            CutError::TooShort | CutError::Header(_) => DropReason::Uncuttable,
        })
    }

    #[inline(always)]
    fn frame(&self) -> Frame<'_> {
        Frame {
            first_segment: self.segment(),
            frame_len: self.pkt_len(),
            transport_checksum: match self.transport_checksum() {
                dpdk::ChecksumStatus::Good => TransportChecksum::Good,
                dpdk::ChecksumStatus::Unknown => TransportChecksum::Unproven,
                dpdk::ChecksumStatus::Bad => TransportChecksum::Bad,
            },
            is_merged: self.merged_segment_size().is_some() || self.is_list(),
        }
    }

    #[inline]
    fn link<const N: usize>(burst: &mut ArrayVec<Self, N>, leaders: &[u8], may_be_cut: u64) {
        dpdk::list::link(burst, leaders, may_be_cut);
    }

    #[inline]
    fn for_each_follower(&mut self, change: impl FnMut(&[u8], &mut [u8])) {
        Mbuf::for_each_follower(self, change);
    }

    #[inline(always)]
    fn may_be_cut(&self) -> bool {
        Mbuf::may_be_cut(self)
    }

    #[inline]
    fn take_apart<const N: usize>(self, out: &mut ArrayVec<Self, N>) -> Option<Self> {
        Mbuf::take_apart(self, out)
    }
}

impl RxBurst for RxQueue {
    type Buf = Mbuf;

    #[inline(always)]
    fn receive(&mut self, burst: &mut Burst<Mbuf>, most: usize) -> usize {
        self.receive_at_most(burst, most)
    }
}

impl Held for dpdk::Held {
    fn is_released(&self) -> bool {
        dpdk::Held::is_released(self)
    }
}

/// A receive queue as the data path has it.
pub type PortRx = Merging<RxQueue>;

/// A transmit queue as the data path has it.
pub type PortTx = Cutting<Sender>;

/// A transmit queue, and whether its device cuts TCP packets.
#[derive(Debug)]
pub struct Sender {
    /// The queue.
    pub queue: TxQueue,
    /// Whether the device cuts packets of as many segments as there may be.
    pub cuts: bool,
}

impl TxBurst for Sender {
    type Buf = Mbuf;
    type Held = dpdk::Held;

    #[inline(always)]
    fn transmit<const N: usize>(&mut self, burst: &mut ArrayVec<Mbuf, N>) -> usize {
        let sent = self.queue.transmit(burst);
        if burst.is_empty() || sent == 0 { sent } else { sent + send_the_rest(&mut self.queue, burst) }
    }

    fn offload(&mut self, packet: Mbuf) -> Result<Mbuf, Mbuf> {
        match Tso::of(packet.segment()) {
            Some(tso) if self.cuts => offload(&mut self.queue, packet, tso),
            _ => Err(packet),
        }
    }

    #[inline(always)]
    fn descriptors(packet: &Mbuf) -> u16 {
        packet.nb_segs().max(packet.followers() + 1)
    }

    fn descriptor_done(&mut self, place: u16) -> Option<bool> {
        self.queue.descriptor_done(place)
    }

    fn hold(packet: &Mbuf) -> Option<dpdk::Held> {
        Some(packet.hold())
    }

    fn clean_up(&mut self) -> bool {
        if self.queue.clean_up().is_some() {
            return true;
        }
        // Some that cannot be asked (vmxnet3) do so whenever they are called.
        self.queue.transmit(&mut ArrayVec::<Mbuf, 1>::new());
        false
    }
}

/// Makes the list a chain that the device cuts. Gives it back as it was if the driver cannot have it done.
fn offload(queue: &mut TxQueue, packet: Mbuf, tso: Tso) -> Result<Mbuf, Mbuf> {
    let header_len = tso.header_len();
    let header: ArrayVec<u8, HEADERS> =
        packet.segment().iter().copied().take(usize::from(header_len).min(HEADERS)).collect();
    let mut chain = packet.into_chain(header_len, |leader, last, frame_len| tso.prepare(leader, last, frame_len))?;
    let request = Request {
        is_ipv4: tso.is_ipv4,
        l2_len: tso.l2_len,
        l3_len: tso.l3_len.into(),
        l4_len: tso.l4_len,
        work: Work::CutTcp(tso.segment_size),
    };
    // In range: these are the lengths of TCP and IP headers.
    let _ = chain.request(&request);
    let mut one = ArrayVec::from([chain]);
    let can = queue.prepare(&mut one) == 1;
    match one.pop() {
        Some(chain) if can => Ok(chain),
        Some(chain) => Err(chain.into_list(header_len, &header)),
        None => unreachable!("preparing takes no packet away"),
    }
}

/// The longest headers of a TCP packet without IP options.
const HEADERS: usize = 14 + 40 + 60;

/// Some drivers take only so many packets at once (net_af_xdp 32): a device that has taken some is full only when it takes no
/// more.
#[cold]
fn send_the_rest<const N: usize>(queue: &mut TxQueue, burst: &mut ArrayVec<Mbuf, N>) -> usize {
    let mut sent = 0;
    while !burst.is_empty() {
        match queue.transmit(burst) {
            0 => break,
            more => sent += more,
        }
    }
    sent
}
