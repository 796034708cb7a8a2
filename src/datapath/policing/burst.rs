//! A burst on its way through policers.

use super::{MAX_POLICERS, Stage};
use crate::datapath::buffer::{BURST, PacketBuf};
use crate::packet::{Flow, dscp};
use crate::police::{Action, Packet, Policer};
use crate::qdisc::Band;

/// A worker's room to police in. It keeps nothing from one stage to the next.
pub(in crate::datapath) struct Scratch {
    /// By policer, which packets meet it.
    met: Box<[u64; MAX_POLICERS]>,
    /// Which of these are not 0, a bit each.
    touched: [u64; MAX_POLICERS / 64],
    /// What policers see of the packets.
    packets: [Packet; BURST],
}

impl Scratch {
    pub fn new() -> Box<Self> {
        let packets = [Packet { bytes: 0, segments: 0, largest: 0 }; BURST];
        Box::new(Self { met: Box::new([0; MAX_POLICERS]), touched: [0; MAX_POLICERS / 64], packets })
    }

    fn meet(&mut self, policer: u16, packets: u64) {
        let policer = usize::from(policer) % MAX_POLICERS;
        self.met[policer] |= packets;
        self.touched[policer / 64] |= 1 << (policer % 64);
    }

    /// The first policer that is met, and by which packets; it is not met any more.
    fn next(&mut self) -> Option<(usize, u64)> {
        let word = self.touched.iter().position(|word| *word != 0)?;
        let policer = 64 * word + self.touched[word].trailing_zeros() as usize;
        self.touched[word] &= self.touched[word] - 1;
        Some((policer, std::mem::take(&mut self.met[policer])))
    }
}

/// A burst, and what policers have made of it. Bit i of a word stands for packet i.
pub(in crate::datapath) struct Burst<'a, B> {
    /// The packets.
    packets: &'a mut [B],
    /// Length of each in a frame, without padding.
    lengths: &'a [u32],
    /// Some lead others.
    merged: bool,
    scratch: &'a mut Scratch,
    worker: usize,
    now: u64,
    /// Those that have been dropped.
    pub dropped: u64,
    /// Those whose band has been chosen.
    pub banded: u64,
    /// Which it is.
    pub bands: [Band; BURST],
}

impl<'a, B: PacketBuf> Burst<'a, B> {
    /// Nothing has become of it yet.
    #[inline(always)]
    pub fn new(
        (packets, lengths): (&'a mut [B], &'a [u32]),
        merged: bool,
        scratch: &'a mut Scratch,
        worker: usize,
        now: u64,
    ) -> Self {
        let bands = [Band::One; BURST];
        Self { packets, lengths, merged, scratch, worker, now, dropped: 0, banded: 0, bands }
    }

    /// Has those in `mask` meet the policers of a place, in order.
    #[inline(always)]
    pub fn meet(&mut self, stage: &Stage<'_>, mask: u64) {
        if stage.stages.some {
            self.meet_chosen(stage, mask);
        } else {
            for &policer in &stage.stages.every {
                self.police(&stage.policers[usize::from(policer)], mask & !self.dropped);
            }
        }
    }

    /// The same where not every policer is met by every packet.
    #[inline(never)]
    fn meet_chosen(&mut self, stage: &Stage<'_>, mask: u64) {
        let mask = mask & !self.dropped;
        for &policer in &stage.stages.every {
            self.scratch.meet(policer, mask);
        }
        for (i, packet) in self.packets.iter().enumerate().filter(|(i, _)| mask >> i & 1 != 0) {
            let Some(flow) = Flow::of(packet.segment()) else { continue };
            stage.side.classifier.matching(stage.port, &flow, |rule| {
                self.scratch.meet(stage.side.owners[rule], 1 << i);
            });
        }
        while let Some((policer, mask)) = self.scratch.next() {
            self.police(&stage.policers[policer], mask & !self.dropped);
        }
    }

    /// Asks one policer about the packets in `mask`, and does what it says.
    #[inline(always)]
    fn police(&mut self, policer: &Policer, mask: u64) {
        if mask == 0 {
            return;
        }
        let count = self.lengths.len().min(BURST);
        let all = u64::MAX >> (BURST - count.max(1));
        if mask == all && !self.merged {
            for (packet, &bytes) in self.scratch.packets.iter_mut().zip(self.lengths) {
                *packet = Packet { bytes, segments: 1, largest: bytes };
            }
            let conforming = policer.police(self.worker, self.now, &self.scratch.packets[..count]) & all;
            self.act(policer, all, conforming);
        } else {
            self.police_some(policer, mask);
        }
    }

    #[inline(never)]
    fn police_some(&mut self, policer: &Policer, mask: u64) {
        let asked = mask.count_ones() as usize;
        let packets = &mut self.scratch.packets[..asked];
        for (packet, i) in packets.iter_mut().zip(bits(mask)) {
            // The first of a list is its longest.
            let (largest, of) = (self.lengths[i], &self.packets[i]);
            let (bytes, segments) = if self.merged { (of.wire_bytes(), of.wire_packets()) } else { (largest, 1) };
            *packet = if segments == 1 {
                Packet { bytes: largest, segments, largest }
            } else {
                Packet { bytes, segments, largest }
            };
        }
        let answers = policer.police(self.worker, self.now, packets);
        let fits = bits(mask).enumerate().filter(|(answer, _)| answers >> answer & 1 != 0);
        let conforming = fits.fold(0, |conforming, (_, i)| conforming | 1 << i);
        self.act(policer, mask, conforming);
    }

    #[inline(always)]
    fn act(&mut self, policer: &Policer, mask: u64, conforming: u64) {
        let (exceed, conform) = policer.actions();
        if conforming != mask && exceed != Action::Pass {
            self.apply(exceed, mask & !conforming);
        }
        if conform != Action::Pass {
            self.apply(conform, conforming);
        }
    }

    #[inline(never)]
    fn apply(&mut self, action: Action, mask: u64) {
        match action {
            Action::Pass => {}
            Action::Drop => self.dropped |= mask,
            // Those behind the first of a list are given its code point when they are taken apart.
            Action::Dscp(value) => bits(mask).for_each(|i| dscp::remark(self.packets[i].segment_mut(), value)),
            Action::Band(band) => {
                let band = Band::ALL[usize::from(band).min(Band::COUNT - 1)];
                self.banded |= mask;
                bits(mask).for_each(|i| self.bands[i] = band);
            }
        }
    }
}

/// The positions of the bits that are set, in ascending order.
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        next
    })
}
