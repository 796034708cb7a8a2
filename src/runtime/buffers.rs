//! DPDK's packets and queues as the data path knows them.

use crate::datapath::buffer::{Burst, Held, Lengths, PacketBuf, RxBurst, TxBurst};
use crate::packet::ChecksumStatus;
use crate::queue::Item;
use arrayvec::ArrayVec;
use dpdk::{Mbuf, RxQueue, TxQueue};

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

impl TxBurst for TxQueue {
    type Buf = Mbuf;
    type Held = dpdk::Held;

    #[inline(always)]
    fn transmit<const N: usize>(&mut self, burst: &mut ArrayVec<Mbuf, N>) -> usize {
        let sent = TxQueue::transmit(self, burst);
        if burst.is_empty() || sent == 0 { sent } else { sent + send_the_rest(self, burst) }
    }

    #[inline(always)]
    fn descriptors(packet: &Mbuf) -> u16 {
        packet.nb_segs()
    }

    fn descriptor_done(&mut self, place: u16) -> Option<bool> {
        TxQueue::descriptor_done(self, place)
    }

    fn hold(packet: &Mbuf) -> Option<dpdk::Held> {
        Some(packet.hold())
    }

    fn clean_up(&mut self) -> bool {
        TxQueue::clean_up(self).is_some()
    }
}

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
