//! The data path: what happens to a packet between the receive and the transmit queue.

pub mod drop_reason;
