//! Ports: opening a device, setting it up, handing out its queues, giving it back.
//!
//! ```text
//! Port::open ─► Port ── configure_and_start ─► RunningPort ── take_rx_queue, take_tx_queue ─► RxQueue, TxQueue
//!                 ▲                              ▲    │
//!                 │                        start │    │ stop  (only while no queue is out)
//!                 └─────── into_port ──────── StoppedPort
//! ```
//!
//! Invariant: a port that a queue handle belongs to runs. The handles and the [`RunningPort`] hold it together; it is
//! stopped when the last of them is gone, and then closed and its device removed, so that a virtual device (a TAP
//! interface, say) goes away.

mod config;
mod device;
mod running;

pub use config::{Applied, PortConfig};
pub use device::DeviceInfo;
pub use running::{Link, RunningPort, StoppedPort};

pub(crate) use running::Running;

use std::ffi::CString;
use std::sync::Arc;

use crate::error::{Errno, PortError};
use crate::ring::{Consumer, Producer, Ring};
use crate::{life, messages};

/// An open device that does not run. Dropping it closes the device and removes it from DPDK.
#[derive(Debug)]
pub struct Port {
    id: u16,
    device: String,
    /// What the queues of a port made from rings are; they must not go before the port.
    _rings: Vec<Arc<Ring>>,
}

impl Port {
    /// Opens a device: the PCI address of a card (`0000:83:00.0`, device arguments behind commas) or a virtual
    /// device (`net_tap0,iface=thr0`). Probes it when DPDK has not done so at its start. A card with several ports
    /// behind one address takes the argument `port=N`.
    ///
    /// # Errors
    /// When no environment runs, there is no such device, it is bound to the wrong driver, no driver takes it, or it
    /// is open already.
    pub fn open(device: &str) -> Result<Self, PortError> {
        let mut life = life::running()?;
        let id = device::find_or_probe(&life.ports, device)?;
        life.ports.insert(id);
        Ok(Self { id, device: device.to_owned(), _rings: Vec::new() })
    }

    /// Makes a port whose receive queues are the consuming sides of rings and whose transmit queues are the producing
    /// sides of rings. Whoever has the other sides is the other end of the wire.
    ///
    /// # Errors
    /// When no environment runs, a side has no queue, or the name is taken or unusable.
    pub fn from_rings(name: &str, rx: Vec<Consumer>, tx: Vec<Producer>) -> Result<Self, PortError> {
        // Before the lock: a ring that is given up takes it.
        let rx: Vec<Arc<Ring>> = rx.into_iter().map(|consumer| consumer.ring).collect();
        let tx: Vec<Arc<Ring>> = tx.into_iter().map(|producer| producer.ring).collect();
        let mut life = life::running()?;
        let device = format!("net_ring_{name}");
        let c_name = CString::new(name).map_err(|_| PortError::BadName { device: device.clone() })?;
        for (direction, count) in [("RX", rx.len()), ("TX", tx.len())] {
            if count == 0 {
                return Err(PortError::NoQueues { device, direction });
            }
        }
        let raw = |rings: &[Arc<Ring>]| rings.iter().map(|ring| ring.raw()).collect::<Vec<_>>();
        let (raw_rx, raw_tx) = (raw(&rx), raw(&tx));
        // SAFETY: the environment runs, the name is terminated, and the arrays are of the lengths given. The rings are
        // kept with the port, and nobody else has these sides of them.
        let make = || unsafe {
            dpdk_sys::rte_eth_from_rings(
                c_name.as_ptr(),
                raw_rx.as_ptr(),
                raw_rx.len() as u32,
                raw_tx.as_ptr(),
                raw_tx.len() as u32,
                0,
            )
        };
        let made = messages::attempt(|| u16::try_from(make()).map_err(|_| Errno::last()));
        let id = made.map_err(|errno| PortError::Probe {
            device: device.clone(),
            errno,
            complaints: messages::complaints(),
            remedy: "Names of ports are unique and short, and a port has 16 queues at most",
        })?;
        life.ports.insert(id);
        Ok(Self { id, device, _rings: rx.into_iter().chain(tx).collect() })
    }

    /// What the device is and can do.
    ///
    /// # Errors
    /// When the driver does not tell.
    pub fn info(&self) -> Result<DeviceInfo, PortError> {
        device::info(self.id).map_err(|errno| self.step("read the device's abilities", errno))
    }

    /// Sets the port up and starts it.
    ///
    /// # Errors
    /// When the device cannot be what the configuration asks for; the port is closed then.
    pub fn configure_and_start(self, config: &PortConfig) -> Result<RunningPort, PortError> {
        let applied = config::apply(&self, config)?;
        RunningPort::start(self, config, applied)
    }

    /// The device, as it was named when it was opened.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// DPDK's number of the port, which [`crate::Mbuf::port`] tells.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// The device's MAC address.
    ///
    /// # Errors
    /// When the driver does not tell.
    pub fn mac(&self) -> Result<[u8; 6], PortError> {
        let mut address = dpdk_sys::rte_ether_addr { addr_bytes: [0; 6] };
        // SAFETY: DPDK checks the port's number and fills the structure.
        Errno::check(unsafe { dpdk_sys::rte_eth_macaddr_get(self.id, &mut address) })
            .map_err(|errno| self.step("read the MAC address", errno))?;
        Ok(address.addr_bytes)
    }

    /// The error of a step that the driver refused.
    fn step(&self, step: impl Into<String>, errno: Errno) -> PortError {
        PortError::Step { device: self.device.clone(), step: step.into(), errno, complaints: messages::complaints() }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let mut life = life::lock();
        device::close(&life.ports, self.id, &self.device);
        life.ports.remove(&self.id);
    }
}
