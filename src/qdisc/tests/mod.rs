//! Tests of the qdisc.

mod bands;
mod counting;
mod kit;
mod order;
mod ring;
mod scenarios;
mod stage;
mod without;
