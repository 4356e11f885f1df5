//! Numbers the names of the functions that were called.

use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::HostCallKind;
use std::collections::HashMap;
use std::sync::Arc;

/// The names of functions, each once.
#[derive(Default)]
pub(super) struct FunctionNames {
    pub(super) names: Vec<Arc<str>>,
    /// By name: the kind of its calls where the trace says [`HostCallKind::OtherCall`].
    kinds_of_other_calls: Vec<HostCallKind>,
    indices: HashMap<Arc<str>, u32>,
    /// The name that was asked for last: neighbouring rows often have the same.
    last: Option<(Arc<str>, u32)>,
}

impl FunctionNames {
    /// Returns the index of a name, or [`NONE`].
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
            self.kinds_of_other_calls
                .push(HostCallKind::OtherCall.of_function(name));
        }
        self.last = Some((name.clone(), index));
        index
    }

    /// Returns the kind of a call of a function, which the trace says is `call`.
    pub(super) fn kind(&self, call: HostCallKind, function: u32) -> HostCallKind {
        match call {
            HostCallKind::OtherCall => {
                (self.kinds_of_other_calls.get(function as usize)).map_or(call, |kind| *kind)
            }
            call => call,
        }
    }
}
