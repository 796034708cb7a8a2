//! The way of a burst where there are policers: the same, with stops.

use super::{Group, Path, Pipeline};
use crate::datapath::batch::{self, Batch, Passed};
use crate::datapath::buffer::{BURST, PacketBuf, TxBurst};
use crate::datapath::policing::{self, Policing};
use crate::datapath::snapshot::Family;
use crate::drop_reason::DropReason;
use crate::qdisc::{Band, Total};
use crate::units::PortId;
use arrayvec::ArrayVec;

impl<B: PacketBuf> Pipeline<B> {
    /// Has the packets of one family, which have been passed over, meet the policers on their way, and deals with what is out of
    /// the ordinary as [`Pipeline::attend`] does. Those whose band has been chosen are sent. `as_received` says whether
    /// there is nothing out of the ordinary, and it is returned whether it still is so.
    #[inline(never)]
    pub(super) fn police<T: TxBurst<Buf = B>>(
        &mut self,
        family: Family,
        passed: &mut Passed,
        as_received: bool,
        policing: &Policing,
        path: &mut Path<'_, T>,
    ) -> bool {
        let dropped = if as_received { 0 } else { self.examine(family, passed, path) };
        let Self { ipv4, ipv6, scratch, .. } = self;
        let batch = match family {
            Family::Ipv4 => ipv4,
            Family::Ipv6 => ipv6,
        };
        let count = batch.len();
        if count == 0 {
            return as_received;
        }
        let good = u64::MAX >> (BURST - count) & !dropped;
        let leaving = ports(batch, passed, good & !passed.special, path);
        let on_way_in = policing.ingress(path.ingress.port);
        if on_way_in.is_none() && leaving.iter().all(|(port, _)| policing.egress(*port).is_none()) {
            if !as_received {
                self.refuse(family, passed.special, path);
                self.dismiss(family, dropped | passed.special);
            }
            return as_received;
        }
        let worker = path.outputs.worker();
        let mut burst = policing::Burst::new(batch.packets_and_lengths(), path.merged, scratch, worker, policing.now());
        if let Some(stage) = on_way_in {
            burst.meet(&stage, good);
        }
        let refused = passed.special & !burst.dropped;
        for (port, mask) in leaving {
            if let Some(stage) = policing.egress(port) {
                burst.meet(&stage, mask & !burst.dropped);
            }
        }
        let (policed, banded, bands) = (burst.dropped, burst.banded, burst.bands);
        if as_received && policed | banded == 0 {
            return true;
        }
        let packets = batch::bits(policed).map(|i| batch.wire_packets(i)).sum();
        path.counters.drops(DropReason::Policed).add(packets);
        self.refuse(family, refused, path);
        let gone = dropped | passed.special | policed;
        self.dismiss(family, gone);
        if banded & !gone != 0 {
            let kept = batch::bits(good & !gone);
            let bands = kept.map(|i| (banded >> i & 1 != 0).then(|| bands[i])).collect();
            let Self { ipv4, ipv6, groups, .. } = self;
            let batch = match family {
                Family::Ipv4 => ipv4,
                Family::Ipv6 => ipv6,
            };
            send_by_band(batch, bands, groups, path);
        }
        if self.batch(family).len() == 0 {
            passed.ports = 0;
        }
        false
    }
}

/// Which of the packets in `mask` leave by which port.
#[inline(always)]
fn ports<B: PacketBuf, T: TxBurst<Buf = B>>(
    batch: &Batch<B>,
    passed: &Passed,
    mask: u64,
    path: &Path<'_, T>,
) -> ArrayVec<(PortId, u64), BURST> {
    let mut ports = ArrayVec::new();
    if passed.ports.is_power_of_two() {
        ports.push((PortId(passed.ports.trailing_zeros() as u16), mask));
        return ports;
    }
    for i in batch::bits(mask) {
        let port = batch.next_hop(i, &path.tables.next_hops).0.port();
        match ports.iter_mut().find(|(known, _)| *known == port) {
            Some((_, mask)) => *mask |= 1 << i,
            None => ports.push((port, 1 << i)),
        }
    }
    ports
}

/// Sends all packets, grouped by port and by the band that has been chosen for them; where there are no bands, in order.
fn send_by_band<T: TxBurst>(
    batch: &mut Batch<T::Buf>,
    bands: ArrayVec<Option<Band>, BURST>,
    groups: &mut [Group<T::Buf>],
    path: &mut Path<'_, T>,
) {
    let mut packets = ArrayVec::<_, BURST>::new();
    let mut bands = bands.into_iter();
    batch.scatter(&path.tables.next_hops, |port, packet, _| {
        let band = bands.next().flatten().filter(|_| path.outputs.has_bands(port));
        packets.push((band, Some((port, packet))));
    });
    for choice in [Some(Band::Zero), None, Some(Band::One), Some(Band::Two)] {
        let mut used = 0u64;
        let chosen = packets.iter_mut().filter(|(band, _)| *band == choice);
        for (port, packet) in chosen.filter_map(|(_, packet)| packet.take()) {
            let group = &mut groups[port.index()];
            let (packets, bytes) = (packet.wire_packets().into(), packet.wire_bytes().into());
            group.total.add(Total { packets, bytes });
            group.packets.push(packet);
            used |= 1 << port.index();
        }
        for port in batch::bits(used) {
            let group = &mut groups[port];
            let (port, total) = (PortId(port as u16), std::mem::take(&mut group.total));
            match choice {
                Some(band) => path.outputs.send_to(band, port, &mut group.packets, total, path.counters),
                None => path.send(port, &mut group.packets, total),
            }
        }
    }
}
