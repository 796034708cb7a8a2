//! From what is written to what is meant: defaults filled in, references resolved, values held against each
//! other.
//!
//! Invariant: a check that depends on a value that is already known to be wrong is left out, so that one
//! mistake gives one error. Every check is at most logarithmic in the size of the file.

mod connected;
mod next_hops;
mod police;
mod ports;
mod qdisc;
mod queues;
mod runtime;

use super::Config;
use super::error::Log;
use super::raw::Raw;

/// What the file means. Of use only when nothing was recorded in `log`: wrong values are replaced by defaults.
pub(super) fn validate(raw: &Raw<'_>, log: &mut Log<'_>) -> Config {
    let workers = runtime::Workers::new(&raw.runtime, log);
    let (ports, names, connected) = ports::validate(raw, &workers, log);
    let (routes, neighbors) = next_hops::validate(raw, &names, &connected, log);
    let policers = police::validate(raw, &names, log);
    Config {
        runtime: runtime::runtime(&raw.runtime, &workers),
        control: runtime::control(&raw.control),
        ports,
        routes,
        neighbors,
        policers,
    }
}
