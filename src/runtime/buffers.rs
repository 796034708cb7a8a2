//! DPDK's packets and queues as the data path knows them.

use crate::datapath::buffer::{Burst, Lengths, PacketBuf, RxBurst, TxBurst};
use crate::packet::ChecksumStatus;
use dpdk::{Mbuf, RxQueue, TxQueue};

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

impl TxBurst for TxQueue {
    type Buf = Mbuf;

    #[inline(always)]
    fn transmit(&mut self, burst: &mut Burst<Mbuf>) -> usize {
        TxQueue::transmit(self, burst)
    }
}
