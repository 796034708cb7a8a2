//! Bands, and which of them a packet goes to.

/// One of the three queues of pfifo_fast. A lower one is emptied before a higher one is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Band {
    /// First: interactive traffic.
    Zero,
    /// Best effort.
    One,
    /// Last: bulk.
    Two,
}

impl Band {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// All, in the order in which they are emptied.
    pub const ALL: [Self; 3] = [Self::Zero, Self::One, Self::Two];
}

/// The band of each priority (Linux, `TC_PRIO_*`): 0 best effort, 1 filler, 2 bulk, 4 interactive bulk, 6 interactive,
/// 7 control. Forwarding gives packets none but these.
pub type Priomap = [Band; 16];

/// The priority that forwarding gives to a packet by its IPv4 TOS byte or IPv6 traffic class: bits 1 to 4 of the byte, which are
/// the lower three bits of the DSCP and the higher of ECN. From Linux, `ip_tos2prio`, after RFC 1349; see
/// `ip_forward_update_priority` in its ip-sysctl documentation.
const TOS_TO_PRIORITY: [u8; 16] = [0, 1, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4];

/// Which band a packet goes to, by its IPv4 TOS byte or IPv6 traffic class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BandMap([Band; 256]);

impl BandMap {
    /// Pfifo_fast's. From Linux, `sch_generic.c`; also the default `priomap` of `tc-prio(8)`.
    pub const PFIFO_FAST: Priomap = {
        use Band::{One, Two, Zero};
        [One, Two, Two, Two, One, Two, Zero, Zero, One, One, One, One, One, One, One, One]
    };

    /// From the band of each priority.
    pub fn from_priomap(priomap: Priomap) -> Self {
        let band = |class: usize| priomap[usize::from(TOS_TO_PRIORITY[(class & 0x1e) >> 1])];
        Self(std::array::from_fn(band))
    }

    /// The band for a TOS byte or traffic class.
    #[inline(always)]
    pub fn band(&self, traffic_class: u8) -> Band {
        self.0[usize::from(traffic_class)]
    }
}

impl Default for BandMap {
    /// As pfifo_fast does it. Of the code points only the lower three bits decide, and one bit of ECN with them: what is not
    /// ECN-capable and of a class selector (CS0 to CS7) goes to band 1, and to band 2 when marked ECT(0) or CE.
    fn default() -> Self {
        Self::from_priomap(Self::PFIFO_FAST)
    }
}
