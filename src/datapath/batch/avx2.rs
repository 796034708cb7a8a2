//! Validation of eight headers at once (AVX2).
//!
//! What is checked is what `packet::examine` checks, cut to the common case: one segment, no IPv4
//! options, a TTL that survives. A group of eight with anything else in it is reported as a whole and
//! examined packet by packet, so these passes may be coarse in one direction: they may call a good
//! packet odd, never an odd one good. The tests hold them to that against the scalar way.

use super::{LANES, Verdict, Work};
use crate::datapath::buffer::Lengths;
use crate::fib::Ipv6Key;
use crate::units::MacAddr;
use std::arch::x86_64::*;

/// Headers in one group.
pub(super) const GROUP: usize = 8;

/// What the IPv4 pass reads and writes: one entry per packet.
pub(super) struct Ipv4Lanes<'a> {
    pub heads: &'a [*mut u8; LANES],
    pub lengths: &'a [Lengths; LANES],
    pub wire: &'a mut [u32; LANES],
    pub words: &'a mut [u32; LANES],
    pub keys: &'a mut [u32; LANES],
}

/// What the IPv6 pass reads and writes.
pub(super) struct Ipv6Lanes<'a> {
    pub heads: &'a [*mut u8; LANES],
    pub lengths: &'a [Lengths; LANES],
    pub wire: &'a mut [u32; LANES],
    pub keys: &'a mut [Ipv6Key; LANES],
}

/// Validates the first `groups` groups of eight.
///
/// # Safety
///
/// `groups` is at most 8, and 64 bytes are readable behind each of the first `groups * 8` heads.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn validate_ipv4(lanes: Ipv4Lanes<'_>, groups: usize, mac: MacAddr) -> Verdict {
    let expected = expected_start(mac, [0x08, 0x00, 0x45]);
    let compared = compared_start(0xff);
    let low_half = _mm256_set1_epi32(0xffff);
    let low_byte = _mm256_set1_epi32(0xff);
    let header = _mm256_set1_epi32(14);
    let total_length_bytes = per_dword([3, 2, -1, -1]);
    let swapped_bytes = per_dword([3, 2, 1, 0]);
    let mut verdict = Verdict { odd_groups: 0, padded: false, bytes: 0 };
    let (mut padding, mut bytes) = (_mm256_setzero_si256(), _mm256_setzero_si256());

    for group in 0..groups {
        let at = group * GROUP;
        // SAFETY: the caller vouches for the heads; 34 bytes of each are read.
        let (start, rows, w4) = unsafe { load_ipv4(lanes.heads.as_ptr().add(at), expected) };
        let [w0, w1, w2, w3] = transpose(rows);
        // SAFETY: `at + 8 <= LANES`, the length of the array.
        let (frame, segment) = unsafe { load_lengths(lanes.lengths.as_ptr().add(at)) };

        let mut sum = _mm256_setzero_si256();
        for word in [w0, w1, w2, w3, w4] {
            sum = _mm256_add_epi32(sum, _mm256_and_si256(word, low_half));
            sum = _mm256_add_epi32(sum, _mm256_srli_epi32(word, 16));
        }
        let folded = _mm256_add_epi32(_mm256_and_si256(sum, low_half), _mm256_srli_epi32(sum, 16));
        let mut odd = _mm256_xor_si256(folded, low_half);

        let total_length = _mm256_shuffle_epi8(w0, total_length_bytes);
        let wire = _mm256_add_epi32(total_length, header);
        let extra = _mm256_sub_epi32(frame, wire);
        let first_byte = _mm256_and_si256(w3, low_byte);
        for flag in [
            _mm256_xor_si256(frame, segment),
            _mm256_srai_epi32(extra, 31),
            _mm256_cmpgt_epi32(_mm256_set1_epi32(20), total_length),
            _mm256_cmpgt_epi32(_mm256_set1_epi32(2), _mm256_and_si256(w2, low_byte)),
            _mm256_cmpeq_epi32(first_byte, _mm256_setzero_si256()),
            _mm256_cmpeq_epi32(first_byte, _mm256_set1_epi32(127)),
            _mm256_cmpgt_epi32(first_byte, _mm256_set1_epi32(223)),
            _mm256_cmpeq_epi32(_mm256_and_si256(w3, low_half), _mm256_set1_epi32(0xfea9)),
            _mm256_castsi128_si256(_mm_and_si128(start, compared)),
        ] {
            odd = _mm256_or_si256(odd, flag);
        }
        padding = _mm256_or_si256(padding, extra);
        bytes = _mm256_add_epi32(bytes, frame);
        verdict.odd_groups |= u8::from(_mm256_testz_si256(odd, odd) == 0) << group;

        // One less TTL and the checksum that follows from it: see `packet::checksum`.
        let carry = _mm256_cmpgt_epi32(_mm256_srli_epi32(w2, 16), _mm256_set1_epi32(0xfffd));
        let word = _mm256_sub_epi32(_mm256_add_epi32(w2, low_half), _mm256_slli_epi32(carry, 16));
        // SAFETY: `at + 8 <= LANES`, the length of each array.
        unsafe {
            store(lanes.wire.as_mut_ptr().add(at), wire);
            store(lanes.words.as_mut_ptr().add(at), word);
            store(lanes.keys.as_mut_ptr().add(at), _mm256_shuffle_epi8(w4, swapped_bytes));
        }
    }
    verdict.padded = _mm256_testz_si256(padding, padding) == 0;
    verdict.bytes = sum(bytes);
    verdict
}

/// Validates the first `groups` groups of eight.
///
/// # Safety
///
/// `groups` is at most 8, and 64 bytes are readable behind each of the first `groups * 8` heads.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn validate_ipv6(lanes: Ipv6Lanes<'_>, groups: usize, mac: MacAddr) -> Verdict {
    let expected = expected_start(mac, [0x86, 0xdd, 0x60]);
    let compared = compared_start(0xf0);
    let header = _mm256_set1_epi32(54);
    let leading_half = per_dword([1, 0, -1, -1]);
    let mut verdict = Verdict { odd_groups: 0, padded: false, bytes: 0 };
    let (mut padding, mut bytes) = (_mm256_setzero_si256(), _mm256_setzero_si256());

    for group in 0..groups {
        let at = group * GROUP;
        // SAFETY: the caller vouches for the heads, of which 54 bytes are read; `at + 8 <= LANES`.
        let (start, lengths_and_limits, sources) =
            unsafe { load_ipv6(lanes.heads.as_ptr().add(at), expected, lanes.keys.as_mut_ptr().add(at)) };
        // SAFETY: `at + 8 <= LANES`, the length of the array.
        let (frame, segment) = unsafe { load_lengths(lanes.lengths.as_ptr().add(at)) };

        let payload = _mm256_shuffle_epi8(lengths_and_limits, leading_half);
        let wire = _mm256_add_epi32(payload, header);
        let extra = _mm256_sub_epi32(frame, wire);
        // The first 16 bits are enough to suspect every martian: 0 (unspecified, loopback, IPv4-mapped),
        // ff00::/8 and fe80::/10.
        let source = _mm256_shuffle_epi8(sources, leading_half);
        let mut odd = _mm256_xor_si256(frame, segment);
        for flag in [
            _mm256_srai_epi32(extra, 31),
            _mm256_cmpeq_epi32(payload, _mm256_setzero_si256()),
            _mm256_cmpgt_epi32(_mm256_set1_epi32(2), _mm256_srli_epi32(lengths_and_limits, 24)),
            _mm256_cmpeq_epi32(source, _mm256_setzero_si256()),
            _mm256_cmpgt_epi32(source, _mm256_set1_epi32(0xfeff)),
            _mm256_cmpeq_epi32(_mm256_and_si256(source, _mm256_set1_epi32(0xffc0)), _mm256_set1_epi32(0xfe80)),
            _mm256_castsi128_si256(_mm_and_si128(start, compared)),
        ] {
            odd = _mm256_or_si256(odd, flag);
        }
        padding = _mm256_or_si256(padding, extra);
        bytes = _mm256_add_epi32(bytes, frame);
        verdict.odd_groups |= u8::from(_mm256_testz_si256(odd, odd) == 0) << group;
        // SAFETY: `at + 8 <= LANES`, the length of the array.
        unsafe { store(lanes.wire.as_mut_ptr().add(at), wire) };
    }
    verdict.padded = _mm256_testz_si256(padding, padding) == 0;
    verdict.bytes = sum(bytes);
    verdict
}

/// Does something in code that may use these instructions: shifts by variable amounts and copies take
/// fewer of them.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn apply<W: Work>(work: W) -> W::Output {
    work.run()
}

/// The sum of all elements. Those of eight bursts' lengths are far from overflowing.
#[target_feature(enable = "avx2")]
fn sum(elements: __m256i) -> u64 {
    let four = _mm_add_epi32(_mm256_castsi256_si128(elements), _mm256_extracti128_si256::<1>(elements));
    let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
    let one = _mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two));
    u64::from(_mm_cvtsi128_si32(one) as u32)
}

/// The first 16 bytes a frame should have: our MAC address, any source, EtherType, version.
#[target_feature(enable = "avx2")]
fn expected_start(mac: MacAddr, [type_high, type_low, version]: [u8; 3]) -> __m128i {
    let mut start = [0u8; 16];
    start[..6].copy_from_slice(&mac.0);
    start[12..15].copy_from_slice(&[type_high, type_low, version]);
    from_bytes(start)
}

/// Which bits of them count; `version` are those of the byte behind the EtherType.
#[target_feature(enable = "avx2")]
fn compared_start(version: u8) -> __m128i {
    let mut mask = [0u8; 16];
    mask[..6].fill(0xff);
    mask[12..15].copy_from_slice(&[0xff, 0xff, version]);
    from_bytes(mask)
}

#[target_feature(enable = "avx2")]
fn from_bytes(bytes: [u8; 16]) -> __m128i {
    let value = u128::from_le_bytes(bytes);
    _mm_set_epi64x((value >> 64) as i64, value as i64)
}

/// A shuffle that does the same to each 32-bit element: byte `i` of the result is byte `pattern[i]` of
/// the element, or 0 where that is negative.
#[target_feature(enable = "avx2")]
fn per_dword(pattern: [i8; 4]) -> __m256i {
    let mut bytes = [0u8; 16];
    for (i, byte) in bytes.iter_mut().enumerate() {
        let from = pattern[i % 4];
        *byte = if from < 0 { 0x80 } else { from as u8 + (i / 4 * 4) as u8 };
    }
    _mm256_broadcastsi128_si256(from_bytes(bytes))
}

/// Of eight frames: the bits in which their first 16 bytes differ from `expected` in any of them, the
/// first 16 bytes of their IPv4 headers (frames i and i + 4 in one row), the destination addresses.
///
/// # Safety
///
/// There are eight heads with 34 readable bytes each.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_ipv4(heads: *const *mut u8, expected: __m128i) -> (__m128i, [__m256i; 4], __m256i) {
    let mut differ = _mm_setzero_si128();
    let mut rows = [_mm256_setzero_si256(); 4];
    let mut destinations = [0i32; GROUP];
    for i in 0..4 {
        // SAFETY: by the function's contract.
        unsafe {
            let (low, high) = (*heads.add(i), *heads.add(i + 4));
            differ = _mm_or_si128(differ, _mm_xor_si128(load(low), expected));
            differ = _mm_or_si128(differ, _mm_xor_si128(load(high), expected));
            rows[i] = join(load(low.add(14)), load(high.add(14)));
            destinations[i] = low.add(30).cast::<i32>().read_unaligned();
            destinations[i + 4] = high.add(30).cast::<i32>().read_unaligned();
        }
    }
    let [d0, d1, d2, d3, d4, d5, d6, d7] = destinations;
    (differ, rows, _mm256_setr_epi32(d0, d1, d2, d3, d4, d5, d6, d7))
}

/// Of eight frames: the bits in which their first 16 bytes differ from `expected` in any of them, the
/// second words of their IPv6 headers (payload length, next header, hop limit) and the first words of
/// their source addresses. Writes their destination addresses to `keys`.
///
/// # Safety
///
/// There are eight heads with 54 readable bytes each, and room for eight keys.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_ipv6(heads: *const *mut u8, expected: __m128i, keys: *mut Ipv6Key) -> (__m128i, __m256i, __m256i) {
    // Each half of an address as a number; Ipv6Key is the upper half, then the lower.
    let halves = _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
    let mut differ = _mm_setzero_si128();
    let mut rows = [_mm_setzero_si128(); GROUP];
    for (i, row) in rows.iter_mut().enumerate() {
        // SAFETY: by the function's contract.
        unsafe {
            let head = *heads.add(i);
            differ = _mm_or_si128(differ, _mm_xor_si128(load(head), expected));
            *row = _mm_loadl_epi64(head.add(18).cast());
            _mm_storeu_si128(keys.add(i).cast(), _mm_shuffle_epi8(load(head.add(38)), halves));
        }
    }
    let [r0, r1, r2, r3, r4, r5, r6, r7] = rows;
    let low = [_mm_unpacklo_epi32(r0, r1), _mm_unpacklo_epi32(r2, r3)];
    let high = [_mm_unpacklo_epi32(r4, r5), _mm_unpacklo_epi32(r6, r7)];
    let lengths_and_limits = join(_mm_unpacklo_epi64(low[0], low[1]), _mm_unpacklo_epi64(high[0], high[1]));
    let sources = join(_mm_unpackhi_epi64(low[0], low[1]), _mm_unpackhi_epi64(high[0], high[1]));
    (differ, lengths_and_limits, sources)
}

#[inline]
#[target_feature(enable = "avx2")]
fn join(low: __m128i, high: __m128i) -> __m256i {
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
}

/// Rows of frames to columns of header words: element i of word k is word k of frame i.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose([r04, r15, r26, r37]: [__m256i; 4]) -> [__m256i; 4] {
    let (a, b) = (_mm256_unpacklo_epi32(r04, r15), _mm256_unpacklo_epi32(r26, r37));
    let (c, d) = (_mm256_unpackhi_epi32(r04, r15), _mm256_unpackhi_epi32(r26, r37));
    [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b), _mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d)]
}

/// The lengths of eight frames and of their first segments.
///
/// # Safety
///
/// There are eight.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_lengths(lengths: *const Lengths) -> (__m256i, __m256i) {
    // SAFETY: by the function's contract; Lengths is a transparent u64.
    let (a, b) = unsafe { (_mm256_loadu_si256(lengths.cast()), _mm256_loadu_si256(lengths.add(4).cast())) };
    let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    let frame = _mm256_castps_si256(_mm256_shuffle_ps::<0x88>(a, b));
    let segment = _mm256_castps_si256(_mm256_shuffle_ps::<0xdd>(a, b));
    let segment = _mm256_and_si256(segment, _mm256_set1_epi32(0xffff));
    (_mm256_permute4x64_epi64::<0xd8>(frame), _mm256_permute4x64_epi64::<0xd8>(segment))
}

/// # Safety
///
/// 16 bytes are readable.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(bytes: *const u8) -> __m128i {
    // SAFETY: by the function's contract; the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.cast()) }
}

/// # Safety
///
/// Eight elements are writable.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store(lanes: *mut u32, value: __m256i) {
    // SAFETY: by the function's contract; the store needs no alignment.
    unsafe { _mm256_storeu_si256(lanes.cast(), value) }
}
