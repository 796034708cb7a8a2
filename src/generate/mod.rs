//! Traffic for the demo, the benchmarks and the tests: frames as bytes, the same for the same seed.
//!
//! A [`FrameSpec`] describes one frame, [`bad()`] makes it one that a forwarder must drop for a given
//! reason, a [`Profile`] draws a mix of both, [`write_pcap`] puts frames into a capture file. No clock, no
//! state, and no I/O but that file.

mod bad;
mod frame;
mod pcap;
mod profile;
pub mod random;
pub mod tables;

pub use bad::bad;
pub use frame::{Extension, FrameSpec, MAX_PAYLOAD_LEN, Network, Transport};
pub use pcap::{PcapError, write_pcap};
pub use profile::{GeneratedFrame, Profile};
