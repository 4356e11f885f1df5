//! Tests CUDA programs on the stub of CUDA: gapscope's library is injected without a flag, and trace and report
//! agree with the log of the stub's devices. `tests/cuda-programs` tests real GPUs.

mod captures;
mod exports;
mod instructions;
mod layers;
mod profiles;
mod ranks;
mod shrinking;
mod times;

use crate::driver::Driver;
use crate::product;
use crate::recording::{Program, Recording, Run, assert_contains, open, report};
use gapscope_trace::LossKind;
use gapscope_trace::ids::{DeviceId, QueueId, SubmissionId};
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::{HostCallKind, Table, TransferKind};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// The stub of CUDA under the names of the real libraries, and its log.
pub struct Stub {
    folder: TempDir,
    settings: Vec<(String, String)>,
}

/// A line of the stub's log.
struct Did {
    kind: String,
    start_ns: i64,
    end_ns: i64,
}

impl Stub {
    pub fn new(settings: &[(&str, &str)]) -> Stub {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // The file has the name of the real library, so that the process maps it under this name.
        let driver = folder.path().join("libcuda.so.1");
        fs::copy(product::built("libfake_cuda.so"), &driver).expect("a copy");
        std::os::unix::fs::symlink(&driver, folder.path().join("libcupti.so.13")).expect("a link");
        let settings = settings
            .iter()
            .map(|(name, value)| (format!("FAKE_CUDA_{name}"), (*value).to_owned()));
        Stub {
            settings: settings.collect(),
            folder,
        }
    }

    /// Adds the stub of NVML.
    pub fn with_nvml(self) -> Stub {
        let nvml = self.path("libnvidia-ml.so.1");
        std::os::unix::fs::symlink(self.path("libcuda.so.1"), nvml).expect("a link");
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn program(&self, steps: &str) -> Program {
        let program = product::built("fake-cuda-program").display().to_string();
        let words = [program.as_str()].into_iter().chain(steps.split(' '));
        Program::new(words, self)
    }

    /// Returns the lines of the log: work of devices, and calls of the host, by kind (`kernel`, `memcpy`, …).
    fn did(&self) -> Vec<Did> {
        let log = fs::read_to_string(self.path("truth")).expect("the stub's log");
        let lines = log.lines().map(|line| {
            let line: Value = serde_json::from_str(line).expect("a line of JSON");
            Did {
                kind: line["kind"].as_str().unwrap_or_default().to_owned(),
                start_ns: line["start_ns"].as_i64().unwrap_or_default(),
                end_ns: line["end_ns"].as_i64().unwrap_or_default(),
            }
        });
        lines.collect()
    }
}

/// Checks that `gapscope report --full` prints each of `parts`, in lines of at most 80 columns.
fn assert_report_has(recording: &Recording, parts: &[&str]) {
    let mut report = Command::new(product::built("gapscope"));
    let text = Run::from_command(report.args(["report", "--full"]).arg(recording.path())).stdout;
    for part in parts {
        assert_contains(&text, part);
    }
    let is_narrow = |line: &str| line.chars().count() <= 80;
    assert!(text.lines().all(is_narrow), "{text}");
}

impl Driver for Stub {
    fn variables(&self) -> Vec<(String, String)> {
        let mut variables = vec![
            (
                "LD_LIBRARY_PATH".to_owned(),
                self.folder.path().display().to_string(),
            ),
            (
                "FAKE_CUDA_TRUTH".to_owned(),
                self.path("truth").display().to_string(),
            ),
        ];
        variables.extend(self.settings.iter().cloned());
        variables
    }
}

/// The kernels of such a graph have no launch of their own: CUPTI's records of them name only the graph.
#[test]
fn graphs_that_are_a_loop_and_nothing_else_are_launched_by_their_calls() {
    let stub = Stub::new(&[]);
    let recording = stub.program("loops:5 sync").recorded();
    let trace = recording.trace();
    assert_eq!(trace.manifest.losses, []);
    let buffers = &trace.tables.command_buffers;
    // The stub runs each body three times, and a body has two kernels.
    assert_eq!(buffers.dispatches, [6; 10]);
    assert_eq!(trace.tables.dispatches.len(), 60 + 10);
    let dispatches = &trace.tables.dispatches;
    let queues: HashSet<_> = (0..70).map(|row| dispatches.queue[row]).collect();
    assert_eq!(
        queues.len(),
        1,
        "those of bodies are on the stream of the launch"
    );
}

/// The program first uses a second device, and loads code, after it has filtered its system calls.
#[test]
fn a_filter_of_system_calls_that_is_set_after_the_start_of_cuda_changes_nothing() {
    let stub = Stub::new(&[]);
    let program = stub.program("launch:100 sync filter launch:100 reload device:1 launch:100 sync");
    program.run().ok();
    let trace = program.recorded().trace();
    assert_eq!(trace.manifest.losses, []);
    assert_eq!(trace.manifest.devices.len(), 2);
    assert_eq!(trace.tables.dispatches.len(), 302);
}

#[test]
fn every_kernel_has_its_times_its_name_and_its_launch() {
    let stub = Stub::new(&[]);
    let recording = stub.program("launch:3000 runtime:500 sync").recorded();
    let trace = recording.trace();
    assert_eq!(trace.manifest.losses, []);
    let t = &trace.tables;

    let mut did: Vec<(i64, i64)> = stub
        .did()
        .iter()
        .filter(|d| d.kind == "kernel")
        .map(|d| (d.start_ns, d.end_ns - d.start_ns))
        .collect();
    let d = &t.dispatches;
    let mut recorded: Vec<(i64, i64)> = (0..d.len())
        .map(|row| {
            (
                d.start_ns.at(row).expect("a time"),
                d.duration_ns.at(row).expect("a time"),
            )
        })
        .collect();
    did.sort_unstable();
    recorded.sort_unstable();
    assert_eq!(recorded.len(), 3500);
    assert_eq!(recorded, did);

    let launches: HashMap<SubmissionId, (i64, &str)> = (0..t.submissions.len())
        .map(|row| {
            let function = t.submissions.function[row].as_deref().expect("a function");
            (
                t.submissions.id[row],
                (t.submissions.start_ns[row], function),
            )
        })
        .collect();
    assert_eq!(launches.len(), 3500);
    for row in 0..d.len() {
        assert_eq!(
            d.command_buffer.at(row),
            None,
            "a launch is not a command buffer"
        );
        let (start_ns, function) = launches[&d.submission.at(row).expect("its launch")];
        assert!(
            start_ns < d.start_ns.at(row).unwrap_or(0),
            "no kernel before its launch"
        );
        // A call of the runtime is recorded by the driver's call inside.
        assert_eq!(function, "cuLaunchKernel");
    }
    assert_eq!(&*t.kernels.name[0], "add");
    assert_eq!(
        t.kernels.full_name[0].as_deref(),
        Some("add(float*, float*, int)")
    );
    assert_eq!(
        (t.kernels.local_x.at(0), t.kernels.registers.at(0)),
        (Some(256), Some(32))
    );

    let device = &trace.manifest.devices[0];
    assert_eq!(device.api, Api::Cuda);
    assert!(
        device.clock.error_ns.is_some(),
        "a wait bounds the clock: {:?}",
        device.clock
    );

    let report = recording.report();
    assert_eq!(report["dispatch_count"], 3500);
    assert_eq!(report["command_buffer_count"], 0);
    assert_eq!(report["kernels"][0]["name"], "add");
    assert_eq!(
        report["devices"][0]["queues"][0]["name"]
            .as_str()
            .map(|n| n.starts_with("stream ")),
        Some(true)
    );
    let parts: i64 = report["gaps"]
        .as_array()
        .expect("gaps")
        .iter()
        .filter_map(|g| g["total_ns"].as_i64())
        .sum();
    assert_eq!(
        Some(parts),
        report["idle_time"]["total_ns"].as_i64(),
        "causes sum to idle time"
    );
}

#[test]
fn graphs_copies_waits_and_memory_are_what_the_program_did() {
    let stub = Stub::new(&[]);
    let recording = stub
        .program("copies waits graph:10:5 memory sync")
        .recorded();
    let trace = recording.trace();
    let t = &trace.tables;
    let graphs = &t.command_buffers;
    assert_eq!(graphs.dispatches, [10; 5]);
    let in_graphs = t.dispatches.command_buffer.iter().flatten().count();
    assert_eq!(in_graphs, 50);
    assert_eq!(recording.report()["command_buffer_count"], 5);
    assert_eq!(
        t.transfers.kind,
        [
            TransferKind::HostToDevice,
            TransferKind::Fill,
            TransferKind::DeviceToHost
        ]
    );
    assert_eq!(t.transfers.bytes, [4096, 1024, 512].map(Some));
    let calls = &t.host_calls.call;
    for kind in [
        HostCallKind::WaitDeviceIdle,
        HostCallKind::WaitEvent,
        HostCallKind::WaitQueueIdle,
        HostCallKind::BuildGraph,
    ] {
        assert!(calls.contains(&kind), "{kind} in {calls:?}");
    }
    // The first kernel of the second stream waits for the last one before the event on the first.
    assert_eq!(t.dependencies.len(), 1);
    let (waits, on) = (
        t.dependencies.submission[0],
        t.dependencies.waits_for.at(0).expect("it is known"),
    );
    let queue = |id| {
        (0..t.submissions.len())
            .find(|row| t.submissions.id[*row] == id)
            .map(|row| t.submissions.queue[row])
    };
    assert_ne!(queue(waits), queue(on));
    assert!(!t.memory.is_empty());
}

#[test]
fn devices_of_one_process_are_told_apart_and_copies_between_them_are_transfers() {
    let stub = Stub::new(&[("DEVICES", "2")]);
    let recording = stub
        .program("peer launch:20 device:1 launch:30 sync")
        .recorded();
    let trace = recording.trace();
    assert_eq!(trace.manifest.losses, []);
    let uuids: HashSet<&str> = trace
        .manifest
        .devices
        .iter()
        .map(|d| d.uuid.as_str())
        .collect();
    assert_eq!(uuids.len(), 2, "{uuids:?}");
    let device_of = |queue: QueueId| {
        let queues = &trace.manifest.queues;
        queues.iter().find(|q| q.id == queue).map(|q| q.device)
    };
    let t = &trace.tables;
    let on = |device| {
        t.dispatches
            .queue
            .iter()
            .filter(|q| device_of(**q) == Some(device))
            .count()
    };
    let ids: Vec<DeviceId> = trace.manifest.devices.iter().map(|d| d.id).collect();
    let mut counts: Vec<usize> = ids.iter().map(|id| on(*id)).collect();
    counts.sort_unstable();
    assert_eq!(counts, [20, 30]);
    assert_eq!(t.transfers.kind, [TransferKind::PeerToPeer; 2]);
    assert_ne!(
        device_of(t.transfers.queue[0]),
        device_of(t.transfers.queue[1]),
        "each copy ran on the device whose stream it was put on"
    );
    assert_eq!(
        recording.report()["devices"].as_array().map(Vec::len),
        Some(2)
    );
}

#[test]
fn a_program_captures_a_window_of_itself() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("window.gapscope");
    let stub = Stub::new(&[]);
    let recording = stub
        .program("launch:50 sync capture:launch:20 launch:30 sync")
        .variable("GAPSCOPE_CAPTURE", &path)
        .options(&["--capture-only"])
        .recorded();
    let window = open(&path);
    assert_eq!(window.tables.dispatches.len(), 20);
    assert_eq!(window.tables.submissions.len(), 20);
    assert!(
        !recording.path().exists(),
        "what was recorded is in the capture"
    );

    let path = folder.path().join("part.gapscope");
    let whole = stub
        .program("launch:50 sync capture:launch:20 launch:30 sync")
        .variable("GAPSCOPE_CAPTURE", &path)
        .recorded()
        .trace();
    assert_eq!(whole.tables.dispatches.len(), 100);
    assert_eq!(open(&path).tables.dispatches.len(), 20);
}

#[test]
fn a_program_that_made_no_capture_is_told_so_though_it_has_loaded_cupti_itself() {
    let stub = Stub::new(&[]);
    let cupti = stub.path("libcupti.so.13");
    // The program maps the library before CUDA begins, as PyTorch does.
    fs::remove_file(&cupti).expect("a link");
    fs::copy(product::built("libfake_cuda.so"), &cupti).expect("a copy");
    let run = stub
        .program("launch:20 sync")
        .variable("LD_PRELOAD", &cupti)
        .options(&["--capture-only"])
        .record();
    assert_contains(&run.run.stderr, "the program began no capture");
    assert!(!run.run.stderr.contains("has loaded CUPTI itself"));
}

#[test]
fn values_of_nvtx_are_in_the_trace_with_their_names() {
    let stub = Stub::new(&[]);
    let trace = stub.program("payloads sync").recorded().trace();
    let m = &trace.tables.markers;
    let values: Vec<&str> = m.payload.iter().flatten().map(AsRef::as_ref).collect();
    assert!(
        values.contains(&"rank=1, after=5")
            && values
                .iter()
                .any(|v| v.starts_with("root=-3, bytes=1099511627776")),
        "{values:?}"
    );
    let lost: Vec<&str> = trace.manifest.losses.iter().map(|l| &*l.reason).collect();
    assert!(lost.contains(&"payload schema not understood"), "{lost:?}");
}

#[test]
fn labels_of_nvtx_are_around_the_kernels_that_were_launched_inside() {
    let stub = Stub::new(&[]);
    let trace = stub.program("labels:20 sync").recorded().trace();
    let d = &trace.tables.dispatches;
    assert_eq!(d.len(), 20);
    assert!(d.label.iter().all(|value| value.is_some()), "{:?}", d.label);
    assert!(trace.tables.markers.len() >= 20);
}

#[test]
fn kernels_of_a_graph_have_the_labels_of_its_making_inside_those_of_its_launch() {
    let stub = Stub::new(&[]);
    let recording = stub.program("labelled-graph:10:3 sync").recorded();
    let trace = recording.trace();
    assert_eq!(trace.manifest.losses, []);
    let nodes = &trace.tables.graph_nodes;
    assert_eq!(nodes.len(), 10, "each node that ran has one row");
    let d = &trace.tables.dispatches;
    assert_eq!(d.len(), 30);
    let known = |node: Option<u64>| node.is_some_and(|node| nodes.node.contains(&node));
    assert!(d.graph_node.iter().all(known), "{:?}", d.graph_node);
    let report = recording.report();
    let row = |path: &str| {
        let rows = report["labels"].as_array().expect("rows").iter();
        let mut found = rows.filter(|row| row["path"] == path);
        found.next().expect(path).clone()
    };
    // The label around the making of the graph is not around its work.
    assert_eq!(row("decode / model")["in_graphs"], 30);
    assert_eq!(row("decode")["in_graphs"], 30);
    assert_eq!(row("decode")["exclusive"]["dispatch_count"], 0);
    assert_eq!(row("warm-up")["inclusive"]["dispatch_count"], 0);
}

#[test]
fn a_killed_program_keeps_what_was_delivered_and_counts_the_rest() {
    let stub = Stub::new(&[]);
    let recording = stub
        .program("launch:500 sleep:500 launch:200 kill")
        .record();
    let trace = recording.trace();
    let recorded = trace.tables.dispatches.len();
    assert!((500..=700).contains(&recorded), "{recorded}");
    // All calls were recorded, so that the number of missing kernels is known.
    assert_eq!(trace.tables.submissions.len(), recorded);
    let lost = trace.manifest.losses.iter();
    let lost = lost
        .filter(|l| l.kind == LossKind::Dispatches)
        .map(|l| l.count);
    assert_eq!(recorded as u64 + lost.sum::<u64>(), 700);
    assert_eq!(trace.manifest.processes[0].end_ns, None);
    let notes = &trace.manifest.notes;
    assert!(
        notes.iter().any(|n| n.contains("ended suddenly")),
        "{notes:?}"
    );
}

#[test]
fn what_the_user_has_set_stays_and_is_said() {
    let stub = Stub::new(&[]);
    let program = stub
        .program("launch:10 sync sleep:400")
        .variable("CUDA_INJECTION64_PATH", "/nowhere/other.so");
    let run = program.record().run;
    run.assert_status(125);
    assert_contains(
        &run.stderr,
        "CUDA_INJECTION64_PATH was set to /nowhere/other.so already",
    );
}

#[test]
fn a_hook_that_cannot_record_says_why_in_one_sentence() {
    let stub = Stub::new(&[("SUBSCRIBE", "refuse")]);
    let run = stub.program("launch:10 sync").record().run;
    run.assert_status(125);
    let said: Vec<&str> = run
        .stderr
        .lines()
        .filter(|l| l.starts_with("gapscope: "))
        .collect();
    assert_eq!(said.len(), 1, "{}", run.stderr);
    assert!(said[0].contains("CUPTI"), "{}", run.stderr);
}

#[test]
fn a_program_that_uses_no_gpu_is_told_so() {
    let stub = Stub::new(&[]);
    let run = Program::new(["true"], &stub).record().run;
    assert_eq!(run.status.code(), Some(125));
    assert_contains(&run.stderr, "used no Vulkan and no CUDA");
}

#[test]
fn vulkan_and_cuda_are_recorded_together() {
    let stub = Stub::new(&[]);
    let cuda = product::built("fake-cuda-program").display().to_string();
    let vulkan = product::built("planted").display().to_string();
    let script = "\"$0\" launch:30 sync && \"$1\" spin";
    let program = Program::new(["sh", "-c", script, cuda.as_str(), vulkan.as_str()], &stub)
        .variable("VK_LOADER_DRIVERS_SELECT", "lvp*");
    let trace = program.recorded().trace();
    let apis: Vec<&str> = trace
        .manifest
        .devices
        .iter()
        .map(|d| d.api.as_str())
        .collect();
    assert!(
        apis.contains(&"cuda") && apis.contains(&"vulkan"),
        "{apis:?}"
    );
    let correlated = trace.tables.dispatches.submission.iter().flatten().count();
    assert_eq!(correlated, 30);
}
