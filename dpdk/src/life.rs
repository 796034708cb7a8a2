//! What of DPDK is alive in this process.
//!
//! Invariant: whatever uses memory of the EAL is counted here from before it exists until after it is gone, and
//! the environment is given up only when nothing is counted. Creation holds the lock, so nothing appears
//! while the environment goes away.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::EalError;
use crate::mempool::Pool;

/// How far the one environment of this process is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Unused,
    Running,
    /// Failed to start, or shut down: DPDK cannot be started again in one process.
    Over,
}

pub(crate) struct Life {
    pub(crate) phase: Phase,
    /// Every pool ever made: their memory is given back with the environment only.
    pub(crate) pools: Vec<Arc<Pool>>,
    /// Ports that are open, by DPDK's number.
    pub(crate) ports: BTreeSet<u16>,
    pub(crate) rings: usize,
    pub(crate) threads: usize,
}

static LIFE: Mutex<Life> =
    Mutex::new(Life { phase: Phase::Unused, pools: Vec::new(), ports: BTreeSet::new(), rings: 0, threads: 0 });

/// The state, whatever the phase.
pub(crate) fn lock() -> MutexGuard<'static, Life> {
    // Every change of the state is a single step: a panic elsewhere leaves nothing half done.
    LIFE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state while the environment runs; an error before and after.
pub(crate) fn running() -> Result<MutexGuard<'static, Life>, EalError> {
    let life = lock();
    match life.phase {
        Phase::Running => Ok(life),
        Phase::Unused | Phase::Over => Err(EalError::NotRunning),
    }
}
