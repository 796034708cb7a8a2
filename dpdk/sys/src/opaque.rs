//! C types that Rust only points to.
//!
//! They cannot be made, moved or shared between threads by safe code.

use std::marker::{PhantomData, PhantomPinned};

macro_rules! opaque {
    ($(#[$doc:meta] $name:ident),+ $(,)?) => {$(
        #[$doc]
        #[repr(C)]
        #[allow(non_camel_case_types, reason = "the name is that of DPDK")]
        pub struct $name {
            _data: [u8; 0],
            _not_send_not_sync_pinned: PhantomData<(*mut u8, PhantomPinned)>,
        }
    )+};
}

opaque! {
    /// A packet buffer; [`crate::layout`] reads its fields.
    rte_mbuf,
    /// A pool of packet buffers.
    rte_mempool,
    /// A ring of pointers.
    rte_ring,
    /// A device on a bus.
    rte_device,
}
