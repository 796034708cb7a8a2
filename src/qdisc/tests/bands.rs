//! The band of each code point.

use crate::qdisc::{Band, BandMap};

/// Of a DSCP with Not-ECT, ECT(1), ECT(0) and CE, in the order of the ECN field, by the lower three bits of the DSCP.
const BY_LOW_BITS: [[u8; 4]; 8] =
    [[1, 1, 2, 2], [1, 1, 1, 1], [2, 2, 2, 2], [2, 2, 2, 2], [0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]];

/// Named code points (RFC 2474, 2597, 3246, 5865, 8622), and their bands with Not-ECT and with ECT(0).
const NAMED: [(&str, u8, u8, u8); 23] = [
    ("CS0", 0, 1, 2),
    ("LE", 1, 1, 1),
    ("CS1", 8, 1, 2),
    ("AF11", 10, 2, 2),
    ("AF12", 12, 0, 0),
    ("AF13", 14, 1, 1),
    ("CS2", 16, 1, 2),
    ("AF21", 18, 2, 2),
    ("AF22", 20, 0, 0),
    ("AF23", 22, 1, 1),
    ("CS3", 24, 1, 2),
    ("AF31", 26, 2, 2),
    ("AF32", 28, 0, 0),
    ("AF33", 30, 1, 1),
    ("CS4", 32, 1, 2),
    ("AF41", 34, 2, 2),
    ("AF42", 36, 0, 0),
    ("AF43", 38, 1, 1),
    ("CS5", 40, 1, 2),
    ("VOICE-ADMIT", 44, 0, 0),
    ("EF", 46, 1, 1),
    ("CS6", 48, 1, 2),
    ("CS7", 56, 1, 2),
];

fn check(dscp: u8) {
    let map = BandMap::default();
    for ecn in 0..4 {
        let band = map.band(dscp << 2 | ecn) as u8;
        assert_eq!(band, BY_LOW_BITS[usize::from(dscp & 7)][usize::from(ecn)], "DSCP {dscp}, ECN {ecn}");
    }
    for (name, _, not_ect, ect0) in NAMED.iter().filter(|named| named.1 == dscp) {
        assert_eq!(map.band(dscp << 2) as u8, *not_ect, "{name}, Not-ECT");
        assert_eq!(map.band(dscp << 2 | 2) as u8, *ect0, "{name}, ECT(0)");
        assert_eq!(map.band(dscp << 2 | 3) as u8, *ect0, "{name}, CE");
    }
}

macro_rules! code_points {
    ($($test:ident $dscp:literal)+) => {
        $(#[test] fn $test() { check($dscp); })+

        #[test]
        fn every_code_point_has_a_test() {
            assert!([$($dscp),+].into_iter().eq(0..64));
        }
    };
}

code_points! {
    dscp_00 0
    dscp_01 1
    dscp_02 2
    dscp_03 3
    dscp_04 4
    dscp_05 5
    dscp_06 6
    dscp_07 7
    dscp_08 8
    dscp_09 9
    dscp_10 10
    dscp_11 11
    dscp_12 12
    dscp_13 13
    dscp_14 14
    dscp_15 15
    dscp_16 16
    dscp_17 17
    dscp_18 18
    dscp_19 19
    dscp_20 20
    dscp_21 21
    dscp_22 22
    dscp_23 23
    dscp_24 24
    dscp_25 25
    dscp_26 26
    dscp_27 27
    dscp_28 28
    dscp_29 29
    dscp_30 30
    dscp_31 31
    dscp_32 32
    dscp_33 33
    dscp_34 34
    dscp_35 35
    dscp_36 36
    dscp_37 37
    dscp_38 38
    dscp_39 39
    dscp_40 40
    dscp_41 41
    dscp_42 42
    dscp_43 43
    dscp_44 44
    dscp_45 45
    dscp_46 46
    dscp_47 47
    dscp_48 48
    dscp_49 49
    dscp_50 50
    dscp_51 51
    dscp_52 52
    dscp_53 53
    dscp_54 54
    dscp_55 55
    dscp_56 56
    dscp_57 57
    dscp_58 58
    dscp_59 59
    dscp_60 60
    dscp_61 61
    dscp_62 62
    dscp_63 63
}

#[test]
fn a_priomap_decides_by_priority() {
    let map = BandMap::from_priomap(std::array::from_fn(|priority| if priority == 6 { Band::Two } else { Band::Zero }));
    // Interactive traffic: minimal delay (RFC 1349) is bit 4 of the byte.
    assert_eq!(map.band(0x10), Band::Two);
    assert_eq!(map.band(0x00), Band::Zero);
    assert_eq!(map.band(0x18), Band::Zero, "delay and throughput: priority 4");
}
