//! Defines [`Line`], the straight line between two samples of device and host clock: ticks go in, host nanoseconds
//! come out, in exact integers.

/// The readings of both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// The device's clock, in ticks.
    pub ticks: i128,
    /// The host's clock, in nanoseconds.
    pub host_ns: i128,
}

/// The line through two points, in integers, so that rounding errors do not add up.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// The earlier point.
    pub from: Point,
    /// The later point, at more ticks.
    pub to: Point,
}

impl Line {
    /// Returns the host's time on the line, rounded to the nearest.
    pub fn host_ns(&self, ticks: i128) -> i128 {
        // Starting from the nearer end keeps the error of the slope small.
        let near = if ticks >= self.to.ticks {
            self.to
        } else {
            self.from
        };
        let product = (ticks - near.ticks) * (self.to.host_ns - self.from.host_ns);
        near.host_ns + rounded(product, self.ticks())
    }

    /// Returns the distance of a point from the line, in nanoseconds.
    pub fn deviation_ns(&self, point: Point) -> u64 {
        let off = point.host_ns - self.host_ns(point.ticks);
        u64::try_from(off.abs()).unwrap_or(u64::MAX)
    }

    /// Returns the line's length in ticks, at least 1.
    pub fn ticks(&self) -> i128 {
        (self.to.ticks - self.from.ticks).max(1)
    }
}

/// Divides and rounds to the nearest; `divisor` is positive.
fn rounded(dividend: i128, divisor: i128) -> i128 {
    let half = divisor / 2;
    if dividend >= 0 {
        (dividend + half) / divisor
    } else {
        (dividend - half) / divisor
    }
}
