//! Numbers the names of the called functions, so that segments hold small indices.

use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::HostCallKind;
use std::collections::HashMap;
use std::sync::Arc;

/// The names of functions, each held once.
#[derive(Default)]
pub(super) struct FunctionNames {
    /// The names by index, in the order in which rows first had them.
    pub(super) names: Vec<Arc<str>>,
    /// The kind of calls of each name's function where the trace says [`HostCallKind::OtherCall`].
    kinds_of_other_calls: Vec<HostCallKind>,
    /// The index of each name in `names`.
    indices: HashMap<Arc<str>, u32>,
    /// The name that was looked up last, with its index: neighbouring rows often have the same name.
    last: Option<(Arc<str>, u32)>,
}

impl FunctionNames {
    /// Returns the index of a name, which is added to the names where it is new, or [`NONE`] where a row has no name.
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

    /// Returns the kind of a call for which the trace says `call`. Only [`HostCallKind::OtherCall`] is made more
    /// exact, by the name of the function with the index `function`.
    pub(super) fn kind(&self, call: HostCallKind, function: u32) -> HostCallKind {
        match call {
            HostCallKind::OtherCall => {
                (self.kinds_of_other_calls.get(function as usize)).map_or(call, |kind| *kind)
            }
            call => call,
        }
    }
}
