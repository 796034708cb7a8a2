//! Packets and queues in plain memory: the data path without a device, for tests and measurements.

use super::buffer::{Burst, Lengths, PacketBuf, READABLE, RxBurst, TxBurst};
use super::super_packet::Lead;
use crate::drop_reason::DropReason;
use crate::packet::ChecksumStatus;
use crate::queue::Item;
use crate::segment::{Checksum, Cut, Frame, TransportChecksum};
use arrayvec::ArrayVec;
use std::collections::VecDeque;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Makes packets and knows how many of them have not been freed.
#[derive(Clone, Debug)]
pub struct MemoryPool {
    outstanding: Arc<AtomicUsize>,
    most: usize,
}

impl Default for MemoryPool {
    fn default() -> Self {
        Self { outstanding: Arc::default(), most: usize::MAX }
    }
}

impl MemoryPool {
    /// The same pool, for those who may make packets only while there are less than `most`.
    pub fn with_at_most(&self, most: usize) -> Self {
        Self { most, ..self.clone() }
    }

    /// A packet with a copy of `frame`.
    pub fn packet(&self, frame: &[u8]) -> MemoryPacket {
        self.chain(frame, &[], ChecksumStatus::Unknown)
    }

    /// A packet whose first segment has a copy of `first` and whose others together have one of `rest`;
    /// `checksum` is what a network card would have said.
    ///
    /// # Panics
    ///
    /// If a segment is longer than 65535 bytes.
    pub fn chain(&self, first: &[u8], rest: &[u8], checksum: ChecksumStatus) -> MemoryPacket {
        assert!(first.len() <= usize::from(u16::MAX) && rest.len() <= usize::from(u16::MAX));
        self.outstanding.fetch_add(1, Relaxed);
        // What is behind a segment is what an earlier frame left there. Here that is what would come next, for
        // those to stumble over who read on instead of looking how long the segment is.
        let mut memory = [first, &rest[..rest.len().min(READABLE)]].concat();
        memory.resize(first.len() + READABLE, 0xa5);
        MemoryPacket(Box::new(Content {
            memory: NonNull::from(Box::leak(memory.into_boxed_slice())),
            segment_len: first.len(),
            rest: rest.to_vec(),
            checksum,
            unfinished: None,
            followers: Vec::new(),
            pool: self.clone(),
        }))
    }

    /// How many packets have not been freed.
    pub fn outstanding(&self) -> usize {
        self.outstanding.load(Relaxed)
    }
}

/// A packet of a [`MemoryPool`].
#[derive(Debug)]
#[repr(transparent)]
pub struct MemoryPacket(Box<Content>);

#[derive(Debug)]
struct Content {
    memory: NonNull<[u8]>,
    segment_len: usize,
    rest: Vec<u8>,
    checksum: ChecksumStatus,
    unfinished: Option<u16>,
    followers: Vec<MemoryPacket>,
    pool: MemoryPool,
}

// SAFETY: the memory is the packet's alone.
unsafe impl Send for Content {}

// SAFETY: the packet is laid out as its box.
unsafe impl Item for MemoryPacket {
    const ALIGNMENT: usize = <Box<Content> as Item>::ALIGNMENT;
}

impl MemoryPacket {
    /// The packet as one that its sender left to a device to be cut into parts with so much payload.
    pub fn left_to_be_cut(mut self, size: u16) -> Self {
        self.0.unfinished = Some(size);
        self
    }

    /// The frame, all segments.
    pub fn frame(&self) -> Vec<u8> {
        [self.segment(), &self.0.rest].concat()
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        self.pool.outstanding.fetch_sub(1, Relaxed);
        // SAFETY: the pointer came from a leaked box and is released once, here.
        drop(unsafe { Box::from_raw(self.memory.as_ptr()) });
    }
}

// SAFETY: the memory stays where it is until the packet is dropped, has READABLE bytes behind the
// segment, and is only reached through the packet.
unsafe impl PacketBuf for MemoryPacket {
    fn head(&self) -> *mut u8 {
        self.0.memory.as_ptr().cast()
    }

    fn lengths(&self) -> Lengths {
        Lengths::new((self.0.segment_len + self.0.rest.len()) as u32, self.0.segment_len as u16)
    }

    fn segment(&self) -> &[u8] {
        // SAFETY: `segment_len` never exceeds the memory, which nobody writes while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.head(), self.0.segment_len) }
    }

    fn wire_packets(&self) -> u32 {
        1 + self.0.followers.len() as u32
    }

    fn wire_bytes(&self) -> u32 {
        let followers = self.0.followers.iter().map(|packet| packet.lengths().frame());
        self.lengths().frame() + followers.sum::<u32>()
    }

    fn truncate(&mut self, len: u32) {
        let len = len as usize;
        self.0.rest.truncate(len.saturating_sub(self.0.segment_len));
        self.0.segment_len = self.0.segment_len.min(len);
    }

    fn checksum(&self) -> ChecksumStatus {
        self.0.checksum
    }
}

impl Lead for MemoryPacket {
    type Pool = MemoryPool;

    fn unfinished(&self) -> Option<u16> {
        self.0.unfinished
    }

    fn cut<const N: usize>(
        &self,
        pool: &MemoryPool,
        cut: &Cut,
        parts: Range<usize>,
        out: &mut ArrayVec<Self, N>,
    ) -> Result<(), DropReason> {
        if pool.outstanding() + parts.len() > pool.most || parts.len() > out.remaining_capacity() {
            return Err(DropReason::NoBuffers);
        }
        let (before, whole) = (out.len(), MemoryPacket::frame(self));
        for part in parts {
            let mut frame = whole[..usize::from(cut.header_len())].to_vec();
            frame.extend(&whole[cut.payload(part)]);
            if !cut.make(part, &mut frame, Checksum::Full) {
                out.truncate(before);
                return Err(DropReason::Uncuttable);
            }
            out.push(pool.packet(&frame));
        }
        Ok(())
    }

    fn frame(&self) -> Frame<'_> {
        let transport_checksum = TransportChecksum::Unproven;
        Frame {
            first_segment: self.segment(),
            frame_len: self.lengths().frame(),
            transport_checksum,
            is_merged: !self.0.followers.is_empty(),
        }
    }

    fn link<const N: usize>(burst: &mut ArrayVec<Self, N>, leaders: &[u8], _may_be_cut: u64) {
        let mut positions = Vec::new();
        let mut kept = ArrayVec::<Self, N>::new();
        for (i, packet) in burst.drain(..).enumerate() {
            let leader = leaders.get(i).map_or(i, |leader| usize::from(*leader));
            match positions.get(leader).copied().flatten() {
                Some(position) if leader < i => {
                    let leader: &mut Self = &mut kept[position];
                    leader.0.followers.push(packet);
                    positions.push(None);
                }
                _ => {
                    positions.push(Some(kept.len()));
                    kept.push(packet);
                }
            }
        }
        *burst = kept;
    }

    fn for_each_follower(&mut self, mut change: impl FnMut(&[u8], &mut [u8])) {
        let leader = self.segment().to_vec();
        for follower in &mut self.0.followers {
            // SAFETY: the follower's first segment is its own, and borrowed alone.
            let bytes = unsafe { std::slice::from_raw_parts_mut(follower.head(), follower.0.segment_len) };
            change(&leader, bytes);
        }
    }

    fn may_be_cut(&self) -> bool {
        false
    }

    fn take_apart<const N: usize>(mut self, out: &mut ArrayVec<Self, N>) -> Option<Self> {
        let mut followers = std::mem::take(&mut self.0.followers).into_iter();
        let mut rest = Some(self);
        while !out.is_full()
            && let Some(packet) = rest
        {
            out.push(packet);
            rest = followers.next();
        }
        if let Some(first) = &mut rest {
            first.0.followers.extend(followers);
        }
        rest
    }
}

/// A queue with room for so many packets: a transmit queue on one side, a receive queue on the other.
#[derive(Debug)]
pub struct MemoryQueue {
    /// What is in it, the oldest first.
    pub packets: VecDeque<MemoryPacket>,
    room: usize,
    largest_burst: usize,
}

impl MemoryQueue {
    /// With room for `room` packets, that gives and takes any burst.
    pub fn new(room: usize) -> Self {
        Self { packets: VecDeque::new(), room, largest_burst: usize::MAX }
    }

    /// The same, giving at most `burst` packets at once.
    pub fn in_bursts_of(mut self, burst: usize) -> Self {
        self.largest_burst = burst;
        self
    }
}

impl RxBurst for MemoryQueue {
    type Buf = MemoryPacket;

    fn receive(&mut self, burst: &mut Burst<MemoryPacket>, most: usize) -> usize {
        let count = self.packets.len().min(most).min(burst.remaining_capacity()).min(self.largest_burst);
        burst.extend(self.packets.drain(..count));
        count
    }
}

impl TxBurst for MemoryQueue {
    type Buf = MemoryPacket;
    type Held = ();

    fn transmit<const N: usize>(&mut self, burst: &mut ArrayVec<MemoryPacket, N>) -> usize {
        let count = burst.len().min(self.room.saturating_sub(self.packets.len()));
        self.packets.extend(burst.drain(..count));
        count
    }
}
