//! Decides when a window (the captured part of the run) is open, and writes the submissions of the window as a
//! capture. `control` counts submissions and opens windows; `open_window` writes each submission with the help of the
//! others: `resolve` turns its commands into records, `staging` reads the GPU's memory, `memory` writes that.

mod bound_state;
mod control;
mod intervals;
mod known_content;
mod labels;
mod memory;
mod object_ids;
mod open_window;
mod quiet_writes;
mod rerecord;
mod resolve;
mod split_submission;
mod staging;
mod submit_call;

pub use control::{WindowControl, control, unless_over};
pub use labels::Labels;
pub use submit_call::SubmitCall;
