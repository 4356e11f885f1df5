//! Bounds the error of device times that come on the host's clock already. The driver's tracing library maps them and
//! does not say how well, so the bound comes from cause and effect.
//!
//! Work starts after the call that launched it, and ends before a call returns that waited for it. A device time that
//! the library puts early or late by more than these distances would therefore break cause and effect. The distances
//! are least where the device was idle and where the host waited. Between such moments the offset may move, at most
//! as the constants below say.

use gapscope_trace::manifest::{Clock, ClockMethod};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The rate at which the library's map may move from one moment to a near one, in ns a second: three times the
/// drift between the clocks of an H200 and its host (6.4 to 6.7 us a second), as if the library did not correct it.
const NEAR_NS_PER_S: i64 = 20_000;
/// The distance by which the map may move between far moments: a step and a rate. The library pairs the two clocks
/// anew whenever it prepares records, so far moments are not much further apart than near ones. The values are
/// three times what `clock-drift` of tests/cuda-programs measured on one H200, in windows of 100 ms. With a wait
/// for each of 10^6 launches in 10 s, the least distances moved by at most 849 ns from window to window, and by 184
/// ns a second between the halves. Without waits, in 30,000 launches in 30 s, they lay 0.6 us below to 6.9 us above
/// their median and moved by 1.3 ns a second; what lies above is taken for the launches' own latency, which such a
/// run cannot tell from the clocks.
const STEP_NS: i64 = 2_600;
/// The rate beside that step, in ns a second.
const FAR_NS_PER_S: i64 = 600;
/// The first length of the windows of time, each of which keeps its least distances. The bound includes what the
/// offset may move within one window.
const FIRST_WIDTH_NS: i64 = 10_000_000;
/// Windows are merged in pairs when there are more than this, which is after five and a half minutes.
const MAX_WINDOWS: usize = 1 << 15;

/// The bound by cause and effect between a device and its host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Causal {
    /// The length of a window.
    width_ns: i64,
    /// The windows by index: the time divided by the length.
    windows: BTreeMap<i64, Window>,
    /// The window of the last time, which is not in `windows` yet.
    last: Option<(i64, Window)>,
    /// Number of launches that were added.
    launches: u64,
    /// Number of returns that were added.
    returns: u64,
    /// Number of launches whose work seems to start before them.
    early: u64,
}

/// The least distances in a window of time.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Window {
    /// The time from a call to the start of its work, negative where the work seems to start first.
    after_call_ns: i64,
    /// The time from the end of work to the return of a call that waited for it.
    before_return_ns: i64,
}

/// A window without any distance.
const UNBOUNDED: Window = Window {
    after_call_ns: i64::MAX,
    before_return_ns: i64::MAX,
};

impl Window {
    /// Returns the lesser of both distances.
    fn join(self, other: Window) -> Window {
        Window {
            after_call_ns: self.after_call_ns.min(other.after_call_ns),
            before_return_ns: self.before_return_ns.min(other.before_return_ns),
        }
    }
}

impl Default for Causal {
    fn default() -> Self {
        Causal {
            width_ns: FIRST_WIDTH_NS,
            windows: BTreeMap::new(),
            last: None,
            launches: 0,
            returns: 0,
            early: 0,
        }
    }
}

impl Causal {
    /// Adds work that started at `start_ns` and was launched by a call that started at `call_ns`.
    #[inline]
    pub fn launched(&mut self, call_ns: i64, start_ns: i64) {
        let after_call_ns = start_ns.saturating_sub(call_ns);
        self.launches += 1;
        if after_call_ns < 0 {
            self.early += 1;
        }
        self.add(
            start_ns,
            Window {
                after_call_ns,
                ..UNBOUNDED
            },
        );
    }

    /// Adds work that ended at `end_ns` and for which a call waited that returned at `return_ns`.
    #[inline]
    pub fn returned(&mut self, end_ns: i64, return_ns: i64) {
        let before_return_ns = return_ns.saturating_sub(end_ns);
        self.returns += 1;
        self.add(
            end_ns,
            Window {
                before_return_ns,
                ..UNBOUNDED
            },
        );
    }

    /// Adds distances at a time to its window.
    #[inline]
    fn add(&mut self, at_ns: i64, window: Window) {
        let index = at_ns.div_euclid(self.width_ns);
        match &mut self.last {
            Some((last, known)) if *last == index => *known = known.join(window),
            _ => {
                self.store_last();
                self.last = Some((index, window));
            }
        }
    }

    /// Moves the last window to the others, and doubles the length of windows where they are too many.
    fn store_last(&mut self) {
        let Some((index, window)) = self.last.take() else {
            return;
        };
        let known = self.windows.entry(index).or_insert(UNBOUNDED);
        *known = known.join(window);
        if self.windows.len() > MAX_WINDOWS {
            self.width_ns = self.width_ns.saturating_mul(2);
            let mut wider: BTreeMap<i64, Window> = BTreeMap::new();
            for (index, window) in &self.windows {
                let known = wider.entry(index.div_euclid(2)).or_insert(UNBOUNDED);
                *known = known.join(*window);
            }
            self.windows = wider;
        }
    }

    /// Returns the number of launches whose work seems to start before them.
    pub fn early_launches(&self) -> u64 {
        self.early
    }

    /// Returns the most by which a device time can be off; `None` when no call waited for work or none launched any.
    fn error_ns(&self) -> Option<i64> {
        let mut windows: Vec<(i64, Window)> = self.windows.iter().map(|(i, w)| (*i, *w)).collect();
        if let Some((index, window)) = self.last {
            windows.push((index, window));
            windows.sort_by_key(|(index, _)| *index);
        }
        let near = self.spread(&windows, NEAR_NS_PER_S);
        let far = self.spread(&windows, FAR_NS_PER_S);
        let windows = near.iter().zip(far);
        let windows = windows.map(|(near, far)| near.join(far.grown(STEP_NS)));
        let worst = windows
            .map(|w| {
                w.after_call_ns
                    .saturating_abs()
                    .max(w.before_return_ns.saturating_abs())
            })
            .max()?;
        // The offset moves inside a window, too.
        let inside_ns = self.moved_ns(1, NEAR_NS_PER_S);
        (worst < i64::MAX).then(|| worst.saturating_add(inside_ns))
    }

    /// Returns what all windows together tell of each: a distance grows with time, in both directions.
    fn spread(&self, windows: &[(i64, Window)], ns_per_s: i64) -> Vec<Window> {
        let mut spread: Vec<Window> = windows.iter().map(|(_, window)| *window).collect();
        let between = |at: usize| self.moved_ns(windows[at].0 - windows[at - 1].0, ns_per_s);
        for at in 1..spread.len() {
            spread[at] = spread[at].join(spread[at - 1].grown(between(at)));
        }
        for at in (1..spread.len()).rev() {
            spread[at - 1] = spread[at - 1].join(spread[at].grown(between(at)));
        }
        spread
    }

    /// Returns the distance by which the offset may move in this many windows.
    fn moved_ns(&self, windows: i64, ns_per_s: i64) -> i64 {
        // The width of a window is a whole number of milliseconds.
        let milliseconds = windows.saturating_mul(self.width_ns) / 1_000_000;
        milliseconds.saturating_mul(ns_per_s) / 1000
    }

    /// Returns the manifest's description of the clock.
    pub fn summary(&self) -> Clock {
        Clock {
            method: ClockMethod::Brackets,
            error_ns: self.error_ns(),
            samples: u32::try_from(self.launches.saturating_add(self.returns)).unwrap_or(u32::MAX),
            drift_ppm: None,
            nanoseconds_per_tick: 1.0,
        }
    }
}

impl Window {
    /// Returns the distances plus `ns`.
    fn grown(self, ns: i64) -> Window {
        Window {
            after_call_ns: self.after_call_ns.saturating_add(ns),
            before_return_ns: self.before_return_ns.saturating_add(ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_what_cause_and_effect_leave_open() {
        let mut causal = Causal::default();
        for at in [1_000_000, 2_000_000, 3_000_000] {
            causal.launched(at, at + 5_000 + at / 1000);
            causal.returned(at + 20_000, at + 32_000);
        }
        // A launch into a busy queue says little, and does not make the bound worse.
        causal.launched(4_000_000, 40_000_000);
        // The worst of the four launches' windows is the last, 40 ms after the last wait.
        assert_eq!(causal.error_ns(), Some(12_000 + 800 + 200));
        assert_eq!(causal.early_launches(), 0);
    }

    #[test]
    fn far_from_any_wait_the_bound_grows() {
        let mut causal = Causal::default();
        causal.launched(0, 4_000);
        causal.returned(10_000, 14_000);
        let near = causal.error_ns().unwrap();
        causal.launched(10_000_000_000, 10_000_005_000);
        let far = causal.error_ns().unwrap();
        assert_eq!(near, 4_000 + 200);
        // The bound has a step, and 10 s at 600 ns a second.
        assert_eq!(far, 4_000 + 2_600 + 6_000 + 200);
        // The launch 50 ms earlier, at 20 us a second, bounds it more tightly.
        causal.returned(10_050_000_000, 10_050_004_000);
        assert_eq!(causal.error_ns().unwrap(), 5_000 + 1_000 + 200);
    }

    #[test]
    fn without_a_wait_the_bound_is_not_known() {
        let mut causal = Causal::default();
        causal.launched(0, 4_000);
        assert_eq!(causal.error_ns(), None);
        assert_eq!(Causal::default().error_ns(), None);
    }

    #[test]
    fn work_before_its_launch_is_counted_and_widens_the_bound() {
        let mut causal = Causal::default();
        causal.launched(10_000, 3_000);
        causal.launched(20_000, 29_000);
        causal.returned(30_000, 31_000);
        assert_eq!(causal.early_launches(), 1);
        assert_eq!(causal.error_ns(), Some(7_000 + 200));
    }

    #[test]
    fn windows_stay_few_over_a_long_time() {
        let mut causal = Causal::default();
        for at in 0..50_000 {
            causal.launched(at * FIRST_WIDTH_NS, at * FIRST_WIDTH_NS + 4_000);
        }
        assert!(causal.windows.len() <= MAX_WINDOWS);
    }
}
