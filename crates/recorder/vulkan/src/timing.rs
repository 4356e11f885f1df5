//! Times the work of a device: writes timestamp queries around commands, gets their results from the driver, and
//! samples the clocks. The modules' order is that of a timestamp's life: `queries` lends queries in chunks,
//! `query_writer` writes them while commands are recorded, `command_recording` keeps them, and `harvester` waits for
//! and writes their results.

pub mod barriers;
pub mod brackets;
pub mod chunk;
pub mod clock;
pub mod command_recording;
pub mod counting;
pub mod harvester;
pub mod overhead_budget;
pub mod pending;
pub mod queries;
pub mod query_writer;
pub mod result_buffer;
