//! Generates pseudorandom numbers that are the same everywhere.

/// SplitMix64, by Guy Steele, Doug Lea and Christine Flood: *Fast splittable pseudorandom number generators* (2014).
#[derive(Debug, Clone)]
pub(super) struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Noise {
        Noise(seed)
    }

    /// Returns the next 64 random bits.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Returns a number from `first` to `last`, both included.
    pub fn between(&mut self, first: i64, last: i64) -> i64 {
        first + self.below((last - first) as u64 + 1) as i64
    }

    /// Returns true in one of `times` calls on average.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// Numbers of common distributions.
impl Noise {
    /// Returns a number above 0 and at most 1.
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Returns a normally distributed number with mean 0 and standard deviation 1, by the method of Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Returns a number of Student's distribution with four degrees of freedom, scaled to standard deviation 1, which
    /// has outliers.
    pub fn heavy(&mut self) -> f64 {
        let squares = -2.0 * (self.unit() * self.unit()).ln();
        self.normal() / (squares / 4.0).sqrt() / std::f64::consts::SQRT_2
    }
}
