//! Labels from the spans of the crate `tracing`: [`Labels`] stands around the program's subscriber and labels what each
//! thread does inside of a span by the span's name.
//!
//! ```
//! use gapscope_sdk::tracing::Labels;
//!
//! fn install(subscriber: impl tracing_core::Subscriber + Send + Sync) {
//!     // With tracing-subscriber: `Labels::around(tracing_subscriber::registry().with(…))`.
//!     let dispatch = tracing_core::Dispatch::new(Labels::around(subscriber));
//!     let _ = tracing_core::dispatcher::set_global_default(dispatch);
//! }
//! ```
//!
//! Spans that the subscriber filters out are no labels. Outside of a recording an entered span costs what the subscriber
//! takes, and a nanosecond.

use crate::label::{self, Label};
use rustc_hash::FxHashMap;
use std::any::TypeId;
use std::cell::RefCell;
use std::sync::{PoisonError, RwLock};
use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::{Dispatch, Event, Interest, LevelFilter, Metadata, Subscriber};

/// A subscriber that labels spans, and passes everything on to another subscriber. [The module](self) shows its use.
#[derive(Debug, Default)]
pub struct Labels<S> {
    subscriber: S,
    /// The names of the spans that exist, by id, in a recording.
    names: RwLock<FxHashMap<u64, &'static str>>,
}

thread_local! {
    /// The labels of the spans that the thread is in, by id.
    static ENTERED: RefCell<Vec<(u64, Label)>> = const { RefCell::new(Vec::new()) };
}

impl<S: Subscriber> Labels<S> {
    /// Labels the spans of a subscriber.
    ///
    /// ```
    /// use gapscope_sdk::tracing::Labels;
    ///
    /// let labels = Labels::around(tracing_core::subscriber::NoSubscriber::new());
    /// ```
    pub fn around(subscriber: S) -> Labels<S> {
        Labels {
            subscriber,
            names: RwLock::default(),
        }
    }

    fn name(&self, id: &Id) -> Option<&'static str> {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        names.get(&id.into_u64()).copied()
    }
}

impl<S: Subscriber> Subscriber for Labels<S> {
    fn on_register_dispatch(&self, subscriber: &Dispatch) {
        self.subscriber.on_register_dispatch(subscriber);
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.subscriber.register_callsite(metadata)
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.subscriber.enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.subscriber.max_level_hint()
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.subscriber.new_span(span);
        if label::is_recorded() {
            let names = self.names.write();
            let mut names = names.unwrap_or_else(PoisonError::into_inner);
            names.insert(id.into_u64(), span.metadata().name());
        }
        id
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.subscriber.record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.subscriber.record_follows_from(span, follows);
    }

    fn event_enabled(&self, event: &Event<'_>) -> bool {
        self.subscriber.event_enabled(event)
    }

    fn event(&self, event: &Event<'_>) {
        self.subscriber.event(event);
    }

    fn enter(&self, span: &Id) {
        self.subscriber.enter(span);
        if label::is_recorded()
            && let Some(name) = self.name(span)
        {
            let entered = (span.into_u64(), label::label(name));
            // A thread that is ending may no longer have its labels.
            let _ = ENTERED.try_with(|labels| labels.borrow_mut().push(entered));
        }
    }

    fn exit(&self, span: &Id) {
        if label::is_recorded() {
            let left = ENTERED.try_with(|labels| {
                let mut labels = labels.borrow_mut();
                let place = labels.iter().rposition(|(id, _)| *id == span.into_u64());
                place.map(|place| labels.remove(place))
            });
            drop(left);
        }
        self.subscriber.exit(span);
    }

    fn clone_span(&self, id: &Id) -> Id {
        let cloned = self.subscriber.clone_span(id);
        if cloned != *id
            && let Some(name) = self.name(id)
        {
            let names = self.names.write();
            let mut names = names.unwrap_or_else(PoisonError::into_inner);
            names.insert(cloned.into_u64(), name);
        }
        cloned
    }

    fn try_close(&self, id: Id) -> bool {
        let number = id.into_u64();
        let is_closed = self.subscriber.try_close(id);
        if is_closed && label::is_recorded() {
            let names = self.names.write();
            let mut names = names.unwrap_or_else(PoisonError::into_inner);
            names.remove(&number);
        }
        is_closed
    }

    fn current_span(&self) -> Current {
        self.subscriber.current_span()
    }

    unsafe fn downcast_raw(&self, id: TypeId) -> Option<*const ()> {
        if id == TypeId::of::<Self>() {
            return Some(std::ptr::from_ref(self).cast());
        }
        // SAFETY: the subscriber answers for its own types.
        unsafe { self.subscriber.downcast_raw(id) }
    }
}
