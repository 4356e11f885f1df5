//! Checks the parts that recording Vulkan programs needs: gapscope's layer (a library between program and driver),
//! the loader, drivers and devices. Facts and a probe's answer go in, checks come out.

use super::check::{Check, Group, State, Subject};
use super::trial::{Reason, Trial};
use gapscope_replay::{Device, Error};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const GROUP: Group = Group::Vulkan;

/// The answer of the probe, which asks the loader for devices while it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VulkanAnswer {
    devices: Devices,
    /// True if the layer was loaded into the process.
    has_layer: bool,
}

/// The devices that the Vulkan loader lists, or the error for want of a loader or a driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Devices {
    NoLoader(String),
    NoDriver(String),
    Found(Vec<Device>),
}

/// Returns the devices and whether the layer is loaded; runs in the probe's process.
pub fn probe() -> VulkanAnswer {
    let devices = match gapscope_replay::devices() {
        Ok(devices) => Devices::Found(devices),
        Err(Error::NoLoader(error)) => Devices::NoLoader(error),
        Err(error) => Devices::NoDriver(error.to_string()),
    };
    // The instance, and with it the layer, lives as long as this thread.
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    let has_layer = String::from_utf8_lossy(&maps).contains("/libgapscope_vulkan.so");
    VulkanAnswer { devices, has_layer }
}

/// The facts that are known without the trial.
#[derive(Debug, Clone)]
pub struct VulkanFacts {
    /// The layer's library, or the reason why there is none.
    pub layer: Result<PathBuf, Reason>,
    /// The manifests of installed drivers.
    pub manifests: Vec<PathBuf>,
}

/// Returns all checks of Vulkan. `trial` is `None` if the layer was not found.
pub fn checks(known: &VulkanFacts, trial: Option<&Trial<VulkanAnswer>>) -> Vec<Check> {
    let mut checks = vec![loader(trial), drivers(&known.manifests)];
    let found = match trial.map(|trial| &trial.answer) {
        Some(Ok(VulkanAnswer {
            devices: Devices::Found(devices),
            ..
        })) if !devices.is_empty() => Some(devices.as_slice()),
        _ => None,
    };
    checks.push(devices(found, trial));
    checks.push(layer(known, found.is_some(), trial));
    checks.push(timestamps(found));
    checks.push(counters(found));
    checks
}

/// Checks the loader by the devices that it listed in the probe.
fn loader(trial: Option<&Trial<VulkanAnswer>>) -> Check {
    let subject = Subject::new(GROUP, "vulkan-loader");
    match trial.map(|trial| &trial.answer) {
        Some(Ok(said)) => match &said.devices {
            Devices::NoLoader(error) => subject.missing(
                format!("programs that use Vulkan do not run here: {error}"),
                "install the Vulkan loader: the package libvulkan1 (Debian, Ubuntu), vulkan-loader (Fedora) or vulkan-icd-loader (Arch)",
            ),
            _ => subject.ok("libvulkan.so.1"),
        },
        Some(Err(how)) => subject.unknown(
            format!("it was asked for its devices, and {how}"),
            "try again with VK_LOADER_DEBUG=error, which says which driver it was",
        ),
        None => subject.unasked("the recording layer"),
    }
}

/// Checks whether a driver is installed, by the manifests that exist.
fn drivers(manifests: &[PathBuf]) -> Check {
    let subject = Subject::new(GROUP, "vulkan-drivers");
    let is_there = |manifest: &&PathBuf| manifest.is_file();
    let names: Vec<String> = manifests.iter().filter(is_there).map(|m| name(m)).collect();
    match names.as_slice() {
        [] => subject.missing("no driver is installed for the Vulkan loader", NO_DRIVER),
        names => subject.ok(names.join(", ")),
    }
}

/// The advice where no driver is found.
const NO_DRIVER: &str = "install the driver of the GPU, or Mesa's (mesa-vulkan-drivers), which has a software GPU too; a container \
                         gets NVIDIA's with NVIDIA_DRIVER_CAPABILITIES=all";

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Checks the devices; `found` is `None` unless the loader listed one.
fn devices(found: Option<&[Device]>, trial: Option<&Trial<VulkanAnswer>>) -> Check {
    let subject = Subject::new(GROUP, "vulkan-devices");
    let missing = |follows: String| subject.missing(follows, NO_DRIVER);
    if let Some(found) = found {
        let names = found.iter().map(|device| match &device.driver {
            Some(driver) => format!("{} (Vulkan {}, {driver})", device.name, device.vulkan),
            None => format!("{} (Vulkan {})", device.name, device.vulkan),
        });
        return subject.ok(names.collect::<Vec<_>>().join(", "));
    }
    match trial.map(|trial| &trial.answer) {
        Some(Ok(said)) => match &said.devices {
            Devices::NoLoader(_) => subject.unasked("the Vulkan loader"),
            Devices::NoDriver(error) => missing(error.clone()),
            Devices::Found(_) => missing("no driver that is installed has a device here".into()),
        },
        Some(Err(how)) => subject.unknown(
            how.to_string(),
            "run `vulkaninfo --summary`, which asks the same",
        ),
        None => subject.unasked("the recording layer"),
    }
}

/// Checks whether the loader loads gapscope's layer, which is known only where there is a device.
fn layer(known: &VulkanFacts, has_devices: bool, trial: Option<&Trial<VulkanAnswer>>) -> Check {
    let subject = Subject::new(GROUP, "vulkan-layer");
    let missing = |follows: &str, mend: &str| {
        let check = subject.missing(follows, mend);
        match &known.layer {
            Ok(path) => check.found(path.display().to_string()),
            Err(_) => check,
        }
    };
    let path = match &known.layer {
        Ok(path) => path,
        Err(why) => return missing("Vulkan and CUDA programs cannot be recorded", &why.0),
    };
    match trial {
        Some(Trial {
            answer: Ok(said),
            hook,
        }) if has_devices => match hook {
            Ok(()) if said.has_layer => subject.ok(path.display().to_string()),
            Err(why) if said.has_layer => missing(
                &format!("the Vulkan loader took it, and it could not write: {why}"),
                "record into a folder on a local disk that you may write to (`-o`)",
            ),
            _ => missing(
                "the Vulkan loader does not load it, so that Vulkan programs cannot be recorded",
                "run `VK_LOADER_DEBUG=layer gapscope doctor`, which says why; the loader must be of Vulkan 1.1 or newer and heed \
                 VK_ADD_LAYER_PATH (since 1.3.207) or VK_LAYER_PATH",
            ),
        },
        _ => subject
            .unasked("a Vulkan device")
            .found(path.display().to_string()),
    }
}

/// Checks whether queues write timestamps, and whether device and host clock can be read at once.
fn timestamps(found: Option<&[Device]>) -> Check {
    let subject = Subject::new(GROUP, "vulkan-timestamps");
    let Some(devices) = found else {
        return subject.unasked("a Vulkan device");
    };
    let named = |is: &dyn Fn(&&Device) -> bool| -> Vec<&str> {
        let those = devices.iter().filter(is);
        those.map(|device| device.name.as_str()).collect()
    };
    let without = named(&|d| d.timed_queue_families == 0);
    if !without.is_empty() {
        let all = without.len() == devices.len();
        let state = if all { State::Missing } else { State::Limited };
        return subject.other(
            state,
            format!("work on {} has no times", without.join(", ")),
            "use a newer driver, or another device; nothing of gapscope helps",
        );
    }
    let bounded = named(&|d| !d.is_calibrated);
    let partly = named(&|d| d.timed_queue_families < d.queue_families);
    match (bounded.as_slice(), partly.as_slice()) {
        ([], []) => subject.ok("on all queues, with calibrated clocks"),
        ([], partly) => subject.limited(
            format!("work on some queues of {} has no times", partly.join(", ")),
            "nothing is to be done unless the program uses them: the report counts such work",
        ),
        (bounded, _) => subject.limited(
            format!(
                "times on {} are placed on the host's clock by bounds from submissions, which is less exact",
                bounded.join(", ")
            ),
            "use a driver with VK_KHR_calibrated_timestamps; every report states the error",
        ),
    }
}

/// Checks hardware counters, which a timeline does not need.
fn counters(found: Option<&[Device]>) -> Check {
    let subject = Subject::new(GROUP, "vulkan-counters");
    let Some(devices) = found else {
        return subject.unasked("a Vulkan device");
    };
    let named = |offers: bool| -> Vec<&str> {
        let those = devices
            .iter()
            .filter(|d| d.has_performance_queries == offers);
        those.map(|device| device.name.as_str()).collect()
    };
    let (with, without) = (named(true), named(false));
    let found = match with.is_empty() {
        true => String::new(),
        false => format!("VK_KHR_performance_query of {}", with.join(", ")),
    };
    match without.is_empty() {
        true => subject.unknown(
            "what it counts is not known before a program opens the device, and this check opens none",
            "try `gapscope record --counters`: the losses of the trace say what was not counted, and why",
        ),
        false => subject.limited(
            format!(
                "`gapscope record --counters` counts nothing inside Vulkan programs on {}: the driver does not offer \
                 VK_KHR_performance_query; timelines need no hardware counters",
                without.join(", ")
            ),
            "use a driver that offers it, as Mesa's for GPUs of Intel and AMD do; NVIDIA's GPUs are sampled through CUPTI instead, of which \
             the CUDA counters below say more",
        ),
    }
    .found(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Device {
        Device {
            name: "llvmpipe".to_owned(),
            driver: Some("llvmpipe Mesa 25".to_owned()),
            vulkan: "1.3".to_owned(),
            queue_families: 2,
            timed_queue_families: 2,
            is_calibrated: true,
            has_performance_queries: true,
        }
    }

    fn known() -> VulkanFacts {
        VulkanFacts {
            layer: Ok("/opt/lib/libgapscope_vulkan.so".into()),
            manifests: vec![file!().into(), "/nowhere/gone.json".into()],
        }
    }

    fn trial(devices: Devices, has_layer: bool, hook: Result<(), Reason>) -> Trial<VulkanAnswer> {
        Trial {
            answer: Ok(VulkanAnswer { devices, has_layer }),
            hook,
        }
    }

    fn states(trial: Option<&Trial<VulkanAnswer>>) -> Vec<(&'static str, State)> {
        let checks = checks(&known(), trial);
        checks.iter().map(|check| (check.id, check.state)).collect()
    }

    #[test]
    fn a_machine_with_all_of_it_is_well() {
        let trial = trial(Devices::Found(vec![device()]), true, Ok(()));
        let states = states(Some(&trial));
        assert!(
            states.iter().all(
                |(id, state)| ["vulkan-drivers", "vulkan-counters"].contains(id)
                    || *state == State::Ok
            ),
            "{states:?}"
        );
    }

    #[test]
    fn without_a_loader_nothing_else_is_asked() {
        let trial = trial(
            Devices::NoLoader("not found".into()),
            false,
            Err("none".into()),
        );
        let states = states(Some(&trial));
        assert_eq!(states[0], ("vulkan-loader", State::Missing));
        assert!(
            states[2..]
                .iter()
                .all(|(_, state)| *state == State::Unknown),
            "{states:?}"
        );
    }

    #[test]
    fn a_layer_that_is_not_loaded_and_one_that_cannot_write_are_told_apart() {
        let of = |has_layer, hook| {
            let trial = trial(Devices::Found(vec![device()]), has_layer, hook);
            layer(&known(), true, Some(&trial))
        };
        assert_eq!(of(true, Ok(())).state, State::Ok);
        let ignored = of(false, Err("no process".into()));
        assert!(ignored.follows.unwrap().contains("does not load it"));
        let mute = of(true, Err("another user".into()));
        assert!(
            mute.follows
                .unwrap()
                .contains("could not write: another user")
        );
    }

    #[test]
    fn a_driver_that_crashes_leaves_all_unknown() {
        let trial = Trial {
            answer: Err("the driver ended the program by signal 11".into()),
            hook: Err("no".into()),
        };
        let states = states(Some(&trial));
        assert_eq!(states[0].1, State::Unknown);
        assert_eq!(states[2].1, State::Unknown);
    }

    #[test]
    fn counters_are_unknown_or_their_extension_is_missing() {
        let unknown = counters(Some(&[device()]));
        assert_eq!(unknown.state, State::Unknown);
        assert!(unknown.found.unwrap().contains("of llvmpipe") && unknown.mend.is_some());
        let other = Device {
            name: "Some GPU".to_owned(),
            has_performance_queries: false,
            ..device()
        };
        let missing = counters(Some(&[device(), other]));
        assert_eq!(missing.state, State::Limited);
        let follows = missing.follows.unwrap();
        assert!(
            follows.contains("on Some GPU: the driver does not offer VK_KHR_performance_query"),
            "{follows}"
        );
        assert!(missing.mend.is_some());
        assert_eq!(counters(None).state, State::Unknown);
    }

    #[test]
    fn what_a_device_lacks_for_times_is_said() {
        let of = |change: fn(&mut Device)| {
            let mut device = device();
            change(&mut device);
            timestamps(Some(&[device]))
        };
        assert_eq!(of(|d| d.timed_queue_families = 0).state, State::Missing);
        let bounded = of(|d| d.is_calibrated = false);
        assert!(bounded.state == State::Limited && bounded.follows.unwrap().contains("bounds"));
        let partly = of(|d| d.timed_queue_families = 1);
        assert!(partly.follows.unwrap().contains("some queues"));
    }
}
