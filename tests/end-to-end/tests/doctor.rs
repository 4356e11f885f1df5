//! Tests that the checks of `gapscope doctor` agree with what recordings on the machine contain.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::cuda::Stub;
use crate::driver::{Driver, Lavapipe};
use crate::product;
use crate::recording::{Run, assert_contains};
use crate::schema::Answers;

/// Returns the answer of the command and its exit status, and checks that it leaves nothing in its working folder.
fn examined(drivers: &[&dyn Driver], variables: &[(&str, &Path)]) -> (Value, Option<i32>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(product::built("gapscope"));
    command
        .args(["doctor", "--json"])
        .current_dir(&folder)
        .env_remove("CUDA_INJECTION64_PATH")
        .env_remove("VK_INSTANCE_LAYERS");
    for driver in drivers {
        command.envs(driver.variables());
    }
    command.envs(variables.iter().copied());
    let run = Run::from_command(&mut command);
    let answer = serde_json::from_str(&run.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", run.stdout, run.stderr));
    let left = fs::read_dir(&folder).expect("the folder").count();
    assert_eq!(left, 0, "nothing is left behind");
    (answer, run.status.code())
}

fn check<'a>(answer: &'a Value, id: &str) -> &'a Value {
    let checks = answer["checks"].as_array().expect("checks");
    let found = checks.iter().find(|check| check["id"] == id);
    found.unwrap_or_else(|| panic!("no {id} in {answer}"))
}

#[test]
fn a_software_gpu_can_be_recorded() {
    let (answer, status) = examined(&[&Lavapipe], &[]);
    assert_eq!(
        (&answer["can_record"], status),
        (&Value::Bool(true), Some(0))
    );
    for id in ["loader", "drivers", "devices", "layer", "timestamps"] {
        let check = check(&answer, &format!("vulkan-{id}"));
        assert_eq!(check["state"], "ok", "{check}");
    }
    let devices = check(&answer, "vulkan-devices")["found"].to_string();
    assert_contains(&devices, "llvmpipe");
    assert_eq!(check(&answer, "place")["state"], "ok");
    let mut answers = Answers::default();
    answers.add("doctor", "doctor --json", &answer);
    answers.hold();
}

#[test]
fn a_driver_of_cuda_with_its_libcupti_can_be_recorded() {
    let stub = Stub::new(&[]).with_nvml();
    let (answer, status) = examined(&[&Lavapipe, &stub], &[]);
    assert_eq!(status, Some(0));
    for id in ["driver", "devices", "library", "cupti", "nvml"] {
        let check = check(&answer, &format!("cuda-{id}"));
        assert_eq!(check["state"], "ok", "{check}");
    }
    assert_eq!(check(&answer, "cuda-devices")["found"], "Fake GPU");
    let driver = check(&answer, "cuda-driver")["found"].to_string();
    assert_contains(&driver, "CUDA up to 13.0");
}

#[test]
fn a_libcupti_that_is_too_old_is_named_with_what_to_do() {
    let stub = Stub::new(&[("API_VERSION", "17")]);
    let (answer, _) = examined(&[&Lavapipe, &stub], &[]);
    let cupti = check(&answer, "cuda-cupti");
    assert_eq!(cupti["state"], "missing", "{cupti}");
    let follows = cupti["follows"].to_string();
    assert_contains(&follows, "CUPTI API 17");
    assert_contains(&follows, "too old");
    assert!(cupti["mend"].is_string(), "{cupti}");
}

#[test]
fn a_machine_on_which_nothing_can_be_recorded_says_so_by_its_status() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let stub = Stub::new(&[("DEVICES", "0")]);
    // The manifest does not exist, so that the loader finds no driver.
    let none = folder.path().join("none.json");
    let (answer, status) = examined(&[&stub], &[("VK_DRIVER_FILES", &none)]);
    assert_eq!(
        (&answer["can_record"], status),
        (&Value::Bool(false), Some(1))
    );
    assert_eq!(check(&answer, "vulkan-devices")["state"], "missing");
    let devices = check(&answer, "cuda-devices");
    assert_eq!(devices["state"], "missing");
    assert!(
        devices["follows"].to_string().contains("cuInit says 100"),
        "{devices}"
    );
    assert_eq!(check(&answer, "cuda-cupti")["state"], "unknown");
}

#[test]
fn without_hooks_it_is_said_where_they_were_looked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (answer, status) = examined(&[&Lavapipe], &[("GAPSCOPE_HOOKS_DIR", folder.path())]);
    assert_eq!(status, Some(1));
    let layer = check(&answer, "vulkan-layer");
    assert_eq!(layer["state"], "missing");
    assert!(
        layer["mend"]
            .to_string()
            .contains("cargo build -p gapscope-vulkan"),
        "{layer}"
    );
    assert_eq!(check(&answer, "vulkan-devices")["state"], "unknown");
}

#[test]
fn hardware_counters_can_be_sampled_or_it_is_said_why_not() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = root.path().join("proc/driver/nvidia");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("params"), "RmProfilingAdminOnly: 0\n").expect("a file");
    let variables = [("GAPSCOPE_SYSTEM_ROOT", root.path())];
    let stub = Stub::new(&[]).with_nvml();
    let (answer, _) = examined(&[&Lavapipe, &stub], &variables);
    let found = check(&answer, "cuda-counters");
    assert_eq!(found["state"], "ok", "{found}");
    let words = "for all users: SMs active, DRAM read, DRAM written, tensor pipe active of FK100";
    assert!(found["found"].to_string().contains(words), "{found}");
    for (wrong, words) in [
        ("host", "libnvperf_host.so is not beside libcupti"),
        ("privileges", "NVreg_RestrictProfilingToAdminUsers=0"),
    ] {
        let stub = Stub::new(&[("PM", wrong)]).with_nvml();
        let (answer, status) = examined(&[&Lavapipe, &stub], &variables);
        assert_eq!(status, Some(0), "timelines need none");
        let found = check(&answer, "cuda-counters");
        assert_eq!(found["state"], "limited", "{found}");
        assert!(found["follows"].to_string().contains(words), "{found}");
    }
}
