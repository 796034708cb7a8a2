//! Handing snapshots to the workers, and knowing when they have let go of the last one.

use super::Tables;
use crate::datapath::policing::Policing;
use crate::datapath::snapshot::{NextHop, NextHops, Snapshot};
use crate::fib::{Ipv4Fib, Ipv6Fib};
use arc_swap::ArcSwap;
use std::sync::Arc;

/// Called again and again while waiting for workers; should give the processor away.
pub type Relax = Box<dyn FnMut() + Send>;

/// The one that replaces snapshots.
pub(super) struct Publisher {
    ipv4: Arc<Ipv4Fib>,
    ipv6: Arc<Ipv6Fib>,
    current: Arc<ArcSwap<Snapshot>>,
    /// What every snapshot has.
    policing: Option<Arc<Policing>>,
    relax: Relax,
}

impl Publisher {
    pub fn new(ipv4: Arc<Ipv4Fib>, ipv6: Arc<Ipv6Fib>, hops: &[NextHop], relax: Relax) -> Self {
        let next_hops = NextHops::new(hops);
        let snapshot = Snapshot { ipv4: ipv4.clone(), ipv6: ipv6.clone(), next_hops, policing: None };
        Self { ipv4, ipv6, current: Arc::new(ArcSwap::from_pointee(snapshot)), policing: None, relax }
    }

    pub fn current(&self) -> Arc<ArcSwap<Snapshot>> {
        self.current.clone()
    }

    /// Replaces the snapshot and returns when no worker uses an older one. The old one is freed here, not
    /// by a worker.
    pub fn publish(&mut self, hops: &[NextHop]) {
        let (ipv4, ipv6, policing) = (self.ipv4.clone(), self.ipv6.clone(), self.policing.clone());
        let mut old = self.current.swap(Arc::new(Snapshot { ipv4, ipv6, next_hops: NextHops::new(hops), policing }));
        // `get_mut` succeeds when this is the only reference left, and then synchronises with the drop of
        // the others: whatever workers read under the old snapshot, they read before this returns.
        while Arc::get_mut(&mut old).is_none() {
            (self.relax)();
        }
    }
}

impl Tables {
    /// Puts policers in the packets' way, or takes all out of it. When it returns, every worker has seen it.
    pub fn set_policing(&mut self, policing: Option<Policing>) {
        self.publisher.policing = policing.map(Arc::new);
        self.publisher.publish(self.adjacencies.hops());
    }
}
