//! What an operator can set.

use std::time::Duration;

use thiserror::Error;

/// Most bytes that a limit can be: that of Linux, `DQL_MAX_LIMIT`.
pub const MAX_LIMIT: u32 = 1_879_048_192;

/// Between which bounds the limit moves, and how slowly it sinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    min: u32,
    max: u32,
    hold: Duration,
}

/// Bounds between which there is nothing, or beyond what is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LimitsError {
    /// The lower bound is above the upper one.
    #[error("the lower bound of the limit, {min} bytes, is above the upper one, {max}: choose min ≤ max")]
    Crossed {
        /// Lower bound asked for, in bytes.
        min: u32,
        /// Upper bound asked for, in bytes.
        max: u32,
    },
    /// The upper bound is too high.
    #[error("the upper bound of the limit is {max} bytes: at most {MAX_LIMIT} are possible")]
    TooHigh {
        /// Upper bound asked for, in bytes.
        max: u32,
    },
}

impl Limits {
    /// Bounds in bytes, and the time over which the least excess is looked for before the limit sinks by it. In Linux
    /// `limit_min`, `limit_max` and `hold_time`.
    ///
    /// With both bounds at [`MAX_LIMIT`] the queue is never stopped; with both at the same value it is stopped there, and
    /// nothing is learnt.
    ///
    /// # Errors
    ///
    /// Unless `min` ≤ `max` ≤ [`MAX_LIMIT`].
    pub fn new(min: u32, max: u32, hold: Duration) -> Result<Self, LimitsError> {
        if max > MAX_LIMIT {
            return Err(LimitsError::TooHigh { max });
        }
        if min > max {
            return Err(LimitsError::Crossed { min, max });
        }
        Ok(Self { min, max, hold })
    }

    /// The lower bound, in bytes.
    pub fn min(&self) -> u32 {
        self.min
    }

    /// The upper bound, in bytes.
    pub fn max(&self) -> u32 {
        self.max
    }

    /// How long the limit is held before it sinks.
    pub fn hold(&self) -> Duration {
        self.hold
    }
}

impl Default for Limits {
    /// Those of Linux: anything up to [`MAX_LIMIT`], and one second.
    fn default() -> Self {
        Self { min: 0, max: MAX_LIMIT, hold: Duration::from_secs(1) }
    }
}
