//! What the data path asks of packets and of the queues that give and take them.

use crate::queue::Item;
use arrayvec::ArrayVec;

/// Most packets that are received, forwarded and sent as one.
pub const BURST: usize = 64;

/// How many are received at once while the tables are small. A burst then stays in the first-level cache
/// with all that is kept of it; with large tables more packets at once hide more of the memory's latency.
pub const SMALL_BURST: usize = 32;

/// Packets on their way together. Dropping it frees them.
pub type Burst<B> = ArrayVec<B, BURST>;

/// How many bytes behind [`PacketBuf::head`] can always be read, however short the frame is.
///
/// It lets headers be read before their lengths are checked.
pub const READABLE: usize = 64;

/// What the network card says of an IPv4 header checksum.
pub use crate::packet::ChecksumStatus;

/// One frame, owned: whoever holds it is the only one, and dropping it frees it.
///
/// # Safety
///
/// As long as the packet is neither dropped nor sent, however often the value itself is moved and whichever of
/// these methods are called:
/// - `head()` gives the same pointer, and [`READABLE`] bytes behind it are initialised and readable;
/// - `segment()` starts there and is as long as `lengths().segment()` says; that changes by `truncate` only,
///   which leaves it as it is or makes it the length asked for, whichever is less;
/// - the bytes of `segment()` are writable, and nobody else reads or writes them.
pub unsafe trait PacketBuf: Item {
    /// The first byte of the frame.
    fn head(&self) -> *mut u8;

    /// Length of the frame and of its first segment.
    fn lengths(&self) -> Lengths;

    /// The first segment: the whole frame unless it is chained.
    fn segment(&self) -> &[u8];

    /// The same, to be changed.
    #[inline(always)]
    fn segment_mut(&mut self) -> &mut [u8] {
        // SAFETY: by the trait's contract `segment()` starts at `head()`, is so long, is writable, and is nobody else's while the
        // packet is borrowed; what was received is initialised.
        unsafe { std::slice::from_raw_parts_mut(self.head(), self.lengths().segment().into()) }
    }

    /// The packets on the wire that it stands for: itself, and those that it leads ([`super::super_packet`]).
    #[inline(always)]
    fn wire_packets(&self) -> u32 {
        1
    }

    /// Bytes of all their frames.
    #[inline(always)]
    fn wire_bytes(&self) -> u32 {
        self.lengths().frame()
    }

    /// Cuts the frame to `len` bytes; does nothing if it is not longer.
    fn truncate(&mut self, len: u32);

    /// What the network card said of the IPv4 header checksum.
    fn checksum(&self) -> ChecksumStatus;

    /// Frees all packets of a burst at once.
    fn free(packets: &mut Burst<Self>) {
        packets.clear();
    }
}

/// Length of a frame and of its first segment, in one word as network drivers keep them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Lengths(u64);

impl Lengths {
    /// From a word whose lower half is the frame's length and whose next 16 bits are the first
    /// segment's. The rest is ignored.
    #[inline(always)]
    pub fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// Of a frame of `frame` bytes that starts with a segment of `segment` bytes.
    pub fn new(frame: u32, segment: u16) -> Self {
        Self(u64::from(frame) | u64::from(segment) << 32)
    }

    /// Bytes of the frame, all segments.
    #[inline(always)]
    pub fn frame(self) -> u32 {
        self.0 as u32
    }

    /// Bytes of the first segment.
    #[inline(always)]
    pub fn segment(self) -> u16 {
        (self.0 >> 32) as u16
    }
}

/// A queue that packets are received from.
pub trait RxBurst {
    /// The packets it gives.
    type Buf: PacketBuf;

    /// Appends what has arrived, at most `most` packets and what `burst` has room for, and says how many. There are fewer
    /// in the burst when some have been merged. Never waits.
    fn receive(&mut self, burst: &mut Burst<Self::Buf>, most: usize) -> usize;
}

/// A queue that packets are sent to.
pub trait TxBurst: Send + 'static {
    /// The packets it takes.
    type Buf: PacketBuf;

    /// What keeps a packet from going back to its pool.
    type Held: Held;

    /// Takes packets from the front of `burst`, as many as there is room for, and says how many packets on the wire that makes; the
    /// others stay in order. Never waits.
    fn transmit<const N: usize>(&mut self, burst: &mut ArrayVec<Self::Buf, N>) -> usize;

    /// Makes of a packet that leads others one that the device cuts into them. Gives it back as it was if that cannot be.
    fn offload(&mut self, packet: Self::Buf) -> Result<Self::Buf, Self::Buf> {
        Err(packet)
    }

    /// Descriptors that the device needs for a packet.
    fn descriptors(_packet: &Self::Buf) -> u16 {
        1
    }

    /// Whether the descriptor at a place is done with; none if that cannot be known. See
    /// [`Places`](super::in_flight::Places).
    fn descriptor_done(&mut self, _place: u16) -> Option<bool> {
        None
    }

    /// Holds a packet that is about to be sent, if that can be done.
    fn hold(_packet: &Self::Buf) -> Option<Self::Held> {
        None
    }

    /// Has the driver free packets that have left. `false`: it cannot be asked to.
    fn clean_up(&mut self) -> bool {
        false
    }
}

/// A packet that is held while it is sent.
pub trait Held: Send + 'static {
    /// Whether the driver has given it up.
    fn is_released(&self) -> bool;
}

/// No packet is.
impl Held for () {
    fn is_released(&self) -> bool {
        true
    }
}
