//! Prints the contents of a spool (the folder into which a recorded program's processes write events), an event on a
//! line with its thread first: `cargo run -p gapscope-spool --example dump -- SPOOL`.

use gapscope_spool::SpoolReader;
use gapscope_spool::event::{Command, CommonEvent, Event, VulkanEvent};
use gapscope_spool::reader::DrainUntil;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::env::args_os().nth(1).ok_or("usage: dump SPOOL")?;
    for mut process in SpoolReader::open(root).new_processes()? {
        println!("process {}", process.pid());
        process.drain(DrainUntil::End, |thread, event| match event {
            Event::Vulkan(VulkanEvent::Commands {
                recording,
                commands,
            }) => {
                for command in Command::all(commands) {
                    println!(
                        "{}   recording {}: {:?} {command:?}",
                        thread.0,
                        recording.0,
                        command.op()
                    );
                }
            }
            Event::Common(CommonEvent::Source { hash, bytes, .. }) => {
                println!("{} source {hash:02x?}: {} bytes", thread.0, bytes.len())
            }
            Event::Vulkan(VulkanEvent::Timestamps {
                instance,
                recording,
                first_query,
                ticks,
            }) => {
                let ticks: Vec<u64> = ticks
                    .chunks_exact(8)
                    .map(|t| u64::from_le_bytes(t.try_into().unwrap_or_default()))
                    .collect();
                println!(
                    "{} timestamps of {} (recording {}) from {first_query}: {ticks:?}",
                    thread.0, instance.0, recording.0
                );
            }
            event => println!("{} {event:?}", thread.0),
        })?;
        println!("{:?}", process.damage());
    }
    Ok(())
}
