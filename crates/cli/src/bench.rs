//! `gapscope bench`: measures the peak rates of devices and keeps them, or lists the kept measurements.

use crate::args::{Bench, BenchDevice, BenchTask};
use crate::failure::Failure;
use crate::{exit, page};
use gapscope_replay::DeviceChoice;
use gapscope_report::document::{Block, Document, Text};
use gapscope_trace::measured::{MeasuredDevice, Store};
use schemars::JsonSchema;
use serde::Serialize;
use std::process::ExitCode;

/// Measures devices, or lists the kept measurements.
pub fn run(arguments: &Bench) -> Result<ExitCode, Failure> {
    let BenchTask::Device(arguments) = &arguments.task;
    match arguments.list {
        true => list(arguments),
        false => measure(arguments),
    }
}

/// The measured peaks of devices.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Measured {
    /// The devices: with `--list` those that are kept, else those that were measured. A physical device is listed
    /// once for each interface.
    devices: Vec<MeasuredDevice>,
    /// Sentences about devices that could not be measured and files that cannot be read.
    failed: Vec<String>,
}

/// Measures the chosen devices, prints what was found, and keeps it unless the measuring was quick.
fn measure(arguments: &BenchDevice) -> Result<ExitCode, Failure> {
    let choice = arguments.device.as_deref().map(DeviceChoice::from_text);
    let found = gapscope_device_peaks::measure(choice.as_ref(), arguments.quick, &|what| {
        page::note(format!("measuring {what}"));
    });
    if found.devices.is_empty() && found.failed.is_empty() {
        return Err(match &arguments.device {
            Some(asked) if !found.listed.is_empty() => {
                let there = found.listed.iter().enumerate();
                let there: Vec<String> = there.map(|(n, name)| format!("{n}: {name}")).collect();
                failure!("no device is `{asked}`; there are {}", there.join(", "))
            }
            _ => failure!(
                "there is no device to measure ({})",
                found.absent.join("; ")
            ),
        });
    }
    if !arguments.quick {
        keep(&found.devices)?;
    }
    for absent in &found.absent {
        page::note(format!("not measured: {absent}"));
    }
    for failed in &found.failed {
        page::note(failed);
    }
    let status = exit::passed(found.failed.is_empty());
    let measured = Measured {
        devices: found.devices,
        failed: found.failed,
    };
    show(arguments, "Devices", "", &measured)?;
    Ok(status)
}

/// Writes each device's figures into the user's folder, and says where.
fn keep(devices: &[MeasuredDevice]) -> Result<(), Failure> {
    let store = Store::for_user().ok_or_else(no_folder)?;
    for device in devices {
        let path = store.save(device).map_err(|error| {
            let folder = store.folder().display();
            failure!("what was measured cannot be kept in {folder}: {error}")
        })?;
        page::note(format!("kept in {}", path.display()));
    }
    Ok(())
}

/// Returns the failure that there is no place to keep measurements.
fn no_folder() -> Failure {
    Failure::new("there is no folder to keep it in: neither XDG_DATA_HOME nor HOME is set")
}

/// Prints the kept measurements; files that cannot be read are named on stderr and make the status a failure.
fn list(arguments: &BenchDevice) -> Result<ExitCode, Failure> {
    let store = Store::for_user().ok_or_else(no_folder)?;
    let listed = store.list();
    for damaged in &listed.damaged {
        page::note(damaged);
    }
    let folder = store.folder().display().to_string();
    let measured = Measured {
        devices: listed.devices.into_iter().map(|(_, kept)| kept).collect(),
        failed: listed.damaged,
    };
    if measured.devices.is_empty() && !arguments.json {
        page::note(format!("nothing is kept in {folder}"));
    } else {
        show(arguments, "Kept", &folder, &measured)?;
    }
    Ok(exit::passed(measured.failed.is_empty()))
}

/// Prints figures as JSON, or as text under a heading, with `about` behind it.
fn show(
    arguments: &BenchDevice,
    heading: &str,
    about: &str,
    measured: &Measured,
) -> Result<(), Failure> {
    if arguments.json {
        return page::write_json(measured);
    }
    let mut blocks = vec![Block::Heading(heading.into(), about.to_owned())];
    for device in &measured.devices {
        let about = format!(" through {}, driver {}", device.api, device.limits.driver);
        blocks.push(Block::Item(Text::new().strong(&device.name).and(&about)));
        blocks.extend(
            lines(device)
                .into_iter()
                .map(|line| Block::Item(Text::new().and(&line))),
        );
        let notes = device.notes.iter();
        blocks.extend(notes.map(|note| Block::Item(Text::new().and(note))));
    }
    page::write(&page::stdout_terminal(&arguments.width).draw(&Document { blocks }))
}

/// Returns a line of text for each figure of a device; ± is half of the spread between repetitions.
fn lines(device: &MeasuredDevice) -> Vec<String> {
    let limits = &device.limits;
    let rate = |value: u64| format!("{:.1} GB/s", value as f64 / 1e9);
    let flops = |value: u64| match value as f64 {
        value if value < 1e12 => format!("{:.1} GFLOP/s", value / 1e9),
        value => format!("{:.1} TFLOP/s", value / 1e12),
    };
    let us = |ns: u64| format!("{:.2} us", ns as f64 / 1e3);
    let fixed = |name, key: &str, value| (name, key.to_owned(), value);
    let bandwidths = [
        ("copy", "copy_bytes_per_s", limits.copy_bytes_per_s),
        ("read", "read_bytes_per_s", limits.read_bytes_per_s),
        ("write", "write_bytes_per_s", limits.write_bytes_per_s),
        (
            "copy from the host",
            "host_read_bytes_per_s",
            limits.host_read_bytes_per_s,
        ),
        (
            "copy to the host",
            "host_write_bytes_per_s",
            limits.host_write_bytes_per_s,
        ),
        (
            "NVLink, received",
            "nvlink_received_bytes_per_s",
            limits.nvlink_received_bytes_per_s,
        ),
        (
            "NVLink, sent",
            "nvlink_sent_bytes_per_s",
            limits.nvlink_sent_bytes_per_s,
        ),
        (
            "NVLink, both ways",
            "nvlink_both_bytes_per_s",
            limits.nvlink_both_bytes_per_s,
        ),
    ];
    let mut figures: Vec<_> = bandwidths
        .map(|(name, key, value)| fixed(name, key, value.map(rate)))
        .into();
    figures.push(fixed(
        "multiply-adds, f32",
        "fma_f32_flops",
        limits.fma_f32_flops.map(flops),
    ));
    for (inputs, value) in &limits.matrix_flops {
        let key = format!("matrix_flops.{inputs}");
        figures.push((inputs, key, Some(flops(*value))));
    }
    let [interval, latency] = [limits.launch_interval_ns, limits.launch_latency_ns];
    figures.push(fixed(
        "launch interval",
        "launch_interval_ns",
        interval.map(us),
    ));
    figures.push(fixed(
        "launch latency",
        "launch_latency_ns",
        latency.map(us),
    ));
    let line = |(name, key, value): (&str, String, Option<String>)| {
        let value = value.unwrap_or_else(|| "unknown".to_owned());
        let spread = device.spread.get(&key);
        let spread = spread.map_or(String::new(), |share| format!(" ± {:.1} %", 50.0 * share));
        let source = device.source.get(&key);
        let source = source.map_or(String::new(), |source| format!(" ({source})"));
        let matrices = if key.starts_with("matrix") {
            "matrices, "
        } else {
            ""
        };
        format!("{matrices}{name}: {value}{spread}{source}")
    };
    figures.into_iter().map(line).collect()
}
