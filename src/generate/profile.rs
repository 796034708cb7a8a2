//! A mix of frames drawn at random: flows to a set of destinations, both IP versions, some of them bad.

use super::random::Random;
use super::{FrameSpec, Network, Transport, bad};
use crate::drop_reason::DropReason;
use crate::units::MacAddr;
use std::net::{Ipv4Addr, Ipv6Addr};

/// What the frames are like. The same profile always gives the same frames.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Where the random numbers start.
    pub seed: u64,
    /// The station that all frames are for: the port that receives them.
    pub destination_mac: MacAddr,
    /// The station that all frames are from.
    pub source_mac: MacAddr,
    /// IPv4 destinations, each as likely as another.
    pub destinations_v4: Vec<Ipv4Addr>,
    /// IPv6 destinations, each as likely as another.
    pub destinations_v6: Vec<Ipv6Addr>,
    /// So many frames in a hundred are IPv6. Counts only if there are destinations of both versions.
    pub ipv6_percent: u8,
    /// So many frames in a hundred are bad.
    pub bad_percent: u8,
    /// What bad frames are dropped for, each reason as likely as another. A reason that [`bad()`] knows no
    /// frame for, or none of the IP version drawn, leaves the frame good.
    pub bad_reasons: Vec<DropReason>,
    /// Length of the frames, in bytes without the frame check sequence. Frames are at least as long as
    /// their headers: 42 bytes (IPv4) or 62 (IPv6).
    pub frame_len: usize,
}

/// A frame and what is to become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedFrame {
    /// The frame, from the Ethernet header on.
    pub bytes: Vec<u8>,
    /// Why it must be dropped; `None` if it is good.
    pub reason: Option<DropReason>,
}

impl Profile {
    /// The frames, without end. None if there is no destination.
    pub fn frames(&self) -> impl Iterator<Item = GeneratedFrame> {
        let mut random = Random::new(self.seed);
        std::iter::from_fn(move || self.draw(&mut random))
    }

    fn draw(&self, random: &mut Random) -> Option<GeneratedFrame> {
        let is_v6 = match (self.destinations_v4.is_empty(), self.destinations_v6.is_empty()) {
            (false, false) => random.percent(self.ipv6_percent),
            (is_v6, _) => is_v6,
        };
        let host = random.bits();
        let network = if is_v6 {
            let source = SOURCES_V6 | u128::from(host);
            Network::v6(Ipv6Addr::from(source), *random.pick(&self.destinations_v6)?)
        } else {
            let source = SOURCES_V4 | (host as u32 & SOURCES_V4_HOSTS);
            Network::v4(Ipv4Addr::from(source), *random.pick(&self.destinations_v4)?)
        };
        let ports = random.bits();
        let transport =
            Transport::Udp { source: ports as u16 | FIRST_PORT, destination: (ports >> 16) as u16 | FIRST_PORT };
        let spec = FrameSpec::new(self.destination_mac, self.source_mac, network);
        let spec = FrameSpec { transport, min_frame_len: 0, ..spec }.with_frame_len(self.frame_len);
        let spoiled = match random.percent(self.bad_percent) {
            true => random.pick(&self.bad_reasons).and_then(|reason| Some((*reason, bad(*reason, &spec)?))),
            false => None,
        };
        Some(match spoiled {
            Some((reason, bytes)) => GeneratedFrame { bytes, reason: Some(reason) },
            None => GeneratedFrame { bytes: spec.build(), reason: None },
        })
    }
}

/// Sources are of the networks for benchmarks: 198.18.0.0/15 (RFC 2544 C.2.2) and 2001:2::/48 (RFC 5180 8).
const SOURCES_V4: u32 = 0xc612_0000;
const SOURCES_V4_HOSTS: u32 = 0x0001_ffff;
const SOURCES_V6: u128 = 0x2001_0002 << 96;

/// The first of the dynamic ports (RFC 6335 6).
const FIRST_PORT: u16 = 0xc000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{ChecksumStatus, Examined, Frame, examine};
    use std::collections::HashSet;

    const BAD: [DropReason; 5] = [
        DropReason::NotOurMac,
        DropReason::BadVersion,
        DropReason::Truncated,
        DropReason::BadChecksum,
        DropReason::MartianSource,
    ];

    fn profile() -> Profile {
        Profile {
            seed: 1,
            destination_mac: MacAddr([2, 0, 0, 0, 0, 1]),
            source_mac: MacAddr([2, 0, 0, 0, 0, 2]),
            destinations_v4: vec![Ipv4Addr::new(198, 51, 100, 1), Ipv4Addr::new(198, 51, 100, 2)],
            destinations_v6: vec!["2001:db8::1".parse().unwrap()],
            ipv6_percent: 30,
            bad_percent: 20,
            bad_reasons: BAD.to_vec(),
            frame_len: 100,
        }
    }

    fn examined(profile: &Profile, frame: &GeneratedFrame) -> Result<Examined, DropReason> {
        let (first_segment, frame_len) = (frame.bytes.as_slice(), frame.bytes.len() as u32);
        examine(Frame { first_segment, frame_len, checksum: ChecksumStatus::Unknown }, profile.destination_mac)
    }

    #[test]
    fn frames_are_good_or_bad_as_they_say() {
        let profile = profile();
        let frames: Vec<_> = profile.frames().take(5000).collect();
        let mut destinations = HashSet::new();
        let mut ipv6 = 0;
        for frame in &frames {
            assert_eq!(frame.bytes.len(), 100);
            let examined = examined(&profile, frame);
            assert_eq!(examined.err(), frame.reason);
            match examined {
                Ok(Examined::V4 { destination, .. }) => _ = destinations.insert(Ipv4Addr::from(destination)),
                Ok(Examined::V6 { .. }) => ipv6 += 1,
                Err(_) => {}
            }
        }
        assert_eq!(destinations, profile.destinations_v4.iter().copied().collect());
        let reasons: HashSet<_> = frames.iter().filter_map(|frame| frame.reason).collect();
        assert_eq!(reasons, BAD.into_iter().collect());
        let bad = frames.iter().filter(|frame| frame.reason.is_some()).count();
        // One reason in five is none of IPv6.
        assert!((850..1050).contains(&bad), "{bad}");
        assert!((1100..1300).contains(&ipv6), "{ipv6}");
    }

    #[test]
    fn the_seed_decides() {
        let frames = |seed| Profile { seed, ..profile() }.frames().take(100).collect::<Vec<_>>();
        assert_eq!(frames(1), frames(1));
        assert_ne!(frames(1), frames(2));
    }

    #[test]
    fn one_version_suffices() {
        let none = Profile { destinations_v4: vec![], destinations_v6: vec![], ..profile() };
        assert_eq!(none.frames().next(), None);
        let kinds = |profile: Profile| {
            let frames: Vec<_> = profile.frames().take(100).collect();
            assert_eq!(frames.len(), 100);
            frames.iter().map(|it| (it.bytes.len(), it.bytes[12], it.reason)).collect::<HashSet<_>>()
        };
        let short = Profile { frame_len: 60, bad_percent: 0, ..profile() };
        let v4 = Profile { destinations_v6: vec![], ..short.clone() };
        assert_eq!(kinds(v4), HashSet::from([(60, 0x08, None)]));
        let v6 = Profile { destinations_v4: vec![], ..short };
        assert_eq!(kinds(v6), HashSet::from([(62, 0x86, None)]));
    }
}
