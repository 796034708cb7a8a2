//! Tests of super-packets: rules, properties over bursts, and cutting.

mod bursts;
mod cutting;
mod kit;
mod rules;
