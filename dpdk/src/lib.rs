//! A safe layer over the parts of DPDK that a forwarder needs: the environment, pools, packets, ports and
//! their queues, rings, threads, statistics and the clock.
//!
//! # What the types make impossible
//!
//! - **A packet has one owner.** [`Mbuf`] is not `Clone`. Receiving gives it, [`TxQueue::transmit`] and a ring
//!   take it, dropping frees it. What was sent is out of reach; what was refused stays with the caller.
//! - **A queue has one user.** [`RxQueue`] and [`TxQueue`] can move to another thread but not be shared, their
//!   calls take `&mut self`, and a running port hands each of them out once at a time.
//! - **A port outlives its queues.** The handles hold the port: it stops when the last of them is gone, and
//!   [`RunningPort::stop`] refuses while one is out. A device that is no longer used is closed and removed.
//! - **Memory outlives everything in it.** Pools live until [`Eal::shutdown`], which refuses while a port, a
//!   ring, a pool handle, a registered thread or a packet is left.
//!
//! ```no_run
//! use arrayvec::ArrayVec;
//! use dpdk::{Eal, Mbuf, Mempool, Port, PortConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let eal = Eal::init(["--no-pci", "--no-huge", "-m", "128"])?;
//! let pool = Mempool::create("packets", 4096, 256, dpdk::mempool::DEFAULT_DATA_ROOM, None)?;
//! let port = Port::open("net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap")?;
//! let port = port.configure_and_start(&PortConfig::new(vec![pool], 1))?;
//! let (mut rx, mut tx) = (port.take_rx_queue(0)?, port.take_tx_queue(0)?);
//! let mut burst = ArrayVec::<Mbuf, 64>::new();
//! while rx.receive(&mut burst) > 0 {
//!     tx.transmit(&mut burst);
//! }
//! # Ok(())
//! # }
//! ```

pub mod clock;
pub mod completion;
pub mod eal;
pub mod error;
mod life;
pub mod list;
pub mod mbuf;
pub mod mempool;
mod messages;
pub mod offload;
mod pci;
pub mod port;
pub mod queue;
pub mod ring;
pub mod ring_bench;
pub mod segmentation;
pub mod stats;
pub mod thread;

pub use completion::Held;
pub use eal::Eal;
pub use error::{EalError, PoolError, PortError, RingError};
pub use mbuf::{ChecksumStatus, Mbuf};
pub use mempool::Mempool;
pub use port::{DeviceInfo, Link, Port, PortConfig, RunningPort, StoppedPort};
pub use queue::{RxQueue, TxQueue};
