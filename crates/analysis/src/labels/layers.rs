//! Who set a label: the program, or gapscope for it.

use gapscope_trace::Trace;
use gapscope_trace::ids::LabelId;
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::tables::{MODULE_DOMAIN, OPERATOR_DOMAIN};
use std::collections::HashSet;

/// Labels that gapscope has set in a program that sets none: rows of the table of labels.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    /// Empty where there is none.
    rows: Vec<Option<Layer>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    Module,
    Operator,
}

impl Layers {
    pub(crate) fn of(trace: &Trace, ids: &IdIndex<LabelId>) -> Layers {
        let (labels, markers) = (&trace.tables.labels, &trace.tables.markers);
        let mut rows = Vec::new();
        let mut texts: HashSet<&str> = HashSet::new();
        // What has a marker of its own is what that says.
        let mut set = Vec::new();
        for (label, domain) in markers.label.iter().zip(&markers.domain) {
            let layer = match domain.as_deref() {
                Some(MODULE_DOMAIN) => Some(Layer::Module),
                Some(OPERATOR_DOMAIN) => Some(Layer::Operator),
                _ => None,
            };
            let Some(row) = ids.get(*label) else { continue };
            if layer.is_some() && rows.is_empty() {
                rows = vec![None; labels.id.len()];
                set = vec![false; labels.id.len()];
            }
            if let Some(known) = rows.get_mut(row) {
                *known = layer;
                set[row] = true;
                if layer == Some(Layer::Operator) {
                    texts.insert(&labels.text[row]);
                }
            }
        }
        // Backward, operators begin before the module that they are inside of: there they have no marker.
        for ((known, set), text) in rows.iter_mut().zip(set).zip(&labels.text) {
            if !set && texts.contains(&**text) {
                *known = Some(Layer::Operator);
            }
        }
        Layers { rows }
    }

    /// True when there is no such label.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// True for the path of a module.
    pub(crate) fn is_module(&self, row: usize) -> bool {
        self.rows.get(row) == Some(&Some(Layer::Module))
    }

    /// True for the name of an operator.
    pub(crate) fn is_operator(&self, row: usize) -> bool {
        self.rows.get(row) == Some(&Some(Layer::Operator))
    }
}
