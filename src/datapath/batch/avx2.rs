//! Checks of eight headers at once (AVX2).

use super::check::{Check, Lanes, Totals};
use super::isa::{Present, Work};
use super::{GROUP, READABLE};
use crate::datapath::buffer::Lengths;
use crate::datapath::snapshot::Family;
use crate::fib::Ipv6Key;
use crate::units::MacAddr;
use std::arch::x86_64::*;

/// What the checks compare with, and what they have added up.
pub(super) struct EightAtOnce {
    expected: __m128i,
    compared: __m128i,
    /// Of all frames together, the bits in which their lengths are more than their packets'.
    padding: __m256i,
    bytes: __m256i,
    /// Bytes of frames that were counted more than once.
    repeated: u32,
}

impl Check for EightAtOnce {
    type Proof = Present;
    const BESIDE_ROUTING: bool = true;

    #[inline(always)]
    fn new(_: Present, family: Family, mac: MacAddr) -> Self {
        let (start, version) = match family {
            Family::Ipv4 => ([0x08, 0x00, 0x45], 0xff),
            Family::Ipv6 => ([0x86, 0xdd, 0x60], 0xf0),
        };
        // SAFETY: Present proves that the processor has AVX2.
        unsafe {
            let (expected, compared) = (expected_start(mac, start), compared_start(version));
            Self { expected, compared, padding: _mm256_setzero_si256(), bytes: _mm256_setzero_si256(), repeated: 0 }
        }
    }

    #[inline(always)]
    unsafe fn group(&mut self, family: Family, lanes: &mut Lanes, at: usize, len: usize) -> u8 {
        const { assert!(READABLE >= 54) };
        if len < GROUP {
            let filling = (GROUP - len) as u32;
            self.repeated = self.repeated.wrapping_add(filling.wrapping_mul(lanes.lengths[at + GROUP - 1].frame()));
        }
        // SAFETY: the processor has AVX2, or there would be no `self`; the rest by the function's contract.
        let odd = unsafe {
            match family {
                Family::Ipv4 => self.ipv4(lanes, at),
                Family::Ipv6 => self.ipv6(lanes, at),
            }
        };
        if odd == 0 { 0 } else { odd & (u8::MAX >> (GROUP - len)) }
    }

    #[inline(always)]
    fn totals(&self) -> Totals {
        // SAFETY: the processor has AVX2, or there would be no `self`.
        unsafe {
            let padded = _mm256_testz_si256(self.padding, self.padding) == 0;
            Totals { padded, bytes: sum(self.bytes).wrapping_sub(self.repeated) }
        }
    }
}

impl EightAtOnce {
    /// # Safety
    ///
    /// As [`Check::group`].
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn ipv4(&mut self, lanes: &mut Lanes, at: usize) -> u8 {
        let low_half = _mm256_set1_epi32(0xffff);
        // SAFETY: the caller vouches for the heads; 34 bytes of each are read.
        let (start, rows, w4) = unsafe { load_ipv4(lanes.heads.as_ptr().add(at), self.expected) };
        let [w0, w1, w2, w3] = transpose(rows);
        // SAFETY: `at + 8 <= LANES`, the length of the array.
        let (frame, segment) = unsafe { load_lengths(lanes.lengths.as_ptr().add(at)) };

        // The ten halves of words are added as signed numbers, each 0x8000 less than it is.
        let mut sum = _mm256_set1_epi32(10 * 0x8000);
        for word in [w0, w1, w2, w3, w4] {
            let signed = _mm256_xor_si256(word, _mm256_set1_epi16(i16::MIN));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(signed, _mm256_set1_epi16(1)));
        }
        let folded = _mm256_add_epi32(_mm256_and_si256(sum, low_half), _mm256_srli_epi32(sum, 16));

        let total_length = _mm256_shuffle_epi8(w0, per_dword([3, 2, -1, -1]));
        let wire = _mm256_add_epi32(total_length, _mm256_set1_epi32(14));
        let extra = _mm256_sub_epi32(frame, wire);
        let source = w3;
        let mut odd = _mm256_xor_si256(folded, low_half);
        for flag in [
            _mm256_xor_si256(frame, segment),
            _mm256_srai_epi32(extra, 31),
            _mm256_cmpgt_epi32(_mm256_set1_epi32(20), total_length),
            // What is left of 2 without a TTL below it.
            _mm256_subs_epu8(_mm256_set1_epi32(2), w2),
            // What is above 222 of a first byte less one: 0 and from 224 on.
            _mm256_subs_epu8(_mm256_add_epi8(source, _mm256_set1_epi32(0xff)), _mm256_set1_epi32(!0x21)),
            _mm256_subs_epu8(_mm256_set1_epi32(1), _mm256_xor_si256(source, _mm256_set1_epi32(127))),
            _mm256_cmpeq_epi32(_mm256_and_si256(source, low_half), _mm256_set1_epi32(0xfea9)),
        ] {
            odd = _mm256_or_si256(odd, flag);
        }
        self.padding = _mm256_or_si256(self.padding, extra);
        self.bytes = _mm256_add_epi32(self.bytes, frame);

        // One less TTL and the checksum that follows from it: see `packet::checksum`.
        let above = _mm256_subs_epu16(w2, _mm256_set1_epi32(0xfffd_ffff_u32 as i32));
        let carry = _mm256_min_epu16(above, _mm256_set1_epi32(0x1_0000));
        let word = _mm256_add_epi32(_mm256_add_epi32(w2, low_half), carry);
        // SAFETY: `at + 8 <= LANES`, the length of each array.
        unsafe {
            store(lanes.wire.as_mut_ptr().add(at), wire);
            store(lanes.words.as_mut_ptr().add(at), word);
            store(lanes.keys.as_mut_ptr().add(at), _mm256_shuffle_epi8(w4, per_dword([3, 2, 1, 0])));
        }
        // SAFETY: by the function's contract.
        set_lanes(odd) | unsafe { self.strangers(start, lanes, at) }
    }

    /// # Safety
    ///
    /// As [`Check::group`].
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn ipv6(&mut self, lanes: &mut Lanes, at: usize) -> u8 {
        let leading_half = per_dword([1, 0, -1, -1]);
        // SAFETY: the caller vouches for the heads, of which 54 bytes are read; `at + 8 <= LANES`.
        let (start, lengths_and_limits, sources) =
            unsafe { load_ipv6(lanes.heads.as_ptr().add(at), self.expected, lanes.keys6.as_mut_ptr().add(at)) };
        // SAFETY: `at + 8 <= LANES`, the length of the array.
        let (frame, segment) = unsafe { load_lengths(lanes.lengths.as_ptr().add(at)) };

        let payload = _mm256_shuffle_epi8(lengths_and_limits, leading_half);
        let wire = _mm256_add_epi32(payload, _mm256_set1_epi32(54));
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
        ] {
            odd = _mm256_or_si256(odd, flag);
        }
        self.padding = _mm256_or_si256(self.padding, extra);
        self.bytes = _mm256_add_epi32(self.bytes, frame);
        // SAFETY: `at + 8 <= LANES`, the length of the array.
        unsafe { store(lanes.wire.as_mut_ptr().add(at), wire) };
        // SAFETY: by the function's contract.
        set_lanes(odd) | unsafe { self.strangers(start, lanes, at) }
    }
}

impl EightAtOnce {
    /// Bit i: frame i does not start as it should. `start` has the bits in which any of them differs from that.
    ///
    /// # Safety
    ///
    /// As [`Check::group`].
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn strangers(&self, start: __m128i, lanes: &Lanes, at: usize) -> u8 {
        if _mm_testz_si128(start, self.compared) != 0 {
            return 0;
        }
        let mut strangers = 0;
        for i in 0..GROUP {
            // SAFETY: by the function's contract.
            let differs = unsafe { _mm_xor_si128(load(lanes.heads[at + i]), self.expected) };
            strangers |= u8::from(_mm_testz_si128(differs, self.compared) == 0) << i;
        }
        strangers
    }
}

/// Bit i: element i is not 0.
#[inline]
#[target_feature(enable = "avx2")]
fn set_lanes(elements: __m256i) -> u8 {
    let zero = _mm256_cmpeq_epi32(elements, _mm256_setzero_si256());
    !_mm256_movemask_ps(_mm256_castsi256_ps(zero)) as u8
}

/// Does something in code that may use these instructions: shifts by variable amounts and copies take
/// fewer of them.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn apply<W: Work>(work: W, present: Present) -> W::Output {
    work.run::<EightAtOnce>(present)
}

/// The sum of all elements, modulo 2³².
#[inline]
#[target_feature(enable = "avx2")]
fn sum(elements: __m256i) -> u32 {
    let four = _mm_add_epi32(_mm256_castsi256_si128(elements), _mm256_extracti128_si256::<1>(elements));
    let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
    let one = _mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two));
    _mm_cvtsi128_si32(one) as u32
}

/// The first 16 bytes a frame should have: our MAC address, any source, EtherType, version.
#[inline]
#[target_feature(enable = "avx2")]
fn expected_start(mac: MacAddr, [type_high, type_low, version]: [u8; 3]) -> __m128i {
    let mut start = [0u8; 16];
    start[..6].copy_from_slice(&mac.0);
    start[12..15].copy_from_slice(&[type_high, type_low, version]);
    from_bytes(start)
}

/// Which bits of them count; `version` are those of the byte behind the EtherType.
#[inline]
#[target_feature(enable = "avx2")]
fn compared_start(version: u8) -> __m128i {
    let mut mask = [0u8; 16];
    mask[..6].fill(0xff);
    mask[12..15].copy_from_slice(&[0xff, 0xff, version]);
    from_bytes(mask)
}

#[inline]
#[target_feature(enable = "avx2")]
fn from_bytes(bytes: [u8; 16]) -> __m128i {
    let value = u128::from_le_bytes(bytes);
    _mm_set_epi64x((value >> 64) as i64, value as i64)
}

/// A shuffle that does the same to each 32-bit element: byte `i` of the result is byte `pattern[i]` of
/// the element, or 0 where that is negative.
#[inline]
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
