//! Thruway: a poll-mode L3 forwarder on DPDK.
//!
//! This page is the plan of the house. Each module's own page says what it keeps.
//!
//! # Layers
//!
//! Arrows point down only: a module names its own layer and those below it, and no two name each other.
//!
//! | layer | modules | what they may do |
//! | --- | --- | --- |
//! | edges | [`control`] (socket, protocol, reports), [`cli`], `runtime` (DPDK, threads, the daemon) | everything |
//! | the middle | [`datapath`], [`tables`] | compute: time, packets and queues are arguments |
//! | | [`config`], [`generate`] | read or write the one file they are given |
//! | mechanisms | [`packet`] (headers, checks), [`fib`] (longest-prefix match) | compute |
//! | | [`classify`] (which of many rules a packet fits), [`police`] (which packets are within a rate) | compute |
//! | | [`segment`] (merging packets of a flow, cutting merged ones) | compute |
//! | | [`queue`] (the ring between threads), [`qdisc`] (who sends, in which order), [`bql`] (how much at a time) | compute |
//! | | [`police`] (what is within a rate), [`classify`] (which rules a packet fits) | compute |
//! | vocabulary | [`units`], [`drop_reason`], [`counter`], [`sync`] (atomics, real and modelled) | |
//!
//! `runtime` alone names the crate `dpdk`, a safe layer over the bindings in `dpdk-sys`. Everything else
//! builds and is tested without DPDK (`--no-default-features`). The command line knows the daemon by
//! [`control::protocol`] and [`control::report`] only. The data path never sees a configuration, only tables
//! made from it.
//!
//! # The way of a packet
//!
//! ```text
//! receive a burst → validate → look up → rewrite → group by port → qdisc: bypass or enqueue → transmit a train
//!                      └──────────┴─────────┴──────────────┴──────────┴→ a named drop counter
//! ```
//!
//! 1. A [`datapath::worker`] polls its receive queues in turn, and hands each burst of up to
//!    [`BURST`](datapath::buffer::BURST) packets to the [`datapath::pipeline`], where the whole way can be read
//!    in one function.
//! 2. The burst becomes arrays, one for each address family, and one pass goes over them by groups of eight. Validation
//!    has a vector form and a scalar twin ([`datapath::Isa`]). What looks odd to it is examined packet by
//!    packet ([`packet::examine`]), by the rules and in the order of [`drop_reason`].
//! 3. The FIB gives a [`NextHopId`](fib::NextHopId): a position in the snapshot's
//!    [`next hops`](datapath::snapshot::NextHops). Every destination that is not simply forwarded (a
//!    blackhole, an address of ours, a neighbour whose MAC address is not known) is a next hop as well, so
//!    that one comparison per packet, of its length, finds all of them.
//! 4. The Ethernet header is written, TTL or hop limit and checksum are brought up to date, and the packets go
//!    to a transmit queue ([`datapath::output`]): through a [`qdisc`] ([`datapath::transmit`]), by which workers can share
//!    it, or straight to one that is the worker's own.
//! 5. A qdisc is a [`root`](qdisc::root) with rings ([`queue`]) as its bands. Packets go past it while it is empty and nobody
//!    sends; else they are queued, and whoever has the run lock sends them. What a full device refuses waits, leaves
//!    first, and is offered again. A byte limit ([`bql`]) cuts trains and stops the queue, by what is known to have left
//!    ([`datapath::in_flight`]).
//! 6. Where there are [policers](datapath::policing), packets meet those of their port before it matters where they go, and those of the
//!    port they leave by before its qdisc.
//! 7. If so wished, packets of a flow are merged when they are received, and the pipeline and the qdisc see only the first; before the
//!    device they are taken apart again, or left to it to be cut ([`datapath::super_packet`], by the rules of [`segment`]).
//!
//! # Who owns what
//!
//! - **Packets** are owned by move: receiving gives them, transmitting takes those sent, dropping frees.
//!   Neither packets nor queues can be cloned; a receive queue belongs to one worker, a transmit queue to one worker or to
//!   the root before it.
//! - **Control** is one thread. It owns the truth in [`tables::Tables`] and is its only writer. Workers read a
//!   [`Snapshot`](datapath::snapshot::Snapshot) that they take anew each turn; the FIBs in it are changed in
//!   place, each lookup seeing the old or the new route. What workers have let go of is freed by control.
//! - **Workers** write their own [`counters`](datapath::counters), and meet each other in the qdiscs' rings and run words only.
//! - **Ports** live until workers have given their queues back; DPDK itself and its packet pools live as long as the
//!   process.
//!
//! # Rules
//!
//! - Every packet that comes in is sent or counted under exactly one [`DropReason`](drop_reason::DropReason).
//! - The worker loop does not allocate, lock, wait, format or make a system call; a driver may.
//! - The C side is called per burst, never per packet.
//! - Every queue and pool is bounded, and the packet pool has a buffer for every place a packet can be in.
//! - `unsafe` stands only in `dpdk`, `runtime`, the batch passes and buffers of the data path, the FIB's memory, the
//!   ring and the run lock, each block with its reason.
//! - What threads meet at is model-checked as it is ([`sync`]).
//! - Wrong input, be it a frame, a file or a request, is counted or refused with a sentence that says what would be
//!   right. Nothing panics.
//!
//! `tests/layout.rs` holds the sources to the layers, the fence around `unsafe` and the rest of this that can be read
//! off them.

pub mod bql;
pub mod classify;
pub mod cli;
pub mod config;
pub mod control;
pub mod counter;
pub mod datapath;
pub mod drop_reason;
pub mod fib;
pub mod generate;
pub mod packet;
pub mod police;
pub mod qdisc;
pub mod queue;
#[cfg(feature = "dpdk")]
pub mod runtime;
pub mod segment;
pub mod sync;
pub mod tables;
pub mod units;
