//! Raw bindings to the parts of DPDK that a forwarder needs: generated from the installed headers
//! with an explicit allow-list, plus the functions of `shim.c` and the loops of
//! `ring_bench.c`. Only the crate `dpdk` uses them.

pub mod layout;
mod opaque;

/// What bindgen made of the headers; names, units and rules are those of DPDK's own documentation.
#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    reason = "generated code"
)]
mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

pub use bindings::*;
pub use opaque::*;
