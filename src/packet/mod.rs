//! Frames as bytes: header layouts, checksums, the examination of what comes in.
//!
//! Everything here is pure: no I/O, no clock, no allocation, no state. Whatever the bytes are, no
//! function panics; a header is only read after its length has been checked, once per packet.
//!
//! Lengths are in bytes. A *frame* starts with its Ethernet header and has no frame check sequence;
//! the *packet* is the IP packet in it.

pub mod checksum;
pub mod dscp;
pub mod ethernet;
mod examine;
mod flow;
pub mod ipv4;
pub mod ipv6;
mod martian;

pub use examine::{ChecksumStatus, Examined, Frame, examine};
pub use flow::{Addresses, Flow};
pub use martian::{never_forwarded_v4, never_forwarded_v6, source_v4 as is_martian_source_v4};
