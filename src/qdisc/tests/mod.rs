//! Tests of the qdisc.

mod bands;
mod counting;
mod kit;
mod on_rings;
mod order;
mod ring;
mod scenarios;
mod several;
mod slow;
mod stage;
mod taken_down;
mod without;
