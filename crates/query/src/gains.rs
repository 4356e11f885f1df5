//! Computes the table `gains`: what changes to the program would bring, by the same replays as `gapscope report`.

use crate::computed::ComputedDefinition;
use crate::library::Library;
use crate::schema::own_columns;
use crate::source::Source;
use datafusion::arrow::array::{ArrayRef, Float64Array, StringViewArray, UInt64Array};
use datafusion::arrow::datatypes::DataType;
use gapscope_analysis::gaps::AdviceSubject;
use gapscope_analysis::what_if::gains::PredictedGain;
use gapscope_analysis::{Findings, Options};
use std::sync::Arc;

/// Defines the table.
pub(crate) fn table() -> ComputedDefinition {
    ComputedDefinition {
        name: "gains",
        meaning: "What would help most: changes to the program, by replays of the recorded run. Computed when asked for.",
        columns: own_columns! {
            place: UInt64, "Place in the ranking, from 1 on: the greatest gain first.";
            change: Utf8View, "The change, as `gapscope what-if --set` takes it.";
            cause: Utf8View, "The cause of idle time, or the kind of work, whose advice the change follows; null for kernels and places in the code.";
            low: Float64, "The least share of the time that it would save.";
            mid: Float64, "The share with everything as the trace has it.";
            high: Float64, "The greatest share.";
        },
        rows: |library, source| arrays(&read_gains(library, source)),
    }
}

/// Ranks the changes to the program of a trace. Problems are reported as remarks, and the trace then has no rows.
fn read_gains(library: &Library, source: &Source) -> Vec<PredictedGain> {
    library.compute(source, &Findings::selection(), "gains", |trace| {
        let gains = Findings::new(trace, &Options::default()).gains;
        if let Some(unknown) = gains.unknown_because().filter(|_| gains.gains.is_empty()) {
            library.remark(format!(
                "{}: no gain is known. {}",
                source.name, unknown.because
            ));
        }
        gains.gains
    })
}

/// Returns the columns in the order in which [`table`] lists them.
fn arrays(gains: &[PredictedGain]) -> Vec<ArrayRef> {
    let shares = |share: fn(&PredictedGain) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(gains.iter().map(share)))
    };
    let changes = gains.iter().map(|gain| &gain.change);
    let causes = gains.iter().map(|gain| match gain.cause? {
        AdviceSubject::Idle(cause) => Some(cause.as_str()),
        AdviceSubject::Work(what) => Some(what),
    });
    vec![
        Arc::new(UInt64Array::from_iter_values(1..=gains.len() as u64)),
        Arc::new(StringViewArray::from_iter_values(changes)),
        Arc::new(StringViewArray::from_iter(causes)),
        shares(|gain| gain.low),
        shares(|gain| gain.mid),
        shares(|gain| gain.high),
    ]
}
