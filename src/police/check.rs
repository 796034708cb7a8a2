//! Which settings are possible, and which are unlikely to be meant.

use super::settings::{Arithmetic, Fault, Settings, Sharing, Warning};

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
        let mut fault = |wrong: bool, key, sentence: &str| {
            if wrong {
                faults.push(Fault::new(key, sentence));
            }
        };
        fault(
            self.rate.is_some() && self.burst.is_none(),
            "burst",
            "a rate needs the bytes that may pass at once: set burst",
        );
        fault(self.burst.is_some() && self.rate.is_none(), "burst", "a burst is that of a rate: set rate");
        fault(self.rate == Some(0), "rate", "nothing ever conforms to a rate of 0: set one above");
        fault(self.pkts_rate == Some(0), "pkts_rate", "nothing ever conforms to a rate of 0: set one above");
        fault(self.pkts_burst == Some(0), "pkts_burst", "nothing ever conforms to a burst of 0: set 1 at least");
        fault(
            self.pkts_rate.is_some() != self.pkts_burst.is_some(),
            "pkts_rate",
            "pkts_rate and pkts_burst go together: set both",
        );
        fault(
            self.pkts_rate.is_some() && self.rate.is_some(),
            "pkts_rate",
            "a policer counts bytes or packets: set rate or pkts_rate, or make two policers",
        );
        fault(
            self.burst.max(self.pkts_burst) > Some(1 << 61),
            "burst",
            "the burst is beyond what is counted: choose one below 2^61",
        );
        fault(
            self.peakrate.is_some(),
            "peakrate",
            "a peak rate is not supported: make a second policer of this rate, with a burst of one frame",
        );
        fault(self.avrate.is_some(), "avrate", "an average rate is not supported: set rate and burst");
        fault(self.arithmetic != Arithmetic::Exact, "arithmetic", "only exact arithmetic is supported: leave it out");
        fault(self.sharing == Sharing::Spinlock, "sharing", "a lock is not supported: leave it out");
        if let (Some(burst), Some(_)) = (self.burst, self.rate) {
            let longest = u64::from(self.mtu.unwrap_or(1514));
            if burst < longest {
                let sentence = format!(
                    "nothing of {longest} bytes can ever conform to {burst}: set a burst of {longest} at least, or a mtu of at most {burst}"
                );
                faults.push(Fault::new("burst", sentence));
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut warnings = Vec::new();
        if let (Some(burst), Some(rate)) = (self.burst, self.rate) {
            let needed = rate / 125;
            if burst < needed {
                let sentence = format!(
                    "{burst} bytes are less than pass in 8 ms at this rate, so that it will hardly be reached: set {} or more",
                    rate / 100
                );
                warnings.push(Warning::new("burst", sentence));
            }
        }
        Ok(warnings)
    }
}
