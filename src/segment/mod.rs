//! Super-packets: packets of one flow that go through the forwarder as one, and packets that are cut for the wire.
//!
//! A forwarder has to give on what came in, to the bit. So merging ([`group`]) keeps each packet whole, with its
//! headers, behind the first one: the *list form*. Only the first is looked up, policed and queued. Taken apart,
//! each of the others gets what was changed in the first ([`follow`]) and nothing else: lengths,
//! identifications, flags, sequence numbers and the transport's checksums are those that came in, because nobody touched
//! them.
//!
//! Where a device cuts (*TSO*), the headers of the others are thrown away, and the device makes them again out of the
//! first's ([`Tso`]). That is allowed only where it makes the same ones ([`Groups::may_be_tso`]).
//!
//! What a device or a peer has merged already has one header only and is cut in software ([`Cut`]).
//!
//! Everything here is pure: bytes in, decisions or bytes out, without allocation. Frames start with their
//! Ethernet header; whatever the bytes are, no function panics.

mod cut;
mod follow;
mod group;
mod headers;
mod tso;

pub use cut::{Checksum, Cut, NotCut};
pub use follow::follow;
pub use group::{BURST, FLOWS, Frame, Groups, MAX_SEGMENTS, TransportChecksum, group};
pub use headers::transport_checksum_is_good;
pub use tso::Tso;

#[cfg(test)]
mod tests;
