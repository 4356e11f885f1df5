//! The subscription to CUPTI, by which it calls this library back; a process has at most one.

use crate::cupti::{Callback, Code, Cupti, Unusable, numbers};
use gapscope_spool::writer::generation;
use std::ffi::c_void;
use std::sync::OnceLock;

/// A CUPTI that this library is subscribed to.
pub struct Subscription {
    pub cupti: Cupti,
    handle: *mut c_void,
    /// The process that subscribed.
    generation: u32,
}

// SAFETY: CUPTI takes the handle from any thread.
unsafe impl Send for Subscription {}
// SAFETY: as above.
unsafe impl Sync for Subscription {}

/// The subscription, once [`subscribe`] was called; `None` in it where CUPTI was not found or refused.
static SUBSCRIPTION: OnceLock<Option<Subscription>> = OnceLock::new();

/// Returns the CUPTI of this process when it is subscribed to.
pub fn cupti() -> Option<&'static Cupti> {
    let subscription = SUBSCRIPTION.get()?.as_ref()?;
    Some(&subscription.cupti)
}

/// Returns the subscription where it may be used: not in a forked child, whose CUPTI has lost its threads.
#[inline]
pub fn live() -> Option<&'static Subscription> {
    let subscription = SUBSCRIPTION.get()?.as_ref()?;
    (subscription.generation == generation()).then_some(subscription)
}

/// Finds CUPTI and subscribes to it, which only one client can. Nothing else of CUPTI is called before.
///
/// # Errors
/// At the first call, the reason why CUPTI cannot be used; at later ones it is not known any more.
pub fn subscribe(callback: Callback) -> Result<&'static Subscription, Unusable> {
    let mut refused = None;
    let subscription = SUBSCRIPTION.get_or_init(|| match Subscription::new(callback) {
        Ok(subscription) => Some(subscription),
        Err(unusable) => {
            refused = Some(unusable);
            None
        }
    });
    subscription.as_ref().ok_or_else(|| {
        refused.unwrap_or_else(|| Unusable {
            reason: "CUPTI cannot be used",
            sentence: "CUPTI cannot be used.".to_owned(),
        })
    })
}

impl Subscription {
    fn new(callback: Callback) -> Result<Subscription, Unusable> {
        let cupti = Cupti::find()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the callback is a function of this library, which is pinned; CUPTI stores the handle.
        let code =
            unsafe { (cupti.functions.subscribe)(&mut handle, callback, std::ptr::null_mut()) };
        if code != 0 {
            let why = if code == numbers::code::MULTIPLE_SUBSCRIBERS {
                "another profiler serves this process; record it without that one"
            } else {
                "its version may not fit the driver's, or the driver sees no GPU; nvidia-smi shows both"
            };
            let answer = cupti.describe(code);
            return Err(Unusable {
                reason: "CUPTI refused the subscription",
                sentence: format!("CUPTI refused the subscription ({answer}): {why}."),
            });
        }
        Ok(Subscription {
            cupti,
            handle,
            generation: generation(),
        })
    }

    /// Switches the callback of a call on or off.
    pub fn switch_callback(&self, domain: u32, call: u32, on: bool) -> Code {
        // SAFETY: CUPTI's function with its handle and one of its calls.
        unsafe { (self.cupti.functions.enable_callback)(on.into(), self.handle, domain, call) }
    }
}
