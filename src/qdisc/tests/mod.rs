//! Tests of the qdisc.

mod kit;
mod scenarios;
mod stage;
mod without;
