//! Triggers, which choose the units of work that are captured.

use super::environment::{self, Units};
use super::once::{self, Once};
use super::{Capture, CaptureDevice, Captured, Destination, NotCaptured};
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A trigger that chooses units of work (steps, tokens, frames) to capture: the N-th, n after skipping k, or the next
/// one when the program or a signal asks for it.
///
/// ```
/// use gapscope_sdk::{Trigger, capture::CaptureDevice};
///
/// fn decode(device: &impl CaptureDevice) {
///     let trigger = Trigger::from_env(); // GAPSCOPE_CAPTURE, …_SKIP, …_TAKE
///     for _token in 0..100 {
///         let _unit = trigger.unit(device); // starts the capture where it is due; dropping it ends the unit
///         // … encode and submit …
///     }
/// }
/// ```
///
/// Nothing stays borrowed while a unit is open, so that a trigger may be a field of a struct whose methods do the work.
#[derive(Debug)]
pub struct Trigger {
    state: Arc<Mutex<State>>,
    /// How many units are left until the captured one.
    arm: Arm,
    /// Signal handlers set this flag.
    signalled: Arc<AtomicBool>,
}

/// The state of a trigger, which its open units share.
#[derive(Debug)]
struct State {
    /// Where captures go, or why there are none.
    destination: Result<Destination, NotCaptured>,
    /// The number of units in one capture.
    take: u64,
    /// The guard that lets one capture run at a time.
    once: &'static Once,
    /// The number of units that have started.
    units: u64,
    /// The nesting depth: a unit inside a unit is part of it.
    depth: u32,
    /// The number of captures that succeeded.
    captured: u64,
    /// The capture that runs; `None` outside of captured units.
    running: Option<RunningCapture>,
    /// The outcome of the last capture that was tried.
    last: Option<Result<Captured, NotCaptured>>,
}

/// A capture that runs, with the number of units until its end.
#[derive(Debug)]
struct RunningCapture {
    capture: Capture,
    units_left: u64,
}

/// A handle that arms a [`Trigger`] from another thread or a handler of requests.
///
/// ```
/// use gapscope_sdk::Trigger;
///
/// let trigger = Trigger::to("slow.gapscope").disarmed();
/// let arm = trigger.arm(); // for a watchdog
/// arm.nth(1);
/// assert_eq!(arm.left(), 1);
/// ```
#[derive(Debug, Clone)]
pub struct Arm(Arc<AtomicU64>);

impl Arm {
    /// Captures the `n`-th unit from now: 1 is the next that starts, and 0 disarms. Arming again replaces the number.
    ///
    /// ```
    /// # use gapscope_sdk::Trigger;
    /// let trigger = Trigger::to("slow.gapscope").disarmed();
    /// let arm = trigger.arm();
    /// std::thread::spawn(move || arm.nth(1)); // when a watchdog finds the program slow
    /// ```
    pub fn nth(&self, n: u64) {
        self.0.store(n, Relaxed);
    }

    /// Returns the number of units up to and including the captured one; 0 if not armed.
    ///
    /// ```
    /// # use gapscope_sdk::Trigger;
    /// assert_eq!(Trigger::to("x.gapscope").skip(2).arm().left(), 3);
    /// ```
    pub fn left(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Counts a unit and returns true if it is to be captured.
    fn count(&self) -> bool {
        let counted = self
            .0
            .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        counted == Ok(1)
    }
}

impl Trigger {
    /// Creates the trigger that the environment asks for: the path in `GAPSCOPE_CAPTURE` or `MLX_METAL_CAPTURE`,
    /// `GAPSCOPE_CAPTURE_SKIP` units before the capture, then `GAPSCOPE_CAPTURE_TAKE` units in one capture. Without a
    /// path, no unit is captured and each returns the reason.
    ///
    /// ```
    /// # use gapscope_sdk::Trigger;
    /// let trigger = Trigger::from_env();
    /// ```
    pub fn from_env() -> Trigger {
        let asked = environment::requested().and_then(|to| Ok((to, environment::units()?)));
        match asked {
            Ok((destination, Units { skip, take })) => {
                Trigger::new(Ok(destination)).skip(skip).take(take)
            }
            Err(why) => Trigger::new(Err(why)),
        }
    }

    /// Creates a trigger that captures the first unit to `path`. Later captures of the same trigger are numbered:
    /// `NAME-2`, `NAME-3`, ….
    ///
    /// ```
    /// # use gapscope_sdk::Trigger;
    /// let first_step = Trigger::to("first step.gapscope");
    /// ```
    pub fn to(path: impl AsRef<Path>) -> Trigger {
        Trigger::new(Ok(Destination::from_path(path)))
    }

    /// Creates a trigger that captures the first unit, or none because of an error.
    fn new(destination: Result<Destination, NotCaptured>) -> Trigger {
        Trigger {
            state: Arc::new(Mutex::new(State {
                destination,
                take: 1,
                once: &once::PROCESS,
                units: 0,
                depth: 0,
                captured: 0,
                running: None,
                last: None,
            })),
            arm: Arm(Arc::new(AtomicU64::new(1))),
            signalled: Arc::new(AtomicBool::new(false)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    #[cfg(test)]
    pub(super) fn once_per_process(self, once: &'static Once) -> Trigger {
        self.state().once = once;
        self
    }

    /// Skips this many units before the capture.
    ///
    /// ```
    /// # use gapscope_sdk::Trigger;
    /// let warmed_up = Trigger::to("steady.gapscope").skip(10).take(3);
    /// assert_eq!(warmed_up.arm().left(), 11);
    /// ```
    #[must_use]
    pub fn skip(self, units: u64) -> Trigger {
        self.arm.nth(units.saturating_add(1));
        self
    }

    /// Captures the `n`-th unit, counted from 1; 0 captures none.
    ///
    /// ```
    /// # use gapscope_sdk::Trigger;
    /// let fifth = Trigger::to("fifth.gapscope").nth(5);
    /// assert_eq!(fifth.arm().left(), 5);
    /// ```
    #[must_use]
    pub fn nth(self, n: u64) -> Trigger {
        self.arm.nth(n);
        self
    }

    /// Captures this many units at once; 0 counts as 1.
    ///
    /// ```
    /// # use gapscope_sdk::Trigger;
    /// let three_steps = Trigger::to("steps.gapscope").take(3);
    /// ```
    #[must_use]
    pub fn take(self, units: u64) -> Trigger {
        self.state().take = units.max(1);
        self
    }

    /// Captures nothing until the trigger is armed.
    ///
    /// ```
    /// # use gapscope_sdk::Trigger;
    /// let on_demand = Trigger::to("slow.gapscope").disarmed();
    /// assert_eq!(on_demand.arm().left(), 0);
    /// ```
    #[must_use]
    pub fn disarmed(self) -> Trigger {
        self.arm.nth(0);
        self
    }

    /// Returns a handle that arms the trigger at any time and from any thread.
    ///
    /// ```
    /// # use gapscope_sdk::Trigger;
    /// let trigger = Trigger::to("slow.gapscope").disarmed();
    /// trigger.arm().nth(1);
    /// ```
    pub fn arm(&self) -> Arm {
        self.arm.clone()
    }

    /// Captures the next unit after each of these signals. The program's own handler, if there is one, is still
    /// called.
    ///
    /// # Errors
    /// The system refuses a handler for this signal.
    ///
    /// ```
    /// # use gapscope_sdk::Trigger;
    /// // kill -USR2 PID
    /// let trigger = Trigger::to("on-demand.gapscope").disarmed();
    /// trigger.arm_on_signal(signal_hook::consts::SIGUSR2).unwrap();
    /// ```
    #[cfg(unix)]
    pub fn arm_on_signal(&self, signal: i32) -> std::io::Result<()> {
        signal_hook::flag::register(signal, Arc::clone(&self.signalled)).map(drop)
    }

    /// Begins a unit. A unit inside a unit is part of it.
    ///
    /// # Errors
    /// The reason why this unit is not captured. After a failure the next unit is tried.
    ///
    /// ```
    /// use gapscope_sdk::{Trigger, capture::CaptureDevice};
    ///
    /// fn step(trigger: &Trigger, device: &impl CaptureDevice) {
    ///     if let Err(why) = trigger.begin_unit(device)
    ///         && !why.is_expected()
    ///     {
    ///         eprintln!("{why}");
    ///     }
    ///     // … encode and submit …
    ///     if let Some(Ok(captured)) = trigger.end_unit() {
    ///         println!("captured {:?}", captured.path());
    ///     }
    /// }
    /// ```
    pub fn begin_unit(&self, device: &(impl CaptureDevice + ?Sized)) -> Result<(), NotCaptured> {
        let mut state = self.state();
        let state = &mut *state;
        state.depth += 1;
        if state.depth > 1 {
            return match state.running {
                Some(_) => Ok(()),
                None => Err(state.not_this(&self.arm)),
            };
        }
        state.units += 1;
        if state.running.is_some() {
            return Ok(());
        }
        let destination = state.destination.clone()?;
        if self.signalled.swap(false, Relaxed) {
            self.arm.nth(1);
        }
        if !self.arm.count() {
            return Err(state.not_this(&self.arm));
        }
        let started = Capture::prepare(
            device.backend(),
            numbered(&destination, state.captured + 1),
            false,
            state.once,
        )
        .and_then(|mut capture| capture.begin().map(|()| capture));
        match started {
            Ok(capture) => {
                state.running = Some(RunningCapture {
                    capture,
                    units_left: state.take,
                });
                Ok(())
            }
            Err(why) => {
                state.last = Some(Err(why.clone()));
                // Only a successful capture counts.
                let _ = self.arm.0.compare_exchange(0, 1, Relaxed, Relaxed);
                Err(why)
            }
        }
    }

    /// Ends a unit and returns the outcome of the capture if this was its last unit.
    ///
    /// ```
    /// # use gapscope_sdk::Trigger;
    /// assert_eq!(Trigger::to("x.gapscope").end_unit(), None, "no unit has started");
    /// ```
    pub fn end_unit(&self) -> Option<Result<Captured, NotCaptured>> {
        self.state().end_unit()
    }

    /// Begins a unit that ends when it is dropped.
    ///
    /// ```
    /// use gapscope_sdk::{Trigger, capture::CaptureDevice};
    ///
    /// struct Server {
    ///     trigger: Trigger,
    ///     tokens: u64,
    /// }
    ///
    /// impl Server {
    ///     fn step(&mut self, device: &impl CaptureDevice) {
    ///         let _unit = self.trigger.unit(device);
    ///         self.decode();
    ///     }
    ///
    ///     fn decode(&mut self) {
    ///         // … encode and submit …
    ///         self.tokens += 1;
    ///     }
    /// }
    /// ```
    pub fn unit(&self, device: &(impl CaptureDevice + ?Sized)) -> Unit {
        Unit {
            started: self.begin_unit(device),
            state: Some(Arc::clone(&self.state)),
        }
    }

    /// Returns the outcome of the last capture that this trigger tried.
    ///
    /// ```
    /// # use gapscope_sdk::Trigger;
    /// assert_eq!(Trigger::to("x.gapscope").last_outcome(), None);
    /// ```
    pub fn last_outcome(&self) -> Option<Result<Captured, NotCaptured>> {
        self.state().last.clone()
    }
}

impl State {
    /// Ends a unit and returns the outcome of the capture if this was its last unit.
    fn end_unit(&mut self) -> Option<Result<Captured, NotCaptured>> {
        self.depth = self.depth.checked_sub(1)?;
        if self.depth > 0 {
            return None;
        }
        let running = self.running.as_mut()?;
        running.units_left = running.units_left.saturating_sub(1);
        if running.units_left > 0 {
            return None;
        }
        let outcome = running.capture.end();
        self.running = None;
        self.captured += u64::from(outcome.is_ok());
        self.last = Some(outcome.clone());
        Some(outcome)
    }

    /// Returns why the present unit is not captured.
    fn not_this(&self, arm: &Arm) -> NotCaptured {
        if let Err(why) = &self.destination {
            return why.clone();
        }
        match arm.left() {
            0 if self.captured > 0 => NotCaptured::Spent,
            0 => NotCaptured::NotThisUnit {
                unit: self.units,
                schedule: "the trigger is not armed".to_owned(),
            },
            left => NotCaptured::NotThisUnit {
                unit: self.units,
                schedule: format!("unit {} is", self.units.saturating_add(left)),
            },
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A unit of work, which ends when it is dropped.
///
/// ```
/// use gapscope_sdk::capture::Unit;
///
/// fn said(unit: Unit) {
///     if let Err(why) = unit.captured() {
///         println!("{why}");
///     }
/// }
/// ```
#[derive(Debug)]
#[must_use = "the unit ends when this is dropped"]
pub struct Unit {
    /// The state of its trigger; `None` once the unit has ended.
    state: Option<Arc<Mutex<State>>>,
    started: Result<(), NotCaptured>,
}

impl Unit {
    /// Tells whether this unit is being captured.
    ///
    /// # Errors
    /// The reason why it is not captured.
    ///
    /// ```
    /// # fn example(unit: &gapscope_sdk::capture::Unit) {
    /// let is_captured = unit.captured().is_ok();
    /// # }
    /// ```
    pub fn captured(&self) -> Result<(), &NotCaptured> {
        self.started.as_ref().copied()
    }

    /// Ends the unit and returns the outcome of the capture if this was its last unit.
    ///
    /// ```
    /// # fn example(unit: gapscope_sdk::capture::Unit) {
    /// if let Some(Err(why)) = unit.end() {
    ///     eprintln!("not captured: {why}");
    /// }
    /// # }
    /// ```
    pub fn end(mut self) -> Option<Result<Captured, NotCaptured>> {
        self.finish()
    }

    fn finish(&mut self) -> Option<Result<Captured, NotCaptured>> {
        let state = self.state.take()?;
        lock(&state).end_unit()
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Returns the destination of a trigger's `n`-th capture: from the second on, `-n` comes before the extension.
fn numbered(destination: &Destination, n: u64) -> Destination {
    let Destination::File(path) = destination else {
        return destination.clone();
    };
    if n <= 1 {
        return destination.clone();
    }
    let mut name: OsString = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{n}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    Destination::File(path.with_file_name(name))
}
