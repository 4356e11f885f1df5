//! Names of the functions that were called.

use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::HostCallKind;
use std::collections::HashMap;
use std::sync::Arc;

/// Names of functions, each once.
#[derive(Default)]
pub(super) struct Functions {
    pub(super) names: Vec<Arc<str>>,
    /// The kind of each one's calls where the trace says [`HostCallKind::OtherCall`].
    others: Vec<HostCallKind>,
    indices: HashMap<Arc<str>, u32>,
    /// The one that was asked for last: neighbours are often the same.
    last: Option<(Arc<str>, u32)>,
}

impl Functions {
    /// Index of a name, or [`NONE`].
    pub(super) fn index(&mut self, name: &Option<Arc<str>>) -> u32 {
        let Some(name) = name else { return NONE };
        if let Some((last, index)) = &self.last
            && Arc::ptr_eq(last, name)
        {
            return *index;
        }
        let next = self.names.len() as u32;
        let index = *self.indices.entry(name.clone()).or_insert(next);
        if index == next {
            self.names.push(name.clone());
            self.others.push(HostCallKind::OtherCall.of_function(name));
        }
        self.last = Some((name.clone(), index));
        index
    }

    /// What a call of the function with this index is, which the trace says is `call`.
    pub(super) fn kind(&self, call: HostCallKind, function: u32) -> HostCallKind {
        match call {
            HostCallKind::OtherCall => {
                (self.others.get(function as usize)).map_or(call, |kind| *kind)
            }
            call => call,
        }
    }
}
