//! Switches recording on and off in this process, when the session (gapscope's process that writes the trace), the
//! program or a label asks for it.

use super::flush::flush;
use super::kinds::{self, WORK};
use crate::recorder::Recorder;
use crate::subscription::{self, Subscription};
use crate::{callbacks, instructions, window};
use gapscope_spool::event::LossKind;
use std::sync::{Mutex, PoisonError};

/// The records that callbacks make, in pairs of name in the environment and kind of loss.
static CALLBACKS: [(&str, LossKind); 3] = [
    ("calls", LossKind::HostCalls),
    ("waits", LossKind::Waits),
    ("events", LossKind::EventsOnQueues),
];

/// Whether [`WORK`] and callbacks are on. The lock is held while they are switched.
static ON: Mutex<bool> = Mutex::new(false);

/// Switches recording for the program. The program's flag changes before the lock is released; otherwise
/// [`follow_session`] might switch back.
pub fn record(recorder: &Recorder, on: bool) {
    // Without a subscription the lock is not touched: in a forked child it might never be released.
    let Some(subscription) = subscription::live() else {
        return recorder.spool().record(on);
    };
    let mut is_on = ON.lock().unwrap_or_else(PoisonError::into_inner);
    switch(recorder, subscription, &mut is_on, on);
    recorder.spool().record(on);
}

/// Follows the session, which may have switched recording in the control page.
pub fn follow_session(recorder: &Recorder) {
    let Some(subscription) = subscription::live() else {
        return;
    };
    let mut is_on = ON.lock().unwrap_or_else(PoisonError::into_inner);
    switch(recorder, subscription, &mut is_on, recorder.recording());
}

/// Starts or ends a window (a time that is recorded), unless `is_on` says that `on` holds already.
fn switch(recorder: &Recorder, subscription: &'static Subscription, is_on: &mut bool, on: bool) {
    if std::mem::replace(is_on, on) == on {
        return;
    }
    if on {
        start_window(recorder, subscription);
    } else {
        end_window(recorder, subscription);
    }
}

/// Starts recording kernels, transfers and calls.
fn start_window(recorder: &Recorder, subscription: &'static Subscription) {
    window::start();
    // Samples from before the window are thrown away.
    instructions::take(recorder);
    let [calls, waits, events] = CALLBACKS
        .each_ref()
        .map(|(name, loss)| kinds::is_wanted(recorder, name, loss));
    let selection = callbacks::CallSelection {
        calls,
        waits,
        events,
    };
    // Work is switched on before calls, and off after them, so that no launch lacks its work.
    kinds::enable(recorder, &subscription.cupti, &WORK);
    callbacks::start_window(recorder, subscription, selection);
}

/// Ends recording; from here on a launch costs next to nothing.
fn end_window(recorder: &Recorder, subscription: &Subscription) {
    instructions::take(recorder);
    window::end();
    callbacks::end_window(subscription);
    kinds::disable(&subscription.cupti, &WORK);
    flush(recorder);
}
