//! Tests `gapscope bench device`: its figures, which are known on the stub of CUDA and bounded on the software GPU,
//! the file in which it keeps them, and their use by recordings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::cuda::Stub;
use crate::driver::{Driver, Lavapipe};
use crate::product;
use crate::recording::{Recording, Run, assert_contains, planted};
use crate::schema::Answers;

const KERNEL_NS: f64 = 100_000.0;

/// Runs the command with `home` as the folder for kept figures.
fn bench(home: &Path, drivers: &[&dyn Driver], options: &[&str]) -> Run {
    let mut command = Command::new(product::built("gapscope"));
    command
        .args(["bench", "device"])
        .args(options)
        .env("XDG_DATA_HOME", home)
        .env_remove("CUDA_INJECTION64_PATH");
    for driver in drivers {
        command.envs(driver.variables());
    }
    Run::from_command(&mut command)
}

/// Returns the answer of the command in JSON.
fn measured(home: &Path, drivers: &[&dyn Driver], options: &[&str]) -> Value {
    let run = bench(home, drivers, &[options, &["--json"]].concat()).ok();
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stdout))
}

/// Returns a stub of CUDA on which each kernel takes [`KERNEL_NS`].
fn stub(version: &str) -> Stub {
    Stub::new(&[("KERNEL_NS", "100000"), ("DRIVER_VERSION", version)])
}

fn close(got: &Value, wanted: f64) {
    let got = got.as_f64().unwrap_or(0.0);
    assert!((got / wanted - 1.0).abs() < 1e-3, "{got} is not {wanted}");
}

fn kept_file(home: &Path) -> PathBuf {
    let folder = home.join("gapscope/devices");
    let mut files = fs::read_dir(folder).expect("the folder");
    files.next().expect("a file").expect("a file").path()
}

/// Returns the limits of the first device in the trace of a recording, and the trace's notes.
fn limits(recording: &Recording) -> (Option<Value>, String) {
    let manifest = recording.trace().manifest;
    let limits = manifest.devices[0].limits.as_ref();
    let measured = limits.and_then(|limits| limits.measured.as_ref());
    let measured = measured.map(|of| serde_json::to_value(of).expect("JSON"));
    (measured, manifest.notes.join("\n"))
}

#[test]
fn figures_of_a_device_of_cuda_are_what_its_events_say() {
    let home = tempfile::tempdir().expect("a folder");
    let answer = measured(home.path(), &[&stub("13000")], &["--device", "0"]);
    let device = &answer["devices"][0];
    let words = ["name", "api", "driver"].map(|key| device[key].as_str().unwrap_or_default());
    assert_eq!(words, ["Fake GPU", "cuda", "CUDA 13.0"]);
    // There are 132 multiprocessors of 8 workgroups of 256; the buffers take an eighth of the 16 GiB that are free,
    // in rounds of four vectors.
    let invocations = 132.0 * 8.0 * 256.0;
    let bytes = (2_147_483_648.0 / (invocations * 64.0_f64)).floor() * invocations * 64.0;
    let per_second = 1e9 / KERNEL_NS;
    // The stub takes twice as long for a copy by the driver's function.
    close(&device["copy_bytes_per_s"], 2.0 * bytes * per_second);
    close(&device["read_bytes_per_s"], bytes * per_second);
    close(&device["write_bytes_per_s"], bytes * per_second);
    // Copies of the stub between host and device take a time of their own.
    for key in ["host_read_bytes_per_s", "host_write_bytes_per_s"] {
        assert!(device[key].as_u64() > Some(0), "{key}: {device}");
    }
    // NVLink joins a device with no other where there is none.
    assert_eq!(device["nvlink_both_bytes_per_s"], Value::Null);
    let multiply_adds = invocations * 1024.0 * 256.0;
    close(&device["fma_f32_flops"], 2.0 * multiply_adds * per_second);
    // A busy machine may hand over a launch late.
    let interval_ns = device["launch_interval_ns"].as_f64().unwrap_or(0.0);
    assert!(
        (KERNEL_NS..1.05 * KERNEL_NS).contains(&interval_ns),
        "{interval_ns}"
    );
    // Calls of the stub return at once.
    let latency_ns = device["launch_latency_ns"].as_f64();
    assert!(latency_ns > Some(0.0) && latency_ns < Some(1e6), "{device}");
    assert_eq!(device["source"]["copy_bytes_per_s"], "a kernel");
    let rates = device["matrix_flops"].as_object();
    assert!(
        rates.is_none_or(|rates| rates.is_empty()),
        "the stub is no cuBLAS: {device}"
    );
    let notes = device["notes"].to_string();
    assert_contains(&notes, "The rate of matrix units is unknown");

    let mut answers = Answers::default();
    answers.add("bench-device", "bench device --json", &answer);
    let listed = measured(home.path(), &[], &["--list"]);
    assert_eq!(listed["devices"], answer["devices"]);
    answers.add("bench-device", "bench device --list --json", &listed);
    answers.hold();
}

#[test]
fn nvlink_is_measured_by_copies_with_all_other_devices() {
    let home = tempfile::tempdir().expect("a folder");
    let stub = Stub::new(&[("KERNEL_NS", "100000"), ("DEVICES", "3")]);
    let answer = measured(home.path(), &[&stub], &["--device", "0"]);
    let device = &answer["devices"][0];
    for key in ["received", "sent", "both"] {
        let key = format!("nvlink_{key}_bytes_per_s");
        assert!(device[&key].as_u64() > Some(0), "{key}: {device}");
        let by = "cuMemcpyPeerAsync, 2 other devices at once";
        assert_eq!(device["source"][&key], by);
    }
}

#[test]
fn a_recording_has_what_is_kept_for_its_driver_and_no_other() {
    let home = tempfile::tempdir().expect("a folder");
    let answer = measured(home.path(), &[&stub("13000")], &["--device", "0"]);
    let recorded = |version: &str| {
        let stub = stub(version);
        let program = stub.program("launch:3 sync");
        let recording = program.variable("XDG_DATA_HOME", home.path()).recorded();
        limits(&recording)
    };
    let (measured, notes) = recorded("13000");
    let measured = measured.expect("what is kept");
    for key in [
        "copy_bytes_per_s",
        "fma_f32_flops",
        "launch_interval_ns",
        "driver",
    ] {
        assert_eq!(measured[key], answer["devices"][0][key], "{key}");
    }
    assert!(!notes.contains("was measured to do"), "{notes}");

    let (other, notes) = recorded("13010");
    assert_eq!(other, None);
    let wanted = "it was measured with the driver CUDA 13.0, and CUDA 13.1 is there now";
    assert_contains(&notes, wanted);

    let file = kept_file(home.path());
    let whole = fs::read(&file).expect("the file");
    fs::write(&file, &whole[..whole.len() / 2]).expect("a file");
    let (damaged, notes) = recorded("13000");
    assert_eq!(damaged, None);
    let name = file
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert_contains(&notes, &name);
    assert_contains(&notes, "cannot be read");
    let list = bench(home.path(), &[], &["--list"]);
    list.assert_status(1);
}

/// Returns the greatest number of bytes that `memcpy` reads and writes in a second, between buffers as large as
/// the buffers of the benchmark on a software GPU.
fn memcpy_bytes_per_s() -> f64 {
    let from = vec![1_u8; 64 << 20];
    let mut to = vec![0_u8; from.len()];
    let seconds = (0..5).map(|_| {
        let begun = Instant::now();
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        begun.elapsed().as_secs_f64()
    });
    let least = seconds.fold(f64::INFINITY, f64::min);
    2.0 * from.len() as f64 / least
}

#[test]
fn a_software_gpu_copies_about_as_fast_as_its_processor_and_recordings_say_so() {
    let home = tempfile::tempdir().expect("a folder");
    let answer = measured(home.path(), &[&Lavapipe], &["--device", "llvmpipe"]);
    let device = &answer["devices"][0];
    assert_eq!(device["api"], "vulkan");
    let by_processor = memcpy_bytes_per_s();
    let copy = device["copy_bytes_per_s"].as_f64().expect("a rate");
    let ratio = copy / by_processor;
    assert!(
        (0.125..8.0).contains(&ratio),
        "{copy} against {by_processor}"
    );
    for key in [
        "read_bytes_per_s",
        "write_bytes_per_s",
        "fma_f32_flops",
        "launch_interval_ns",
        "launch_latency_ns",
    ] {
        assert!(device[key].as_f64() > Some(0.0), "{key}: {device}");
        assert!(device["spread"][key].is_number(), "{key}: {device}");
    }
    // No processor multiplies and adds 10^13 numbers a second; only work that the compiler removed would.
    assert!(device["fma_f32_flops"].as_f64() < Some(1e13), "{device}");
    assert!(device["read_bytes_per_s"].as_f64() < Some(1e13), "{device}");

    let program = planted("fence-each --iterations 20 --groups 1 --spin 10");
    let recording = program.variable("XDG_DATA_HOME", home.path()).recorded();
    let (measured, _) = limits(&recording);
    assert_eq!(
        measured.expect("what is kept")["copy_bytes_per_s"],
        device["copy_bytes_per_s"]
    );
}

#[test]
fn without_a_device_one_sentence_says_so() {
    let home = tempfile::tempdir().expect("a folder");
    let none = Stub::new(&[("DEVICES", "0")]);
    let mut command = Command::new(product::built("gapscope"));
    let run = Run::from_command(
        command
            .args(["bench", "device"])
            .envs(none.variables())
            .env("XDG_DATA_HOME", home.path())
            .env("VK_DRIVER_FILES", home.path().join("none.json")),
    );
    assert_eq!(run.status.code(), Some(1));
    let said = run.stderr.trim();
    assert!(
        said.starts_with(
            "gapscope: there is no device to measure (CUDA: cuInit says 100; Vulkan: "
        ),
        "{said}"
    );
    assert_eq!((said.lines().count(), run.stdout.as_str()), (1, ""));
    let run = bench(home.path(), &[&Lavapipe], &["--device", "no such"]);
    assert_eq!(run.status.code(), Some(1));
    assert_contains(&run.stderr, "no device is `no such`; there are 0: llvmpipe");
    assert_eq!(fs::read_dir(home.path()).expect("the folder").count(), 0);
}
