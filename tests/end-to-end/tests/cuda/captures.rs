//! Tests `gapscope capture` on CUDA: the program computes what it computes alone, the capture has the launches of the window, and
//! they run again bit for bit. What cannot be captured is refused by name, and the program goes on.

use super::Stub;
use crate::driver::Driver;
use crate::product;
use crate::recording::{Run, assert_contains};
use gapscope_capture::AnyCapture;
use gapscope_capture::cuda::{CudaCapture, CudaStep, Launch, MemoryPlace};
use gapscope_capture::model::EndReason;
use gapscope_trace::Selection;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A run of `gapscope capture` with the path of its output.
pub struct Captured {
    run: Run,
    pub path: PathBuf,
    _folder: TempDir,
}

/// Captures a program, and checks that it prints what it prints alone.
pub fn captured(settings: &[(&str, &str)], options: &[&str], steps: &str) -> Captured {
    let stub = Stub::new(settings);
    let alone = stub.program(steps).run().ok();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("c.gapcapture");
    let run = stub.program(steps).options(options).capture(&path);
    assert_eq!(run.stdout, alone.stdout, "{steps}: {}", run.stderr);
    Captured {
        run,
        path,
        _folder: folder,
    }
}

/// Runs the launches of a capture again on the stub with options, bit for bit.
pub fn assert_replays(capture: &Path, options: &[&str]) {
    let stub = Stub::new(&[]);
    let mut command = Command::new(product::built("gapscope"));
    command.env("LD_LIBRARY_PATH", stub.path(""));
    command
        .args(["replay", "--json", "--trust"])
        .args(options)
        .arg(capture);
    let run = Run::from_command(&mut command);
    run.assert_status(0);
    let result: Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    assert_eq!(result["equal"], true, "{result}");
    assert!(result["outputs_compared"].as_u64() > Some(0), "{result}");
}

impl Captured {
    /// Returns the capture, which is readable to its end and complete.
    fn open(&self) -> CudaCapture {
        self.run.assert_status(0);
        match AnyCapture::open(&self.path).expect("it opens") {
            (AnyCapture::Cuda(capture), None) => {
                let reason = capture.end.as_ref().map(|end| &end.reason);
                assert_eq!(reason, Some(&EndReason::Complete));
                *capture
            }
            (_, problem) => panic!("not a valid capture of CUDA: {problem:?}"),
        }
    }

    /// Runs the launches again on the stub, bit for bit.
    fn replayed(&self) {
        self.replayed_with(&[]);
    }

    /// Runs the launches again with options, bit for bit.
    fn replayed_with(&self, options: &[&str]) {
        assert_replays(&self.path, options);
    }

    /// Checks that nothing was captured, for a reason with this text.
    fn assert_refused(&self, reason: &str) {
        self.run.assert_status(125);
        assert_contains(&self.run.stderr, "nothing was captured");
        assert_contains(&self.run.stderr, reason);
        assert!(!self.path.exists());
    }
}

fn launches(capture: &CudaCapture) -> Vec<&Launch> {
    capture.launches().collect()
}

macro_rules! bit_for_bit {
    ($($name:ident: $options:expr, $steps:literal, $launches:literal;)+) => {$(
        #[test]
        fn $name() {
            for settings in [&[][..], &[("LAZY", "1")]] {
                let captured = captured(settings, &$options, $steps);
                assert_eq!(launches(&captured.open()).len(), $launches);
                captured.replayed();
            }
        }
    )+};
}

bit_for_bit! {
    a_launch_by_name: ["--kernel", "saxpy:1"], "compute:scale:2 compute:saxpy:3", 1;
    launches_by_number: ["--launches", "1..4"], "compute:scale:2 compute:saxpy:3", 3;
    packed_parameters: ["--kernel", "saxpy"], "compute:saxpy:1:packed", 1;
    kernels_of_libraries: ["--launches", "0..3"], "compute:saxpy:2:library compute:shift:1:library", 3;
    a_cooperative_launch: ["--kernel", "attributes"], "compute:attributes:1:cooperative", 1;
    a_launch_in_clusters: ["--kernel", "attributes"], "compute:attributes:1:cluster", 1;
    a_launch_with_much_shared_memory: ["--kernel", "attributes"], "compute:attributes:1:shared", 1;
    a_launch_on_the_threads_own_stream: ["--kernel", "saxpy"], "compute:saxpy:1:own", 1;
    a_linked_list: ["--launches", "0..2"], "compute:walk_list:2", 2;
    a_table_of_pointers: ["--kernel", "table"], "compute:table:1", 1;
    a_counter_in_a_global: ["--launches", "1..3"], "compute:count:3", 2;
    a_pointer_in_a_global: ["--launches", "0..2"], "compute:through_global:2", 2;
    a_parameter_that_points_into_a_global: ["--kernel", "scale"], "global-address", 1;
    page_locked_memory: ["--kernel", "saxpy"], "host-memory", 1;
    results_that_are_nan: ["--kernel", "nan"], "compute:nan:1", 1;
    kernels_of_one_name: ["--launches", "0..4"], "same-names:2", 4;
    a_kernel_inside_of_a_graph: ["--kernel", "saxpy:1"], "compute-graph:saxpy:3:2", 1;
    copies_and_fills_between_launches: ["--launches", "0..6"], "pipeline:3", 6;
}

#[test]
fn memory_that_is_freed_and_allocated_anew_in_the_window() {
    let captured = captured(
        &[("ALLOCATIONS", "reuse")],
        &["--launches", "0..5"],
        "reallocate",
    );
    let capture = captured.open();
    assert_eq!(launches(&capture).len(), 5);
    assert_eq!(capture.replaced().count(), 4);
    captured.replayed();
    for options in [&["--repeat", "3"][..], &["--tight", "--repeat", "3"]] {
        captured.replayed_with(options);
    }
}

#[test]
fn a_replay_is_recorded_as_any_program_is() {
    let captured = captured(&[], &["--launches", "0..2"], "compute:saxpy:3");
    let stub = Stub::new(&[]);
    let trace = captured.path.with_file_name("replay.gapscope");
    let mut command = Command::new(product::built("gapscope"));
    command
        .envs(stub.variables())
        .args(["replay", "--json", "--trust", "--repeat", "3", "-o"])
        .args([&trace, &captured.path]);
    let run = Run::from_command(&mut command).ok();
    let result: Value = serde_json::from_str(&run.stdout).expect("stdout has the JSON alone");
    assert_eq!(result["equal"], true, "{result}");
    let (trace, _) = gapscope_trace::read(&trace, &Selection::all()).expect("it opens");
    let kernels = &trace.tables.kernels;
    let row = kernels.name.iter().position(|name| name.contains("saxpy"));
    let saxpy = kernels.id[row.expect("the captured kernel was recorded")];
    let ran = trace.tables.dispatches.kernel.to_vec();
    assert_eq!(ran.iter().filter(|kernel| **kernel == saxpy).count(), 6);
}

#[test]
fn kernels_of_one_name_have_the_code_of_their_own_module() {
    let captured = captured(&[], &["--launches", "0..4"], "same-names:2");
    let capture = captured.open();
    let modules: Vec<_> = (launches(&capture).iter())
        .map(|launch| launch.module)
        .collect();
    assert_eq!(modules[0], modules[2]);
    assert_eq!(modules[1], modules[3]);
    assert_ne!(modules[0], modules[1]);
    let code = modules[..2]
        .iter()
        .map(|id| capture.code(&capture.modules[id]));
    let code: Vec<String> = code
        .map(|code| String::from_utf8_lossy(&code.expect("it is here")).into_owned())
        .collect();
    assert!(code[0].contains("fake-cuda scale") && code[1].contains("fake-cuda shift"));
}

#[test]
fn a_word_that_points_into_a_global_is_a_relocation() {
    let captured = captured(&[], &["--kernel", "scale"], "global-address");
    let capture = captured.open();
    let [launch] = launches(&capture)[..] else {
        panic!("one launch");
    };
    let [relocation] = launch.relocations[..] else {
        panic!("one relocation: {launch:?}");
    };
    assert_eq!(relocation.at, 8);
    let place = &capture.memories[&relocation.memory].place;
    assert!(matches!(place, MemoryPlace::Global { name, .. } if name == "weights"));
}

#[test]
fn a_launch_has_the_attributes_that_it_was_given() {
    let of = |way: &str| {
        let steps = format!("compute:attributes:1:{way}");
        let captured = captured(&[], &["--kernel", "attributes"], &steps);
        launches(&captured.open())[0].clone()
    };
    let ids = |launch: &Launch| launch.attributes.iter().map(|a| a.id).collect::<Vec<_>>();
    // CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    assert_eq!(ids(&of("cooperative")), [2]);
    assert_eq!(ids(&of("cluster")), [4]);
    let shared = of("shared");
    assert_eq!(shared.shared_bytes, 64 << 10);
    assert_eq!(shared.function.max_dynamic_shared_bytes, 64 << 10);
}

#[test]
fn what_was_copied_between_launches_is_content_before_the_next_one() {
    let captured = captured(&[], &["--launches", "0..4"], "pipeline:2");
    let capture = captured.open();
    let third = (capture.steps.iter())
        .filter(|step| !matches!(step, CudaStep::Outcome(_)))
        .skip_while(|step| !matches!(step, CudaStep::Launch(launch) if launch.kernel == "saxpy"))
        .nth(1);
    assert!(matches!(third, Some(CudaStep::Content(_))), "{third:?}");
}

macro_rules! refusals {
    ($($name:ident: $kernel:literal, $steps:literal => $reason:literal;)+) => {$(
        #[test]
        fn $name() {
            captured(&[], &["--kernel", $kernel], $steps).assert_refused($reason);
        }
    )+};
}

refusals! {
    a_kernel_of_nccl_is_refused: "nccl", "collective" => "waits for kernels of other GPUs or processes";
    a_kernel_that_allocates_is_refused: "allocates", "device-malloc" => "allocates memory on the GPU (malloc)";
    managed_memory_is_refused: "scale", "managed-memory" => "managed memory";
    a_kernel_that_waits_for_the_host_is_refused: "spin", "spin:100" => "spin did not end within 20 s";
    a_kernel_that_waits_for_another_is_refused: "spin", "spin-for-kernel" => "spin did not end within 20 s";
    a_kernel_that_faults_is_refused: "fault", "fault" => "fault failed on the GPU";
    a_kernel_that_is_never_launched: "gemm", "compute:scale:1" => "nothing was captured";
}

#[test]
fn more_bytes_than_allowed_are_refused() {
    let options = ["--kernel", "saxpy", "--most-bytes", "4K"];
    let captured = captured(&[], &options, "compute:saxpy:1");
    captured.run.assert_status(125);
    assert_contains(&captured.run.stderr, "saxpy");
    assert!(!captured.path.exists());
}

#[test]
fn a_label_chooses_the_window() {
    let steps = "compute:scale:1 inside:decode:compute:saxpy:2 compute:shift:1";
    let captured = captured(&[], &["--label", "decode"], steps);
    let capture = captured.open();
    let kernels: Vec<&str> = (launches(&capture).iter())
        .map(|launch| &*launch.kernel)
        .collect();
    assert_eq!(kernels, ["saxpy", "saxpy"]);
    captured.replayed();
}

#[test]
fn the_program_chooses_the_window() {
    let stub = Stub::new(&[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("c.gapcapture");
    let steps = "compute:scale:1 capture:compute:saxpy:2 compute:shift:1";
    let program = stub.program(steps).options(&["--capture-only"]);
    let captured = Captured {
        run: program.capture(&path),
        path,
        _folder: folder,
    };
    let capture = captured.open();
    let kernels: Vec<&str> = (launches(&capture).iter())
        .map(|launch| &*launch.kernel)
        .collect();
    assert_eq!(kernels, ["saxpy", "saxpy"]);
    captured.replayed();
}

#[test]
fn a_kernel_that_differs_from_itself_is_called_so() {
    let stub = Stub::new(&[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("c.gapcapture");
    let program = stub
        .program("compute:noise:1")
        .options(&["--kernel", "noise"]);
    program.capture(&path).assert_status(0);
    let mut command = Command::new(product::built("gapscope"));
    command.env("LD_LIBRARY_PATH", stub.path(""));
    command.args(["replay", "--trust"]).arg(&path);
    let run = Run::from_command(&mut command);
    let all = format!("{}{}", run.stdout, run.stderr);
    assert_contains(&all, "differ");
}

#[test]
fn dependencies_of_launches_are_listed() {
    let captured = captured(&[], &["--launches", "0..4"], "pipeline:2");
    let mut command = Command::new(product::built("gapscope"));
    let run = Run::from_command(command.args(["deps", "--json"]).arg(&captured.path)).ok();
    let found: Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    let edge = &found["edges"][0];
    assert_eq!([&edge["from"], &edge["to"]], [0, 1]);
    assert_eq!(edge["kind"], "RAW");
    assert_eq!(found["nodes"][0]["name"], "scale");
    let mut command = Command::new(product::built("gapscope"));
    let run = Run::from_command(command.args(["deps", "--measure"]).arg(&captured.path));
    assert_contains(&run.stderr, "is a capture of CUDA");
}
