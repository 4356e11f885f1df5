//! The target for rows and a manifest with any values: an input is a trace as text, which is analysed and shown.

use crate::Target;
use crate::bytes::{self, MutateBytes};
use crate::outcome::{self, Choice};
use fastrand::Rng;
use gapscope_trace::Trace;

/// The target.
pub const TARGET: Target = Target {
    name: "rows",
    read,
    mutate,
};

/// Shows the trace where the input is one in the text form.
fn read(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(trace) = Trace::from_text(text)
    {
        outcome::show(&trace, &[], Choice::from_input(input));
    }
}

fn mutate(input: &mut Vec<u8>, rng: &mut Rng, mutate_bytes: MutateBytes<'_>) {
    match rng.u8(0..8) {
        0 => mutate_bytes(input, rng),
        1..4 => bytes::change_lines(input, rng),
        _ => bytes::change_value(input, rng),
    }
}
