//! Labels from the spans of the crate `tracing`: [`Labels`] is a layer of `tracing-subscriber`, which labels what each
//! thread does inside of a span by the span's name.
//!
//! ```
//! use gapscope_sdk::label::is_recorded;
//! use gapscope_sdk::tracing::Labels;
//! use tracing_subscriber::layer::SubscriberExt;
//! use tracing_subscriber::util::SubscriberInitExt;
//!
//! // With the program's own layers: `.with(tracing_subscriber::fmt::layer())`. Outside of a recording there is no layer.
//! tracing_subscriber::registry()
//!     .with(is_recorded().then(Labels::new))
//!     .init();
//!
//! let step = tracing::info_span!("step");
//! step.in_scope(|| { /* what is submitted here has the label `step` */ });
//! ```
//!
//! The layer labels all spans that the other layers' filters leave, and has no filter of its own: one is added as to any
//! layer (`Labels::new().with_filter(…)`).

use crate::label::{self, Label};
use std::cell::RefCell;
use tracing_core::Subscriber;
use tracing_core::span::Id;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// A layer that labels spans. [The module](self) shows its use.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Labels;

thread_local! {
    /// The labels of the spans that the thread is in, by the spans' ids.
    static ENTERED: RefCell<Vec<(Id, Label)>> = const { RefCell::new(Vec::new()) };
}

impl Labels {
    /// Creates the layer.
    ///
    /// ```
    /// use gapscope_sdk::tracing::Labels;
    /// use tracing_subscriber::layer::SubscriberExt;
    ///
    /// let subscriber = tracing_subscriber::registry().with(Labels::new());
    /// ```
    pub fn new() -> Labels {
        Labels
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Labels {
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if label::is_recorded()
            && let Some(span) = context.span(id)
        {
            let entered = (id.clone(), label::label(span.name()));
            // A thread that is ending may no longer have its labels.
            let _ = ENTERED.try_with(|labels| labels.borrow_mut().push(entered));
        }
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        if label::is_recorded() {
            let left = ENTERED.try_with(|labels| {
                let mut labels = labels.borrow_mut();
                let place = labels.iter().rposition(|(entered, _)| entered == id);
                place.map(|place| labels.remove(place))
            });
            drop(left);
        }
    }
}
