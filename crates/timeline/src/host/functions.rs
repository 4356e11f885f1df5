//! Numbers the names of the called functions, so that segments hold small indices.

use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::HostCallKind;
use gapscope_trace::text_column::TextColumn;
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
}

impl FunctionNames {
    /// Returns the index of a name, which is added to the names where it is new, or [`NONE`] where a row has no name.
    pub(super) fn index(&mut self, name: &Option<Arc<str>>) -> u32 {
        let Some(name) = name else { return NONE };
        let next = self.names.len() as u32;
        let index = *self.indices.entry(name.clone()).or_insert(next);
        if index == next {
            self.names.push(name.clone());
            self.kinds_of_other_calls
                .push(HostCallKind::OtherCall.of_function(name));
        }
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

/// The indices of the names in a column, of which each distinct one is looked up once.
pub(super) struct ColumnFunctions<'a> {
    column: &'a TextColumn<Option<Arc<str>>>,
    /// The index of each distinct name, where a row with it has been found.
    indices: Vec<Option<u32>>,
}

impl<'a> ColumnFunctions<'a> {
    pub(super) fn new(column: &'a TextColumn<Option<Arc<str>>>) -> ColumnFunctions<'a> {
        ColumnFunctions {
            column,
            indices: vec![None; column.distinct().len()],
        }
    }

    /// Finds the index of a row's name, which is added to `names` where it is new.
    pub(super) fn find(&mut self, row: usize, names: &mut FunctionNames) {
        let Some(number) = self.column.number(row) else {
            return;
        };
        self.indices[number as usize].get_or_insert_with(|| names.index(&self.column[row]));
    }

    /// Returns the index that was found for a row's name, or [`NONE`].
    pub(super) fn index(&self, row: usize) -> u32 {
        let number = self.column.number(row);
        let index = number.and_then(|number| self.indices[number as usize]);
        index.unwrap_or(NONE)
    }
}
