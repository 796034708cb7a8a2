//! Which settings are possible, and which are unlikely to be meant.

use super::settings::{Fault, Settings, Warning};

impl Settings {
    /// Whether there can be a policer with these settings, and what is odd about them.
    ///
    /// # Errors
    ///
    /// Everything that has to be changed first.
    pub fn check(&self) -> Result<Vec<Warning>, Vec<Fault>> {
        let mut faults = Vec::new();
        if self.rate.is_none() && self.avrate.is_none() && self.pkts_rate.is_none() && self.mtu.is_none() {
            faults.push(Fault::new(
                "rate",
                "nothing is set that a packet could exceed: set rate and burst, pkts_rate and pkts_burst, avrate, or mtu",
            ));
        }
        if self.rate.is_some() && self.burst.is_none() {
            faults.push(Fault::new("burst", "a rate needs the bytes that may pass at once: set burst"));
        }
        if faults.is_empty() { Ok(Vec::new()) } else { Err(faults) }
    }
}
