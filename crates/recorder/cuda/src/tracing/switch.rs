//! Recording is switched on and off: by the session, by the program, by a label.

use super::flush::flush;
use super::kinds::{self, WORK};
use crate::recorder::Recorder;
use crate::subscription::{self, Subscription};
use crate::{callbacks, instructions, window};
use gapscope_spool::event::LossKind;
use std::sync::{Mutex, PoisonError};

/// What callbacks record, as the others in [`kinds`]: the name, and what the ledger calls it.
static CALLBACKS: [(&str, LossKind); 3] = [
    ("calls", LossKind::HostCalls),
    ("waits", LossKind::Waits),
    ("events", LossKind::EventsOnQueues),
];

/// Whether [`WORK`] and callbacks are on. Held while they are switched.
static ON: Mutex<bool> = Mutex::new(false);

/// The program switches recording on or off. Its flag changes before the lock is let go: until then [`follow_session`] would
/// switch back.
pub fn record(recorder: &Recorder, on: bool) {
    // Without it the lock is not touched: in a forked child nobody might let it go.
    let Some(subscription) = subscription::live() else {
        return recorder.spool().record(on);
    };
    let mut is_on = ON.lock().unwrap_or_else(PoisonError::into_inner);
    switch(recorder, subscription, &mut is_on, on);
    recorder.spool().record(on);
}

/// The session may have switched recording in the control page.
pub fn follow_session(recorder: &Recorder) {
    let Some(subscription) = subscription::live() else {
        return;
    };
    let mut is_on = ON.lock().unwrap_or_else(PoisonError::into_inner);
    switch(recorder, subscription, &mut is_on, recorder.recording());
}

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

/// Recording starts: kernels, transfers and calls are recorded from here on.
fn start_window(recorder: &Recorder, subscription: &'static Subscription) {
    window::start();
    // What was sampled before is not wanted.
    instructions::take(recorder);
    let [calls, waits, events] = CALLBACKS
        .each_ref()
        .map(|(name, loss)| kinds::is_wanted(recorder, name, loss));
    let selection = callbacks::Selection {
        calls,
        waits,
        events,
    };
    // The work before the calls, and off after them, so that no launch lacks its work.
    kinds::enable(recorder, &subscription.cupti, &WORK);
    callbacks::start_window(recorder, subscription, selection);
}

/// Recording ends: from here on a launch costs next to nothing.
fn end_window(recorder: &Recorder, subscription: &Subscription) {
    instructions::take(recorder);
    window::end();
    callbacks::end_window(subscription);
    kinds::disable(&subscription.cupti, &WORK);
    flush(recorder);
}
