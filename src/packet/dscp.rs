//! The differentiated services code point, written (RFC 2474).

use super::{ethernet, ethernet::ethertype};

const IP: usize = ethernet::HEADER_LEN;
const CHECKSUM: usize = IP + 10;

/// Gives a packet that has been found good another code point, 0 to 63; ECN stays as it is. The checksum of an IPv4 header is
/// brought up to date.
pub fn remark(frame: &mut [u8], dscp: u8) {
    let dscp = dscp & 0x3f;
    match frame.get(IP - 2..IP).map(|kind| u16::from_be_bytes([kind[0], kind[1]])) {
        Some(ethertype::IPV4) => {
            let Some(header) = frame.first_chunk_mut::<{ CHECKSUM + 2 }>() else { return };
            let old = u16::from_be_bytes([header[IP], header[IP + 1]]);
            header[IP + 1] = dscp << 2 | header[IP + 1] & 3;
            let new = u16::from_be_bytes([header[IP], header[IP + 1]]);
            // RFC 1624 3, equation 3. The version keeps both words from being 0 and 0xffff, so that the sum is not 0 and
            // the checksum never the other zero; as long as nothing changes, it stays what it is, be it either.
            if old != new {
                let checksum = u16::from_be_bytes([header[CHECKSUM], header[CHECKSUM + 1]]);
                let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
                let sum = (sum & 0xffff) + (sum >> 16);
                let sum = (sum & 0xffff) + (sum >> 16);
                header[CHECKSUM..].copy_from_slice(&(!(sum as u16)).to_be_bytes());
            }
        }
        Some(ethertype::IPV6) => {
            if let Some([first, second]) = frame.get_mut(IP..IP + 2) {
                *first = *first & 0xf0 | dscp >> 2;
                *second = *second & 0x3f | dscp << 6;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Flow;
    use crate::packet::checksum::Sum;
    use proptest::prelude::*;

    fn header() -> impl Strategy<Value = [u8; 54]> {
        (any::<[u8; 32]>(), any::<[u8; 22]>()).prop_map(|(start, end)| {
            let mut frame = [0; 54];
            frame[..32].copy_from_slice(&start);
            frame[32..].copy_from_slice(&end);
            frame
        })
    }

    proptest! {
        #[test]
        fn ipv4_is_as_if_made_so(mut frame in header(), dscp in 0..64u8) {
            (frame[12], frame[13], frame[14]) = (8, 0, 0x45);
            let with_checksum = |mut frame: [u8; 54]| {
                frame[24..26].fill(0);
                let checksum = Sum::of(&frame[14..34]).checksum();
                frame[24..26].copy_from_slice(&checksum.to_bytes());
                frame
            };
            let mut remarked = with_checksum(frame);
            remark(&mut remarked, dscp);
            frame[15] = dscp << 2 | frame[15] & 3;
            prop_assert_eq!(remarked, with_checksum(frame));
        }

        #[test]
        fn ipv6_keeps_all_else(mut frame in header(), dscp in 0..64u8) {
            (frame[12], frame[13], frame[14]) = (0x86, 0xdd, 0x60 | frame[14] & 0xf);
            let mut remarked = frame;
            remark(&mut remarked, dscp);
            prop_assert_eq!(Flow::of(&remarked).unwrap().dscp, dscp);
            (remarked[14], remarked[15]) = (frame[14], remarked[15] & 0x3f | frame[15] & 0xc0);
            prop_assert_eq!(remarked, frame);
        }

        #[test]
        fn no_bytes_are_a_panic(mut frame in proptest::collection::vec(any::<u8>(), 0..40), kind in 0..3u8) {
            if frame.len() >= 14 && kind < 2 {
                (frame[12], frame[13]) = if kind == 0 { (8, 0) } else { (0x86, 0xdd) };
            }
            remark(&mut frame, 63);
        }
    }
}
