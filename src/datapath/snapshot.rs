//! The tables a worker forwards by: immutable, replaced as a whole, made and freed by control.
//!
//! The two FIBs are the exception that a full table needs: control changes them in place, prefix by
//! prefix, in a way that lets each lookup see the old or the new route. What a FIB entry refers to is
//! in the snapshot before the entry is, and stays in it until after the entry is gone (see `tables`).

use super::buffer::{BURST, SMALL_BURST};
use super::policing::Policing;
use crate::drop_reason::DropReason;
use crate::fib::{Ipv4Fib, Ipv6Fib, NextHopId};
use crate::units::{MacAddr, PortId};
use std::sync::Arc;

/// The tables of one moment.
pub struct Snapshot {
    /// IPv4 destinations.
    pub ipv4: Arc<Ipv4Fib>,
    /// IPv6 destinations.
    pub ipv6: Arc<Ipv6Fib>,
    /// What the FIBs' answers mean.
    pub next_hops: NextHops,
    /// The policers that packets meet; none as long as there are none.
    pub policing: Option<Arc<Policing>>,
}

impl Snapshot {
    /// True when the destinations of a burst are best looked up together.
    #[inline(always)]
    pub fn is_large(&self, family: Family) -> bool {
        match family {
            Family::Ipv4 => self.ipv4.is_large(),
            Family::Ipv6 => self.ipv6.is_large(),
        }
    }

    /// How many packets are best received at once.
    #[inline(always)]
    pub fn burst(&self) -> usize {
        if self.ipv4.is_large() || self.ipv6.is_large() { BURST } else { SMALL_BURST }
    }
}

/// The address family of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// EtherType 0x0800.
    Ipv4,
    /// EtherType 0x86dd.
    Ipv6,
}

impl Family {
    /// The one it is not.
    #[inline(always)]
    pub fn other(self) -> Self {
        match self {
            Self::Ipv4 => Self::Ipv6,
            Self::Ipv6 => Self::Ipv4,
        }
    }

    /// The two bytes behind the MAC addresses.
    pub fn ethertype(self) -> [u8; 2] {
        match self {
            Self::Ipv4 => [0x08, 0x00],
            Self::Ipv6 => [0x86, 0xdd],
        }
    }
}

/// Most ports there can be: one bit each in the words that burst passes keep.
pub const MAX_PORTS: usize = u64::BITS as usize;

/// Bytes of an Ethernet header.
pub const ETHERNET_HEADER: u32 = 14;

/// What is done with packets to one next hop. Half a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct NextHop {
    /// The Ethernet header of packets sent to it, two bytes of padding behind it.
    pub(crate) header: [u8; 16],
    /// Where it leaves: the bit of that number.
    pub(crate) port_bit: u64,
    /// Longest frame that is simply forwarded: 0 unless the action is to forward, so that one
    /// comparison per packet finds everything out of the ordinary.
    pub(crate) max_frame: u32,
    /// Longest packet the port can carry.
    mtu: u16,
    action: Action,
}

/// What a next hop does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Rewrites the packet and sends it.
    Forward,
    /// Would, but does not know the MAC address.
    Unresolved,
    /// Drops it.
    Drop(DropReason),
}

impl NextHop {
    /// Drops every packet for one reason.
    pub const fn dropping(reason: DropReason) -> Self {
        Self { header: [0; 16], port_bit: 1, max_frame: 0, mtu: 0, action: Action::Drop(reason) }
    }

    /// Sends packets of at most `mtu` bytes (IP header included) out of `port`, a number below
    /// [`MAX_PORTS`], from its MAC address `source` to `destination`; drops them as long as that is `None`.
    pub fn forwarding(family: Family, port: PortId, mtu: u16, source: MacAddr, destination: Option<MacAddr>) -> Self {
        let mut header = [0; 16];
        header[..6].copy_from_slice(&destination.unwrap_or_default().0);
        header[6..12].copy_from_slice(&source.0);
        header[12..14].copy_from_slice(&family.ethertype());
        let (action, max_frame) = match destination {
            Some(_) => (Action::Forward, ETHERNET_HEADER + u32::from(mtu)),
            None => (Action::Unresolved, 0),
        };
        Self { header, port_bit: 1 << (port.index() % MAX_PORTS), max_frame, mtu, action }
    }

    /// Where it leaves.
    #[inline(always)]
    pub fn port(&self) -> PortId {
        PortId(self.port_bit.trailing_zeros() as u16)
    }

    /// What it does.
    pub fn action(&self) -> Action {
        self.action
    }

    /// Why a packet to it is dropped, given its length and whether its TTL ends here; `None` if it is
    /// forwarded. Routes come before the TTL, the TTL before the MTU, the MTU before the neighbour, as
    /// in Linux.
    pub fn refusal(&self, frame_len: u32, ttl_expires: bool) -> Option<DropReason> {
        match self.action {
            Action::Drop(reason) => Some(reason),
            _ if ttl_expires => Some(DropReason::TtlExpired),
            _ if frame_len > ETHERNET_HEADER + u32::from(self.mtu) => Some(DropReason::TooBig),
            Action::Unresolved => Some(DropReason::NeighborUnresolved),
            Action::Forward => None,
        }
    }
}

/// A table with a next hop for every [`NextHopId`].
#[derive(Clone, Debug)]
pub struct NextHops(Box<[NextHop; NextHopId::CAPACITY]>);

impl NextHops {
    /// From the first ones; the others drop packets as having no route.
    pub fn new(first: &[NextHop]) -> Self {
        let mut all = vec![NextHop::dropping(DropReason::NoRoute); NextHopId::CAPACITY];
        let used = first.len().min(all.len());
        all[..used].copy_from_slice(&first[..used]);
        match all.into_boxed_slice().try_into() {
            Ok(table) => Self(table),
            Err(_) => unreachable!("the vector was made with this length"),
        }
    }

    /// All of them, by position.
    #[inline(always)]
    pub(super) fn all(&self) -> &[NextHop; NextHopId::CAPACITY] {
        &self.0
    }

    /// The one at a position.
    #[inline(always)]
    pub fn get(&self, id: NextHopId) -> &NextHop {
        // NextHopId::index is below CAPACITY by a mask, so that no bounds check is left here.
        &self.0[id.index()]
    }
}
