//! Recording is switched on and off: by the session, by the program, by a label.

use super::flush::flush;
use super::kinds::{self, WORK};
use crate::recorder::Recorder;
use crate::{callbacks, subscription, window};
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

/// Recording starts: kernels, transfers and calls are recorded from here on.
pub fn start_window(recorder: &Recorder) {
    let Some(subscription) = subscription::live() else {
        return;
    };
    let mut on = ON.lock().unwrap_or_else(PoisonError::into_inner);
    if std::mem::replace(&mut *on, true) {
        return;
    }
    window::start();
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
pub fn end_window(recorder: &Recorder) {
    let Some(subscription) = subscription::live() else {
        return;
    };
    let mut on = ON.lock().unwrap_or_else(PoisonError::into_inner);
    if !std::mem::replace(&mut *on, false) {
        return;
    }
    window::end();
    callbacks::end_window(subscription);
    kinds::disable(&subscription.cupti, &WORK);
    flush(recorder);
}

/// The session may have switched recording in the control page.
pub fn follow_session(recorder: &Recorder) {
    let on = *ON.lock().unwrap_or_else(PoisonError::into_inner);
    match (on, recorder.recording()) {
        (false, true) => start_window(recorder),
        (true, false) => end_window(recorder),
        _ => {}
    }
}
