//! Times the work of a device: writes timestamp queries around commands, gets their results from the driver, and
//! samples the clocks.

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
