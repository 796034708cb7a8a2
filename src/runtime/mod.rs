//! The forwarder as a process: DPDK, ports, worker threads, the control loop.
//!
//! The only module that knows DPDK. It makes the data path's packets and queues out of mbufs and device
//! queues (`buffers`), brings up what a configuration asks for (`plan`, `ports`, `workers`), and answers the
//! control socket (`daemon`, `forwarder`).

mod active;
pub mod bench;
mod buffers;
mod completion;
mod daemon;
mod demo;
mod egress;
mod error;
mod forwarder;
mod machine;
mod notify;
mod plan;
mod policing;
mod ports;
mod queues;
mod reload;
#[cfg(test)]
mod tests;
mod workers;

pub use daemon::run;
pub use demo::demo;
pub use error::RuntimeError;
