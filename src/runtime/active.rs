//! A port while it is in use: up, with its queues out, or down.

use crate::control::report::PoolReport;
use crate::segment::MAX_SEGMENTS;
use crate::units::MacAddr;
use dpdk::stats::PortStats;
use dpdk::{DeviceInfo, Link, Mempool, Port, PortConfig, PortError, RunningPort, RxQueue, StoppedPort, TxQueue};

/// Drivers whose ports do not work any more once they were stopped, and have to be opened anew.
const STOP_IS_FINAL: [&str; 1] = ["net_af_packet"];

/// A port that forwards, or has been taken down.
#[derive(Debug)]
pub(super) struct ActivePort {
    state: State,
    setup: PortConfig,
    device: String,
    /// What the driver's counters began at, to be taken off: drivers may count on or begin anew when a port starts again.
    before: PortStats,
    /// What they had come to when the port was taken down.
    last: PortStats,
    /// What the device is.
    pub info: DeviceInfo,
    /// Its MAC address.
    pub mac: MacAddr,
    /// Descriptors of each transmit queue.
    pub tx_descriptors: u16,
    /// Whether the device cuts any super-packet.
    pub cuts: bool,
    /// Whether workers have its queues, or are to have them. One that is up and not in service was not wholly taken up or down,
    /// which can be tried again.
    pub in_service: bool,
}

/// Drivers that cut packets in software, which Thruway does as well.
const CUTS_IN_SOFTWARE: [&str; 1] = ["net_tap"];

#[derive(Debug)]
enum State {
    Up(RunningPort),
    Down(StoppedPort),
    Closed,
}

impl ActivePort {
    /// A port that has been set up by `setup` on `device`, and runs.
    pub fn new(running: RunningPort, info: DeviceInfo, setup: PortConfig, device: &str) -> Self {
        let (mac, tx_descriptors) = (MacAddr(running.applied().mac), running.applied().tx_descriptors);
        let cuts = running.applied().tx_cutting
            && usize::from(info.most_segments_to_cut) >= MAX_SEGMENTS
            && !CUTS_IN_SOFTWARE.contains(&info.driver.as_str());
        Self {
            state: State::Up(running),
            setup,
            device: device.to_owned(),
            before: PortStats::default(),
            last: PortStats::default(),
            info,
            mac,
            tx_descriptors,
            cuts,
            in_service: true,
        }
    }

    /// Whether it is up.
    pub fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    /// The handle of a receive queue.
    pub fn take_rx_queue(&self, queue: u16) -> Result<RxQueue, PortError> {
        self.running()?.take_rx_queue(queue)
    }

    /// The handle of a transmit queue.
    pub fn take_tx_queue(&self, queue: u16) -> Result<TxQueue, PortError> {
        self.running()?.take_tx_queue(queue)
    }

    fn running(&self) -> Result<&RunningPort, PortError> {
        match &self.state {
            State::Up(running) => Ok(running),
            State::Down(_) | State::Closed => Err(PortError::NotRunning { device: self.device.clone() }),
        }
    }

    /// The state of its link.
    pub fn link(&self) -> Result<Link, PortError> {
        match &self.state {
            State::Up(running) => running.link(),
            State::Down(_) | State::Closed => Ok(Link { up: false, speed_mbps: None, full_duplex: false }),
        }
    }

    /// The driver's counters since the start, also across times in which the port was down.
    pub fn stats(&self) -> Result<PortStats, PortError> {
        match &self.state {
            State::Up(running) => Ok(running.stats()?.since(&self.before)),
            State::Down(_) | State::Closed => Ok(self.last),
        }
    }

    /// The pool that it takes its packets from.
    pub fn pool(&self) -> PoolReport {
        let report = |pool: &Mempool| PoolReport { buffers: pool.capacity().into(), in_use: pool.in_use().into() };
        self.rx_pool().map_or_else(PoolReport::default, report)
    }

    /// The pool itself.
    pub fn rx_pool(&self) -> Option<&Mempool> {
        self.setup.rx_pools.first()
    }

    /// Stops the port.
    ///
    /// # Errors
    ///
    /// If it is not up, or a queue of it is still out; it is as it was then.
    pub fn stop(&mut self) -> Result<(), PortError> {
        self.last = self.stats()?;
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Up(running) => match running.stop() {
                Ok(port) if STOP_IS_FINAL.contains(&self.info.driver.as_str()) => drop(port),
                Ok(port) => self.state = State::Down(port),
                Err(running) => {
                    self.state = State::Up(running);
                    return Err(PortError::QueueOut { device: self.device.clone() });
                }
            },
            other => self.state = other,
        }
        Ok(())
    }

    /// Starts the port again.
    ///
    /// # Errors
    ///
    /// If the device cannot be what it was; it can be tried again.
    pub fn start(&mut self) -> Result<(), PortError> {
        let running = match std::mem::replace(&mut self.state, State::Closed) {
            State::Up(running) => {
                self.state = State::Up(running);
                return Ok(());
            }
            State::Down(port) => port.start()?,
            State::Closed => Port::open(&self.device)?.configure_and_start(&self.setup)?,
        };
        self.before = running.stats()?.since(&self.last);
        self.state = State::Up(running);
        Ok(())
    }
}
