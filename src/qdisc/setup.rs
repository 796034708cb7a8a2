//! What a root is made of, and how it is set up.

use super::band::BandMap;
use super::pfifo_fast::{BandConsumer, BandProducer};
use super::safeguards::Safeguards;
use super::{Device, Packet};
use crate::sync::Primitives;

/// What a root is made of.
pub trait Parts: 'static {
    /// What is sent.
    type Packet: Packet;
    /// What takes it.
    type Device: Device<Self::Packet>;
    /// The producers' side of a band.
    type Producer: BandProducer<Self::Packet>;
    /// The owner's side of a band.
    type Consumer: BandConsumer<Self::Packet>;
    /// What cores synchronise by: [`Native`](crate::sync::Native) but in tests.
    type Primitives: Primitives;
    /// The protocol: [`All`](super::All) but in tests.
    type Safeguards: Safeguards;
}

/// How a root is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its position in the list of queues that [`Deferred::turn`](super::Deferred::turn) is given.
    pub id: usize,
    /// How many cores have a [`Deferred`](super::Deferred) of their own, control included.
    pub cores: usize,
    /// Whether packets may pass by empty bands.
    pub bypass: bool,
    /// Packets after which an owner gives way, at least 1. In Linux `dev_weight`, 64.
    pub quota: usize,
    /// Time after which a full device is tried again, at first; less than 2^63. One that turns out to be slow is left alone for
    /// up to 16 times as long.
    pub retry_interval: u64,
    /// Which band a packet goes to.
    pub map: BandMap,
}
