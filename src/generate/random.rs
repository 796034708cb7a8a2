//! Random numbers for traffic: fast, the same on every machine for the same seed, good for no secret.

/// The SplitMix64 generator: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators"
/// (OOPSLA 2014), with the constants of David Stafford's mix 13. Its period is 2^64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts at a seed; any is as good as another.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, or 0 if that is 0. Uniform but for a bias of less than `limit` / 2^64.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, percent: u8) -> bool {
        self.below(100) < u64::from(percent)
    }

    /// One of the items, each as likely as another; `None` if there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len() as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_reference_implementation() {
        let mut random = Random::new(1_234_567);
        let numbers: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(numbers, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn shares_are_as_asked_for() {
        let mut random = Random::new(7);
        assert_eq!((0..1000).filter(|_| random.percent(0)).count(), 0);
        assert_eq!((0..1000).filter(|_| random.percent(100)).count(), 1000);
        let tenth = (0..10_000).filter(|_| random.percent(10)).count();
        assert!((900..1100).contains(&tenth), "{tenth}");
        let mut seen = [0; 3];
        for _ in 0..3000 {
            seen[*random.pick(&[0usize, 1, 2]).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| (900..1100).contains(count)), "{seen:?}");
        assert_eq!(random.pick::<u8>(&[]), None);
    }
}
