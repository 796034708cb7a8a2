//! From the pipeline to a transmit queue, without a queue of ours between (`noqueue`): what the device
//! does not take is dropped.

use super::buffer::{Burst, PacketBuf, TxBurst};
use super::counters::WorkerCounters;
use crate::drop_reason::DropReason;
use crate::units::PortId;

/// A worker's way to one port. The transmit queue is the worker's own.
#[derive(Debug)]
pub struct Output<T> {
    port: PortId,
    queue: T,
}

impl<T: TxBurst> Output<T> {
    /// To `port` through `queue`.
    pub fn new(port: PortId, queue: T) -> Self {
        Self { port, queue }
    }

    /// Sends a burst of `bytes` bytes and leaves `packets` empty: each is with the device, or freed and
    /// counted.
    #[inline(always)]
    pub fn send(&mut self, packets: &mut Burst<T::Buf>, bytes: u64, counters: &WorkerCounters) {
        let sent = self.queue.transmit(packets);
        let port = counters.port(self.port);
        port.doorbells.add(1);
        port.tx_packets.add(sent as u64);
        if packets.is_empty() {
            port.tx_bytes.add(bytes);
        } else {
            self.refused(packets, bytes, counters);
        }
    }

    #[cold]
    fn refused(&mut self, packets: &mut Burst<T::Buf>, bytes: u64, counters: &WorkerCounters) {
        let left: u64 = packets.iter().map(|packet| u64::from(packet.lengths().frame())).sum();
        let port = counters.port(self.port);
        port.tx_bytes.add(bytes.saturating_sub(left));
        port.tx_dropped.add(packets.len() as u64);
        counters.drops(DropReason::TxFull).add(packets.len() as u64);
        T::Buf::free(packets);
    }

    /// Gives the transmit queue back.
    pub fn into_queue(self) -> T {
        self.queue
    }
}
