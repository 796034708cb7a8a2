//! The data path: what happens to a packet between the receive and the transmit queue.
//!
//! [`pipeline`] has the whole way of a packet in one function. It works on a burst at a time, in passes
//! over arrays (`batch`), by tables that never change under its hands ([`snapshot`]), and accounts for
//! every packet in [`counters`]. It knows packets and queues only by the traits of [`buffer`]. A
//! [`worker`] is one thread's share of it: the queues it polls and the queues it sends to.
//!
//! Behind a qdisc a queue is a [`transmit::TxDevice`], which limits what is [`in_flight`]. Packets that go as one are a
//! [`super_packet`]; what a sender left to its device is [`unfinished`]. Where there are policers, [`policing`] has a burst meet
//! them.

mod batch;
pub mod buffer;
pub mod counters;
pub mod in_flight;
pub mod memory;
pub mod output;
pub mod pipeline;
pub mod policing;
pub mod snapshot;
pub mod super_packet;
pub mod transmit;
pub mod unfinished;
pub mod worker;

pub use batch::Isa;
