//! How the limit follows what the device does: the arithmetic, without threads.
//!
//! Positions are numbers of bytes since the beginning. Differences between them are taken modulo 2^64, so that it does not
//! matter where they begin.

/// Bounds that hold for one completion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) min: u64,
    pub(super) max: u64,
    /// In nanoseconds.
    pub(super) hold: u64,
}

/// What the sender has done so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    /// Everything before it has been sent.
    pub(super) position: u64,
    /// Bytes that were last sent in one piece.
    pub(super) last_object: u64,
}

/// The limit, and what it is judged by. In brackets: the name in Linux.
#[derive(Clone, Debug)]
pub(super) struct Dynamics {
    /// Bytes that may be in flight.
    pub(super) limit: u64,
    /// Everything before it is completed (`num_completed`).
    pub(super) completed: u64,
    /// Bytes in flight beyond the limit before the last completion (`prev_ovlimit`).
    pub(super) previous_excess: u64,
    /// How far the sender was at the last completion (`prev_num_queued`, `prev_last_obj_cnt`).
    pub(super) previous: Queued,
    /// Least bytes that could have been missing without harm, since `slack_start`.
    pub(super) lowest_slack: Option<u64>,
    /// When the limit last changed or could have sunk, in nanoseconds.
    pub(super) slack_start: u64,
}

/// How far `to` is ahead of `from`; 0 if it is behind.
pub(super) fn ahead(to: u64, from: u64) -> u64 {
    to.wrapping_sub(from).cast_signed().max(0).cast_unsigned()
}

impl Dynamics {
    /// With a limit of 0 and nothing in flight.
    pub(super) fn new(position: u64, now: u64) -> Self {
        Self {
            limit: 0,
            completed: position,
            previous_excess: 0,
            previous: Queued { position, last_object: 0 },
            lowest_slack: None,
            slack_start: now,
        }
    }

    /// Learns from the completion of `bytes`, which is not 0 and no more than is in flight.
    pub(super) fn complete(&mut self, bytes: u64, queued: Queued, bounds: Bounds, now: u64) {
        let completed = self.completed.wrapping_add(bytes);
        let mut excess = ahead(queued.position.wrapping_sub(self.completed), self.limit);
        // Of all that was sent, and of what had been sent by the last completion.
        let ran_dry = queued.position == completed;
        let all_done = completed.wrapping_sub(self.previous.position).cast_signed() >= 0;

        let mut limit = self.limit;
        if (excess > 0 && ran_dry) || (self.previous_excess > 0 && all_done) {
            // Starved: the limit kept packets back, and the device has, or may have, run out of them. Had the limit been
            // higher by this, it would not have.
            limit += ahead(completed, self.previous.position) + self.previous_excess;
            self.begin_interval(now);
        } else if !all_done {
            // Busy since the last completion, and still so: so much less would have done as well.
            let surplus = ahead(limit + self.previous_excess, 2 * bytes);
            // What went over the limit did so in whole pieces.
            let piece = match self.previous_excess {
                0 => 0,
                excess => ahead(self.previous.last_object, excess),
            };
            let slack = surplus.max(piece);
            let lowest = self.lowest_slack.map_or(slack, |lowest| lowest.min(slack));
            self.lowest_slack = Some(lowest);
            if now > self.slack_start.saturating_add(bounds.hold) {
                limit = limit.saturating_sub(lowest);
                self.begin_interval(now);
            }
        }

        // In this order there is a result even while a new pair of bounds is only half in place.
        limit = limit.max(bounds.min).min(bounds.max);
        if limit != self.limit {
            self.limit = limit;
            // Has been answered, and is not to be answered twice.
            excess = 0;
        }
        self.completed = completed;
        self.previous_excess = excess;
        self.previous = queued;
    }

    fn begin_interval(&mut self, now: u64) {
        self.slack_start = now;
        self.lowest_slack = None;
    }
}
