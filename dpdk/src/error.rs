//! What can go wrong. Each message names the thing, the reason and, where there is one, the remedy.

use std::ffi::CStr;
use std::fmt;

use thiserror::Error;

/// An error number of DPDK, which is one of the operating system's or of DPDK's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// The calling thread's last error in a function of DPDK that does not return it.
    pub(crate) fn last() -> Self {
        // SAFETY: reads a variable of this thread.
        Self(unsafe { dpdk_sys::shim_errno() })
    }

    /// The result of a function that returns zero or more, or a negative error number.
    pub(crate) fn check(result: i32) -> Result<i32, Self> {
        if result < 0 { Err(Self(-result)) } else { Ok(result) }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Many functions of DPDK return -1 for any reason.
        if self.0 == libc::EPERM {
            return f.write_str("it failed or is not permitted");
        }
        // SAFETY: rte_strerror returns a terminated string, static or of this thread, for every number.
        let text = unsafe { CStr::from_ptr(dpdk_sys::rte_strerror(self.0)) };
        f.write_str(&text.to_string_lossy())
    }
}

/// An error number in brackets after a space; nothing where the function that failed left none.
struct Aside(Errno);

impl fmt::Display for Aside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.0 == 0 { Ok(()) } else { write!(f, " ({})", self.0) }
    }
}

/// Why the environment does not start, is not there, or cannot be given up.
#[derive(Debug, Error)]
pub enum EalError {
    /// Another environment was started, or failed to start, in this process.
    #[error("DPDK was already started in this process: it can be started once only")]
    AlreadyStarted,
    /// An argument holds a NUL.
    #[error("the EAL argument {argument:?} holds a NUL character: leave it out")]
    BadArgument {
        /// The argument.
        argument: String,
    },
    /// `rte_eal_init` failed.
    #[error("DPDK does not start{}{complaints}{remedy}", Aside(*errno))]
    Init {
        /// The error number.
        errno: Errno,
        /// What DPDK logged, after a colon.
        complaints: String,
        /// What can be done, after a full stop.
        remedy: &'static str,
    },
    /// Another process of this host has the same `--file-prefix`.
    #[error("DPDK does not start: another process uses the same --file-prefix: end it, or choose another{complaints}")]
    PrefixTaken {
        /// What DPDK logged, after a colon.
        complaints: String,
    },
    /// The mask of allowed cores cannot be read or restored.
    #[error("cannot {action} the cores that this thread may use: {source}")]
    Affinity {
        /// `read` or `set`.
        action: &'static str,
        /// The reason.
        source: rustix::io::Errno,
    },
    /// A pool, port, ring or thread was asked for while no environment runs.
    #[error("DPDK is not running in this process: start the EAL first")]
    NotRunning,
    /// The environment cannot be given up yet.
    #[error("DPDK cannot be shut down: {left} left")]
    InUse {
        /// What is left, for example `2 ports`.
        left: String,
    },
    /// The thread cannot be made known to DPDK.
    #[error("cannot register a thread with DPDK ({errno}): at most {} threads have a number", dpdk_sys::RTE_MAX_LCORE)]
    Thread {
        /// The error number.
        errno: Errno,
    },
}

/// Why a pool is not made.
#[derive(Debug, Error)]
pub enum PoolError {
    /// No environment runs.
    #[error(transparent)]
    Eal(#[from] EalError),
    /// A figure is out of its range.
    #[error("memory pool {name}: {what} is {value}, it must be {range}")]
    OutOfRange {
        /// The pool.
        name: String,
        /// The figure's name.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The range that is allowed.
        range: String,
    },
    /// There is not enough memory.
    #[error(
        "memory pool {name}: cannot have {count} packet buffers of {size} bytes ({mib} MiB) {socket}: \
         {errno}{complaints}. Reserve more hugepages (sysctl vm.nr_hugepages), raise the EAL's -m, or ask for fewer"
    )]
    NoMemory {
        /// The pool.
        name: String,
        /// Buffers asked for.
        count: u32,
        /// Bytes of one buffer.
        size: u32,
        /// Memory asked for.
        mib: u64,
        /// `on NUMA node 1` or `on any NUMA node`.
        socket: String,
        /// The error number.
        errno: Errno,
        /// What DPDK logged, after a colon.
        complaints: String,
    },
    /// DPDK refused for another reason than memory.
    #[error(
        "memory pool {name}: cannot be made: {errno}{complaints}. Are the drivers of DPDK installed \
         (librte_mempool_ring among them)?"
    )]
    Refused {
        /// The pool.
        name: String,
        /// The error number.
        errno: Errno,
        /// What DPDK logged, after a colon.
        complaints: String,
    },
    /// The name is taken or unusable.
    #[error("memory pool {name}: {errno}: names are unique, without NUL and at most 25 bytes long")]
    Name {
        /// The pool.
        name: String,
        /// The error number.
        errno: Errno,
    },
}

/// Why a ring is not made.
#[derive(Debug, Error)]
pub enum RingError {
    /// No environment runs.
    #[error(transparent)]
    Eal(#[from] EalError),
    /// DPDK refused.
    #[error(
        "ring {name} of {places} places: {errno}: names are unique, without NUL and at most 28 bytes long, sizes are \
         powers of two from 2 to 2^30"
    )]
    Create {
        /// The ring.
        name: String,
        /// Places asked for.
        places: u32,
        /// The error number.
        errno: Errno,
    },
}

/// Why a port is not opened, configured or started, or a queue not handed out.
#[derive(Debug, Error)]
pub enum PortError {
    /// No environment runs.
    #[error(transparent)]
    Eal(#[from] EalError),
    /// The device string is empty or holds a NUL.
    #[error("device {device:?}: not a PCI address or the name of a virtual device")]
    BadName {
        /// The device.
        device: String,
    },
    /// The PCI address is not there.
    #[error("device {device}: no such PCI device: lspci -D lists them")]
    NoSuchPciDevice {
        /// The device.
        device: String,
    },
    /// The PCI device is bound to a driver that DPDK cannot use.
    #[error("device {device}: {reason}: {remedy}")]
    WrongDriver {
        /// The device.
        device: String,
        /// What it is bound to.
        reason: String,
        /// The command that binds it to the right one.
        remedy: String,
    },
    /// There is no driver for a virtual device of that name.
    #[error(
        "device {device}: there is no such device. Is it a PCI address, or a virtual device that DPDK knows and whose driver \
         is installed (net_tap0, net_af_packet0,iface=eth0, net_pcap0,iface=eth0)?"
    )]
    UnknownDevice {
        /// The device.
        device: String,
    },
    /// No driver took the device.
    #[error("device {device}: cannot be probed ({errno}){complaints}. {remedy}")]
    Probe {
        /// The device.
        device: String,
        /// The error number.
        errno: Errno,
        /// What DPDK logged, after a colon.
        complaints: String,
        /// What can be done.
        remedy: &'static str,
    },
    /// The device gave no port, or not the one asked for.
    #[error("device {device}: a driver took it, but there is no such port on it: {found}")]
    NoPort {
        /// The device.
        device: String,
        /// The ports there are.
        found: String,
    },
    /// The port is open already.
    #[error("device {device}: already in use by another port: name each device once")]
    AlreadyOpen {
        /// The device.
        device: String,
    },
    /// More queues than the device has.
    #[error("device {device}: {asked} {direction} queues asked for, the device supports at most {most}")]
    TooManyQueues {
        /// The device.
        device: String,
        /// `RX` or `TX`.
        direction: &'static str,
        /// Queues asked for.
        asked: usize,
        /// Queues that the device has.
        most: u16,
    },
    /// No queue at all.
    #[error("device {device}: no {direction} queue asked for: at least one is needed")]
    NoQueues {
        /// The device.
        device: String,
        /// `RX` or `TX`.
        direction: &'static str,
    },
    /// The MTU is not one the device can have.
    #[error("device {device}: an MTU of {mtu} asked for, the device supports {least} to {most}")]
    Mtu {
        /// The device.
        device: String,
        /// MTU asked for.
        mtu: u16,
        /// Least MTU.
        least: u32,
        /// Greatest MTU.
        most: u32,
    },
    /// A frame does not fit a packet buffer, and the device cannot spread it over several.
    #[error(
        "device {device}: frames of MTU {mtu} need packet buffers with a data room of {needed} bytes, the pool's have \
         {room}, and the device cannot scatter a frame over several: make the data room larger or the MTU smaller"
    )]
    DataRoom {
        /// The device.
        device: String,
        /// MTU asked for.
        mtu: u16,
        /// Data room needed, headroom included.
        needed: u32,
        /// Data room of the pool, headroom included.
        room: u16,
    },
    /// The device keeps its MAC address.
    #[error("device {device}: cannot set the MAC address to {mac} ({errno}): the address stays {current}")]
    Mac {
        /// The device.
        device: String,
        /// Address asked for.
        mac: String,
        /// Address it has.
        current: String,
        /// The error number.
        errno: Errno,
    },
    /// The device keeps its MTU.
    #[error(
        "device {device}: cannot set the MTU to {mtu} ({errno}){complaints}. Devices that are interfaces of the kernel \
         (net_af_packet, net_tap) need CAP_NET_ADMIN for it, even for the MTU they have; other devices may need another mtu"
    )]
    SetMtu {
        /// The device.
        device: String,
        /// MTU asked for.
        mtu: u16,
        /// The error number.
        errno: Errno,
        /// What DPDK logged, after a colon.
        complaints: String,
    },
    /// The device refused a step of its configuration.
    #[error("device {device}: cannot {step}: {errno}{complaints}")]
    Step {
        /// The device.
        device: String,
        /// What was tried.
        step: String,
        /// The error number.
        errno: Errno,
        /// What DPDK logged, after a colon.
        complaints: String,
    },
    /// There is no such queue.
    #[error("device {device}: no {direction} queue {queue}: there are {count}")]
    NoSuchQueue {
        /// The device.
        device: String,
        /// `RX` or `TX`.
        direction: &'static str,
        /// The queue asked for.
        queue: u16,
        /// Queues that the port was configured with.
        count: usize,
    },
    /// The port is stopped.
    #[error("device {device}: it is down and has no queues: take it up first")]
    NotRunning {
        /// The device.
        device: String,
    },
    /// The port cannot be stopped under those who use it.
    #[error("device {device}: it cannot be stopped while its queues are in use")]
    QueueOut {
        /// The device.
        device: String,
    },
    /// The queue is in use.
    #[error("device {device}: {direction} queue {queue} is in use: a queue has one user at a time")]
    QueueTaken {
        /// The device.
        device: String,
        /// `RX` or `TX`.
        direction: &'static str,
        /// The queue.
        queue: u16,
    },
}
