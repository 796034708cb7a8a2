//! A port that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Applied, DeviceInfo, Port, PortConfig};
use crate::error::{Errno, PortError};
use crate::mempool::Mempool;
use crate::messages;
use crate::queue::{RxQueue, TxQueue};
use crate::stats::{self, PortStats};

/// The state of a port's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Whether the link is up.
    pub up: bool,
    /// Its speed in Mbit/s, when it is known.
    pub speed_mbps: Option<u32>,
    /// Whether both ends may send at once.
    pub full_duplex: bool,
}

/// A port that runs, and hands out its queues. It stops when this and all handles are gone, or by [`RunningPort::stop`].
#[derive(Debug)]
pub struct RunningPort {
    running: Arc<Running>,
    applied: Applied,
}

/// What a running port and the handles of its queues hold together. The fields are dropped in order: the port stops,
/// closes, and only then may its pools go.
#[derive(Debug)]
pub(crate) struct Running {
    started: Started,
    port: Port,
    rx_taken: Vec<AtomicBool>,
    tx_taken: Vec<AtomicBool>,
    pools: Vec<Mempool>,
    /// Whether frames to any address were asked for.
    promiscuous: bool,
}

/// A port that is set up and does not run. Dropping it closes the device.
#[derive(Debug)]
pub struct StoppedPort {
    // Before the pools: the port closes, and only then may they go.
    port: Port,
    applied: Applied,
    rx_queues: usize,
    tx_queues: usize,
    pools: Vec<Mempool>,
    promiscuous: bool,
}

impl StoppedPort {
    /// Starts the port as it was set up.
    ///
    /// # Errors
    /// When the device does not start; the port is closed then.
    pub fn start(self) -> Result<RunningPort, PortError> {
        let Self { port, mut applied, rx_queues, tx_queues, pools, promiscuous } = self;
        let id = port.id();
        // SAFETY: the port is open, configured and stopped.
        messages::attempt(|| Errno::check(unsafe { dpdk_sys::rte_eth_dev_start(id) }))
            .map_err(|errno| port.step("start", errno))?;
        let taken = |count| (0..count).map(|_| AtomicBool::new(false)).collect();
        let running = Running {
            started: Started(id),
            port,
            rx_taken: taken(rx_queues),
            tx_taken: taken(tx_queues),
            pools,
            promiscuous,
        };
        applied.promiscuous = set_promiscuous(&running.port, promiscuous)?;
        Ok(RunningPort { running: Arc::new(running), applied })
    }

    /// The port, to be set up anew.
    #[must_use]
    pub fn into_port(self) -> Port {
        self.port
    }
}

impl Running {
    /// DPDK's number of the port.
    #[inline(always)]
    pub(crate) fn id(&self) -> u16 {
        self.started.0
    }

    pub(crate) fn rx_taken(&self, queue: u16) -> Option<&AtomicBool> {
        self.rx_taken.get(usize::from(queue))
    }

    pub(crate) fn tx_taken(&self, queue: u16) -> Option<&AtomicBool> {
        self.tx_taken.get(usize::from(queue))
    }
}

/// A port of this number runs while this lives.
#[derive(Debug)]
struct Started(u16);

impl Drop for Started {
    fn drop(&mut self) {
        // SAFETY: the port was started, and no handle of a queue is left.
        if let Err(errno) = Errno::check(unsafe { dpdk_sys::rte_eth_dev_stop(self.0) }) {
            log::warn!("port {} cannot be stopped: {errno}", self.0);
        }
    }
}

impl RunningPort {
    /// Starts a port that is set up as `applied` says.
    pub(super) fn start(port: Port, config: &PortConfig, applied: Applied) -> Result<Self, PortError> {
        let (rx_queues, tx_queues) = (config.rx_pools.len(), usize::from(config.tx_queues));
        let pools = config.rx_pools.clone();
        let stopped = StoppedPort { port, applied, rx_queues, tx_queues, pools, promiscuous: config.promiscuous };
        stopped.start()
    }

    /// What the port is, where the device had a say.
    #[must_use]
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// The handle of a receive queue. It can be taken again when it was dropped.
    ///
    /// # Errors
    /// When there is no such queue, or its handle is out.
    pub fn take_rx_queue(&self, queue: u16) -> Result<RxQueue, PortError> {
        self.take("RX", queue, &self.running.rx_taken)?;
        Ok(RxQueue::new(Arc::clone(&self.running), queue))
    }

    /// The handle of a transmit queue. It can be taken again when it was dropped.
    ///
    /// # Errors
    /// When there is no such queue, or its handle is out.
    pub fn take_tx_queue(&self, queue: u16) -> Result<TxQueue, PortError> {
        self.take("TX", queue, &self.running.tx_taken)?;
        Ok(TxQueue::new(Arc::clone(&self.running), queue))
    }

    fn take(&self, direction: &'static str, queue: u16, taken: &[AtomicBool]) -> Result<(), PortError> {
        let device = || self.device().to_owned();
        let Some(flag) = taken.get(usize::from(queue)) else {
            return Err(PortError::NoSuchQueue { device: device(), direction, queue, count: taken.len() });
        };
        // Pairs with the releasing store in the handle's drop: what its last user did comes before what the next does.
        if flag.swap(true, Ordering::Acquire) {
            return Err(PortError::QueueTaken { device: device(), direction, queue });
        }
        Ok(())
    }

    /// Stops the port, which can then be started again or set up anew.
    ///
    /// # Errors
    /// Gives the port back, running, when a handle of a queue is out.
    pub fn stop(self) -> Result<StoppedPort, Self> {
        let applied = self.applied;
        match Arc::try_unwrap(self.running) {
            Ok(running) => {
                let Running { started, port, rx_taken, tx_taken, pools, promiscuous } = running;
                drop(started);
                let (rx_queues, tx_queues) = (rx_taken.len(), tx_taken.len());
                Ok(StoppedPort { port, applied, rx_queues, tx_queues, pools, promiscuous })
            }
            Err(running) => Err(Self { running, applied }),
        }
    }

    /// The state of the link, without waiting for it to settle.
    ///
    /// # Errors
    /// When the driver does not tell.
    pub fn link(&self) -> Result<Link, PortError> {
        let mut raw = dpdk_sys::shim_link { speed_mbps: 0, up: 0, full_duplex: 0 };
        // SAFETY: DPDK checks the port's number, and the structure is alive during the call.
        Errno::check(unsafe { dpdk_sys::shim_link_get_nowait(self.id(), &mut raw) })
            .map_err(|errno| self.running.port.step("read the link's state", errno))?;
        let known = raw.speed_mbps != 0 && raw.speed_mbps != dpdk_sys::RTE_ETH_SPEED_NUM_UNKNOWN;
        Ok(Link { up: raw.up != 0, speed_mbps: known.then_some(raw.speed_mbps), full_duplex: raw.full_duplex != 0 })
    }

    /// The counters that every driver has.
    ///
    /// # Errors
    /// When the driver does not tell.
    pub fn stats(&self) -> Result<PortStats, PortError> {
        stats::basic(self.id()).map_err(|errno| self.running.port.step("read the counters", errno))
    }

    /// The driver's own counters by name, for example `rx_discards_phy`.
    ///
    /// # Errors
    /// When the driver does not tell.
    pub fn extended_stats(&self) -> Result<Vec<(String, u64)>, PortError> {
        stats::extended(self.id()).map_err(|errno| self.running.port.step("read the driver's counters", errno))
    }

    /// What the device is and can do.
    ///
    /// # Errors
    /// When the driver does not tell.
    pub fn info(&self) -> Result<DeviceInfo, PortError> {
        self.running.port.info()
    }

    /// The device, as it was named when it was opened.
    #[must_use]
    pub fn device(&self) -> &str {
        self.running.port.device()
    }

    /// DPDK's number of the port, which [`crate::Mbuf::port`] tells.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.running.id()
    }
}

/// Sets whether frames for any address are received; tells what holds. A driver without the setting filters nothing.
fn set_promiscuous(port: &Port, wanted: bool) -> Result<bool, PortError> {
    // SAFETY: the port runs; both functions check its number.
    let set = || unsafe {
        if wanted {
            dpdk_sys::rte_eth_promiscuous_enable(port.id())
        } else {
            dpdk_sys::rte_eth_promiscuous_disable(port.id())
        }
    };
    match messages::attempt(|| Errno::check(set())) {
        Ok(_) => Ok(wanted),
        Err(Errno(libc::ENOTSUP)) => {
            if wanted {
                log::info!("device {}: its driver has no promiscuous mode to switch on", port.device());
            }
            Ok(false)
        }
        Err(errno) => Err(port.step("set promiscuous mode", errno)),
    }
}
