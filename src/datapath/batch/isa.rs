//! Which instructions the data path may use.

use super::check::Check;
use super::scalar;

/// A way of forwarding. Those that need more than every processor has are made by [`Isa::available`] only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// One header after the other.
    Scalar,
    /// Eight at once, with AVX2.
    Avx2(Present),
}

/// Proof that the processor has what an [`Isa`] needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present(());

impl Isa {
    /// What this processor can do, the widest last.
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx2") && has!("bmi1") && has!("bmi2") {
                all.push(Self::Avx2(Present(())));
            }
        }
        all
    }

    /// The widest that this processor can do.
    pub fn detect() -> Self {
        Self::available().pop().unwrap_or(Self::Scalar)
    }

    /// Does something in code that is compiled for this way: where the processor has AVX2 and BMI2, the
    /// compiler may use them throughout.
    #[inline(always)]
    pub(in crate::datapath) fn apply<W: Work>(self, work: W) -> W::Output {
        match self {
            // SAFETY: Present proves that the processor has what the function is compiled for.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(present) => unsafe { super::avx2::apply(work, present) },
            _ => work.run::<scalar::OneByOne>(()),
        }
    }

    /// Its name, as logs print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2(_) => "AVX2",
        }
    }
}

/// Something to be done in code that is compiled for an [`Isa`].
pub(in crate::datapath) trait Work {
    /// What comes of it.
    type Output;

    /// Does it, checking headers by `C`. Must be `#[inline(always)]`, as must be what it calls, to be compiled for
    /// the [`Isa`].
    fn run<C: Check>(self, proof: C::Proof) -> Self::Output;
}
