//! Prints what a spool folder holds: `cargo run -p gapscope-spool --example dump -- SPOOL`.

use gapscope_spool::SpoolReader;
use gapscope_spool::event::{Command, Event};
use gapscope_spool::reader::Until;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::env::args_os().nth(1).ok_or("usage: dump SPOOL")?;
    for mut process in SpoolReader::open(root).new_processes()? {
        println!("process {}", process.pid());
        process.drain(Until::End, |thread, event| match event {
            Event::Commands { recording, commands } => {
                for command in Command::all(commands) {
                    println!("{thread}   recording {recording}: {:?} {command:?}", command.op());
                }
            }
            Event::Source { hash, bytes, .. } => println!("{thread} source {hash:02x?}: {} bytes", bytes.len()),
            Event::Timestamps { instance, recording, first_query, ticks } => {
                let ticks: Vec<u64> = ticks.chunks_exact(8).map(|t| u64::from_le_bytes(t.try_into().unwrap_or_default())).collect();
                println!("{thread} timestamps of {instance} (recording {recording}) from {first_query}: {ticks:?}");
            }
            event => println!("{thread} {event:?}"),
        })?;
        println!("{:?}", process.damage());
    }
    Ok(())
}
