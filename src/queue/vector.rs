//! Slots written and read in vectors of four, with AVX2.
//!
//! To other threads each slot must look as if stored with release and loaded with acquire ordering. Rust has no
//! atomic of four words, and its plain vector accesses would race, hence assembly, whose accesses are what the
//! processor makes of them:
//!
//! - **Whole.** The architecture promises that an aligned access of 8 bytes is atomic, and says nothing about one of
//!   32. What processors with AVX2 do is to carry it out as a whole or as parts cut at multiples of 16 bytes or of
//!   a cache line. A slot is 8 bytes, aligned, so that no cut goes through one. Parts may be seen in any order.
//!   That is as good as four stores, or four loads, in any order.
//! - **In order.** Stores are not made visible before earlier ones, nor loads carried out before earlier ones, whatever
//!   their width (total store order). So what was written to an item before its slot is seen by who finds it there, and
//!   whoever reads that the consumer has gone past a slot does so after the consumer read it.
//! - **By the compiler.** A block without `nomem` is a barrier to it: no access to memory moves across.
//!
//! While they are at it, they have the processor fetch the slots that come later, a cache line each turn. Prefetching
//! accesses nothing: the line may be past the end of the ring, or not there at all.

use std::mem::MaybeUninit;
use std::sync::atomic::AtomicPtr;

/// Proof that the processor has AVX2.
#[derive(Clone, Copy, Debug)]
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
pub(super) struct Avx2(());

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
impl Avx2 {
    /// Slots in one vector.
    const LANES: usize = 4;

    pub(super) fn detect() -> Option<Self> {
        std::arch::is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// Stores `words` with `phase` added to them, whole vectors only. Returns how many were stored. Fetches as many slots for
    /// writing from `ahead` on.
    #[inline(always)]
    pub(super) fn store(
        self,
        slots: &[AtomicPtr<()>],
        words: &[*mut ()],
        phase: usize,
        ahead: &AtomicPtr<()>,
    ) -> usize {
        let count = slots.len().min(words.len()) / Self::LANES * Self::LANES;
        if count > 0 {
            let bytes = count * size_of::<usize>();
            // An odd vector first, then two in each turn.
            //
            // SAFETY: `bytes` bytes are read and written from the start of `words` and of `slots`, which have them;
            // slots may be written through a shared reference. `self` proves AVX2; who has it knows `prefetchw`, or takes it
            // for an instruction that does nothing. All vector registers are given up, as the last instruction clears
            // their upper halves.
            unsafe {
                std::arch::asm!(
                    "vmovq xmm1, {phase}",
                    "vpbroadcastq ymm1, xmm1",
                    "test {offset}, 32",
                    "jz 2f",
                    "prefetchw byte ptr [{ahead} + {offset}]",
                    "vpor ymm0, ymm1, ymmword ptr [{words} + {offset}]",
                    "vmovdqu ymmword ptr [{slots} + {offset}], ymm0",
                    "add {offset}, 32",
                    "jz 3f",
                    "2:",
                    "prefetchw byte ptr [{ahead} + {offset}]",
                    "vpor ymm0, ymm1, ymmword ptr [{words} + {offset}]",
                    "vpor ymm2, ymm1, ymmword ptr [{words} + {offset} + 32]",
                    "vmovdqu ymmword ptr [{slots} + {offset}], ymm0",
                    "vmovdqu ymmword ptr [{slots} + {offset} + 32], ymm2",
                    "add {offset}, 64",
                    "jnz 2b",
                    "3:",
                    "vzeroupper",
                    phase = in(reg) phase,
                    words = in(reg) words.as_ptr().byte_add(bytes),
                    slots = in(reg) slots.as_ptr().byte_add(bytes),
                    ahead = in(reg) std::ptr::from_ref(ahead).wrapping_byte_add(bytes),
                    offset = inout(reg) bytes.wrapping_neg() => _,
                    out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
                    out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _,
                    out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
                    out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
                    options(nostack),
                );
            }
        }
        count
    }

    /// Loads words whose lowest bit is `phase`, clears that bit and writes them to `words`, whole vectors only, up to the
    /// first vector with another in it. Returns how many there were. Fetches as many slots for reading from `ahead` on.
    #[inline(always)]
    pub(super) fn load(
        self,
        slots: &[AtomicPtr<()>],
        words: &mut [MaybeUninit<*mut ()>],
        phase: usize,
        ahead: &AtomicPtr<()>,
    ) -> usize {
        let bytes = slots.len().min(words.len()) / Self::LANES * Self::LANES * size_of::<usize>();
        if bytes == 0 {
            return 0;
        }
        let mut offset = bytes.wrapping_neg();
        // An odd vector first, then two in each turn; when they are not both there, perhaps the first is.
        //
        // SAFETY: at most `bytes` bytes are read from the start of `slots` and written from that of `words`, which have
        // them. `self` proves AVX2. All vector registers are given up, as the last instruction clears their upper halves.
        unsafe {
            std::arch::asm!(
                "vmovq xmm1, {phase}",
                "vpbroadcastq ymm1, xmm1",
                "vpcmpeqd ymm2, ymm2, ymm2",
                "vpsrlq ymm2, ymm2, 63",
                "test {offset}, 32",
                "jz 2f",
                "prefetcht0 byte ptr [{ahead} + {offset}]",
                "vpxor ymm0, ymm1, ymmword ptr [{slots} + {offset}]",
                "vptest ymm0, ymm2",
                "jnz 4f",
                "vmovdqu ymmword ptr [{words} + {offset}], ymm0",
                "add {offset}, 32",
                "jz 4f",
                "2:",
                "prefetcht0 byte ptr [{ahead} + {offset}]",
                "vpxor ymm0, ymm1, ymmword ptr [{slots} + {offset}]",
                "vpxor ymm3, ymm1, ymmword ptr [{slots} + {offset} + 32]",
                "vpor ymm4, ymm0, ymm3",
                "vptest ymm4, ymm2",
                "jnz 3f",
                "vmovdqu ymmword ptr [{words} + {offset}], ymm0",
                "vmovdqu ymmword ptr [{words} + {offset} + 32], ymm3",
                "add {offset}, 64",
                "jnz 2b",
                "jmp 4f",
                "3:",
                "vptest ymm0, ymm2",
                "jnz 4f",
                "vmovdqu ymmword ptr [{words} + {offset}], ymm0",
                "add {offset}, 32",
                "4:",
                "vzeroupper",
                phase = in(reg) phase,
                slots = in(reg) slots.as_ptr().byte_add(bytes),
                words = in(reg) words.as_mut_ptr().byte_add(bytes),
                ahead = in(reg) std::ptr::from_ref(ahead).wrapping_byte_add(bytes),
                offset = inout(reg) offset,
                out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
                out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _,
                out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
                out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
                options(nostack),
            );
        }
        bytes.wrapping_add(offset) / size_of::<usize>()
    }
}

/// Has the processor get the cache line of a slot for reading, in the background.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(super) fn fetch_for_reading(slot: &AtomicPtr<()>) {
    // SAFETY: changes nothing but caches, and is in every processor of this kind.
    unsafe { std::arch::asm!("prefetcht0 byte ptr [{}]", in(reg) slot, options(nostack, preserves_flags, readonly)) };
}

/// Has the processor get the cache line of a slot for writing, in the background.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(super) fn fetch_for_writing(slot: &AtomicPtr<()>) {
    // SAFETY: changes nothing but caches. Processors that do not have the instruction take it for one that does nothing.
    unsafe { std::arch::asm!("prefetchw byte ptr [{}]", in(reg) slot, options(nostack, preserves_flags, readonly)) };
}

/// Nothing here.
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn fetch_for_reading(_: &AtomicPtr<()>) {}

/// Nothing here.
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn fetch_for_writing(_: &AtomicPtr<()>) {}

/// There is none.
#[derive(Clone, Copy, Debug)]
#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
pub(super) enum Avx2 {}

#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        None
    }

    pub(super) fn store(self, _: &[AtomicPtr<()>], _: &[*mut ()], _: usize, _: &AtomicPtr<()>) -> usize {
        match self {}
    }

    pub(super) fn load(
        self,
        _: &[AtomicPtr<()>],
        _: &mut [MaybeUninit<*mut ()>],
        _: usize,
        _: &AtomicPtr<()>,
    ) -> usize {
        match self {}
    }
}
