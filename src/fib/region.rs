//! Large zeroed arrays of atomics that take memory only where they have been written.
//!
//! The only file of the FIB with `unsafe` in it. The mapping lives as long as the array can be reached, and
//! everything in it is an atomic, so that no use of a table, however wrong, reads or writes outside of it or races.

use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use super::trie::Head;

/// Start of every region, and the unit in which memory goes back: the size of a huge page on x86-64 and AArch64.
pub(super) const UNIT: usize = 2 << 20;

/// A type made of atomics only, for which zero bytes are a value.
///
/// # Safety
/// The type consists of atomics of at most 8 bytes and has no padding, and all of its bytes being zero is a value of it.
pub(super) unsafe trait Zeroable: Send + Sync {}

// SAFETY: an integer atomic has the layout of its integer, for which zero is a value.
unsafe impl Zeroable for AtomicU8 {}
// SAFETY: as above.
unsafe impl Zeroable for AtomicU16 {}
// SAFETY: as above.
unsafe impl Zeroable for AtomicU32 {}
// SAFETY: `Head` is `repr(C)` of one 8-byte and two 4-byte atomics, without padding.
unsafe impl Zeroable for Head {}

/// `N` values of `T`, zero at first. Pages never written take no memory; the kernel is asked for huge pages,
/// which spare most of the TLB misses of lookups all over a full table.
pub(super) struct Region<T: Zeroable, const N: usize> {
    array: NonNull<[T; N]>,
    mapping: NonNull<u8>,
}

// SAFETY: the region owns its array as a `Box<[T; N]>` would; `T` is `Send`.
unsafe impl<T: Zeroable, const N: usize> Send for Region<T, N> {}
// SAFETY: shared access gives only `&[T; N]`, whose `T` is `Sync`, and `release`, which acts like a store to each atomic.
unsafe impl<T: Zeroable, const N: usize> Sync for Region<T, N> {}

impl<T: Zeroable, const N: usize> Region<T, N> {
    /// Bytes of address space the array spans.
    pub(super) const BYTES: usize = size_of::<[T; N]>();
    const MAPPED: usize = Self::BYTES + UNIT;

    /// Maps the array; fails when the kernel refuses the address space.
    pub(super) fn new() -> Result<Self, Errno> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses the address of a new private mapping; nothing else refers to it.
        let mapping =
            unsafe { mmap_anonymous(ptr::null_mut(), Self::MAPPED, ProtFlags::READ | ProtFlags::WRITE, flags)? };
        let mapping = NonNull::new(mapping.cast::<u8>()).ok_or(Errno::NOMEM)?;
        let padding = mapping.as_ptr().align_offset(UNIT).min(UNIT);
        // SAFETY: `padding` is at most UNIT, so array and padding lie inside the mapping of BYTES + UNIT.
        let array = unsafe { mapping.add(padding) };
        let region = Self { array: array.cast(), mapping };
        // SAFETY: the range is inside the mapping; the advice changes no contents. Its refusal (a kernel
        // without transparent huge pages) costs only speed.
        let _refused = unsafe { madvise(region.array.as_ptr().cast(), Self::BYTES, Advice::LinuxHugepage) };
        Ok(region)
    }

    /// Gives the memory of the `unit`-th [`UNIT`] of the array back to the kernel: its elements are zero afterwards,
    /// as if zero had been stored to each. Returns whether the kernel did so; beyond the array it is nothing.
    pub(super) fn release(&self, unit: usize) -> bool {
        let start = unit.saturating_mul(UNIT);
        if start >= Self::BYTES {
            return false;
        }
        let length = UNIT.min(Self::BYTES - start);
        // SAFETY: the range is inside the array. To other threads a page turning zero looks like a store to each
        // of its atomics, which `Zeroable` says is all there is.
        unsafe { madvise(self.array.as_ptr().cast::<u8>().add(start).cast(), length, Advice::LinuxDontNeed) }.is_ok()
    }
}

/// Fetches the element at `index` into the cache. An index out of range does no harm and no good.
#[inline(always)]
pub(super) fn prefetch<T>(array: &[T], index: usize) {
    let element = array.as_ptr().wrapping_add(index);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing architecturally and faults on no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(element.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) element, options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = element;
}

impl<T: Zeroable, const N: usize> Deref for Region<T, N> {
    type Target = [T; N];

    #[inline(always)]
    fn deref(&self) -> &[T; N] {
        // SAFETY: `array` points to BYTES mapped bytes, aligned to UNIT, initialized (zero is a value of `T`), and lives as long as self.
        unsafe { self.array.as_ref() }
    }
}

impl<T: Zeroable, const N: usize> Drop for Region<T, N> {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made by `new`, and no reference into it can outlive self.
        let _freed = unsafe { munmap(self.mapping.as_ptr().cast(), Self::MAPPED) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn a_region_is_zero_writable_and_zero_again_after_release() {
        let region = Region::<AtomicU16, { UNIT }>::new().unwrap();
        assert_eq!(region.as_ptr().addr() % UNIT, 0);
        for index in [0, 1, UNIT / 2 - 1, UNIT / 2, UNIT - 1] {
            assert_eq!(region[index].load(Relaxed), 0);
            region[index].store(7, Relaxed);
        }
        prefetch(&*region, UNIT - 1);
        prefetch(&*region, usize::MAX);
        assert!(region.release(1));
        assert!(!region.release(2), "beyond the end");
        let values = [0, UNIT / 2 - 1, UNIT / 2, UNIT - 1].map(|index| region[index].load(Relaxed));
        assert_eq!(values, [7, 7, 0, 0]);
    }
}
