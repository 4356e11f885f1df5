//! Tests that the samplers read planted files, and that what cannot be read is unknown with its reason.

use super::drm::DrmCards;
use super::machine::MachineSampler;
use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A folder that stands for `/`.
struct Root(tempfile::TempDir);

impl Root {
    fn new() -> Root {
        Root(tempfile::tempdir().unwrap())
    }

    fn add(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn stall(&self, path: &str, some_us: u64, full_us: u64) {
        let text = format!(
            "some avg10=1.00 avg60=0.00 avg300=0.00 total={some_us}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total={full_us}\n"
        );
        self.add(path, &text);
    }

    fn machine(&self) -> MachineSampler {
        let mut machine = MachineSampler::new(self.path().to_owned());
        machine.add_process(7);
        machine
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Reads once: the values, and what could not be measured.
fn read(
    machine: &mut MachineSampler,
    at_ms: i64,
) -> (BTreeMap<Condition, Option<f64>>, Vec<Unmeasured>) {
    let mut updates = Vec::new();
    machine.read(at_ms * 1_000_000, &mut updates);
    let (mut values, mut unmeasured) = (BTreeMap::new(), Vec::new());
    for said in updates {
        match said {
            ConditionUpdate::Reading(reading) => {
                values.insert(reading.condition, reading.value);
            }
            ConditionUpdate::Unmeasured(what) => unmeasured.push(what),
        }
    }
    (values, unmeasured)
}

fn reason<'a>(unmeasured: &'a [Unmeasured], what: &str) -> &'a str {
    let of_it = unmeasured.iter().find(|u| u.what.contains(what));
    &of_it
        .unwrap_or_else(|| panic!("{what} in {unmeasured:?}"))
        .reason
}

#[test]
fn stalls_are_shares_of_the_time_since_the_last_reading() {
    let root = Root::new();
    for name in ["cpu", "memory", "io"] {
        root.stall(&format!("proc/pressure/{name}"), 5_000, 1_000);
    }
    root.add("proc/vmstat", "nr_free_pages 4\npswpin 10\npswpout 20\n");
    let mut machine = root.machine();
    let (first, _) = read(&mut machine, 1000);
    assert_eq!(
        first,
        BTreeMap::new(),
        "before a second reading nothing is known"
    );
    // 25 ms and 5 ms of 100 ms, and pages of this machine.
    root.stall("proc/pressure/memory", 30_000, 6_000);
    root.add("proc/vmstat", "pswpin 110\npswpout 20\n");
    let (values, _) = read(&mut machine, 1100);
    assert_eq!(values[&Condition::MemoryStall], Some(25.0));
    assert_eq!(values[&Condition::MemoryStallFull], Some(5.0));
    assert_eq!(values[&Condition::CpuStall], Some(0.0));
    assert!(!values.contains_key(&Condition::GroupCpuStall));
    let page = rustix_page() as f64;
    assert_eq!(values[&Condition::SwapIn], Some(page * 1000.0));
    assert_eq!(values[&Condition::SwapOut], Some(0.0));
}

fn rustix_page() -> u64 {
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let kib = smaps
        .lines()
        .find_map(|line| line.strip_prefix("KernelPageSize:"));
    let kib = kib.and_then(|rest| rest.split_whitespace().next());
    kib.unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn the_programs_cgroup_is_found_where_it_is_mounted() {
    let root = Root::new();
    root.add(
        "proc/self/mountinfo",
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
    );
    root.add("proc/7/cgroup", "4:memory:/old\n0::/user.slice/run.scope\n");
    root.add(
        "proc/7/status",
        "Name:\tprogram\nVmRSS:\t   3000 kB\nVmSwap:\t   2048 kB\n",
    );
    let group = "sys/fs/cgroup/user.slice/run.scope";
    root.add(&format!("{group}/cgroup.type"), "domain\n");
    root.add("sys/fs/cgroup/user.slice/cgroup.type", "domain\n");
    root.stall(&format!("{group}/memory.pressure"), 1_000, 0);
    // The controller is switched on for an enclosing group only.
    let events = "sys/fs/cgroup/user.slice/memory.events";
    root.add(events, "low 0\nhigh 3\nmax 40\noom 0\noom_kill 1\n");
    // The enclosing group's memory is not the program's.
    root.add("sys/fs/cgroup/user.slice/memory.current", "999999\n");
    root.add(&format!("{group}/memory.current"), "5000000\n");
    let mut machine = root.machine();
    let (first, unmeasured) = read(&mut machine, 1000);
    assert!(reason(&unmeasured, "stalls of the machine").contains("CONFIG_PSI"));
    assert_eq!(first[&Condition::GroupMemory], Some(5e6));
    assert_eq!(first[&Condition::ProgramResident], Some(3000.0 * 1024.0));
    assert_eq!(
        first[&Condition::GroupMemoryMax],
        Some(0.0),
        "what was before is not the program's"
    );
    assert_eq!(first[&Condition::ProgramSwap], Some(2048.0 * 1024.0));
    root.stall(&format!("{group}/memory.pressure"), 11_000, 0);
    root.add(events, "low 0\nhigh 3\nmax 52\noom 0\noom_kill 1\n");
    let (values, _) = read(&mut machine, 1100);
    assert_eq!(values[&Condition::GroupMemoryStall], Some(10.0));
    assert_eq!(values[&Condition::GroupMemoryMax], Some(12.0));
    assert_eq!(values[&Condition::GroupKilled], Some(0.0));
    // The group ends with its program, which is no fault.
    fs::remove_dir_all(root.path().join("sys")).unwrap();
    let (values, unmeasured) = read(&mut machine, 1200);
    assert_eq!(values[&Condition::GroupMemoryStall], None);
    assert_eq!(values[&Condition::GroupMemory], None);
    assert_eq!(unmeasured, []);
}

#[test]
fn memory_of_processes_is_added_up_and_that_of_an_outer_cgroup_is_not_the_programs() {
    let root = Root::new();
    root.add(
        "proc/self/mountinfo",
        "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    );
    root.add("proc/7/cgroup", "0::/user.slice/run.scope\n");
    root.add("proc/7/status", "VmRSS:\t100 kB\n");
    root.add("proc/8/status", "VmRSS:\t20 kB\n");
    root.add("sys/fs/cgroup/user.slice/cgroup.type", "domain\n");
    root.add("sys/fs/cgroup/user.slice/memory.current", "999999\n");
    root.add("sys/fs/cgroup/user.slice/memory.events", "max 0\n");
    let mut machine = root.machine();
    machine.add_process(8);
    let (values, unmeasured) = read(&mut machine, 1000);
    assert_eq!(values[&Condition::ProgramResident], Some(120.0 * 1024.0));
    assert!(!values.contains_key(&Condition::ProgramSwap), "not said");
    assert!(!values.contains_key(&Condition::GroupMemory));
    assert!(reason(&unmeasured, "memory of the program's cgroup").contains("memory.current"));
    fs::remove_dir_all(root.path().join("proc/8")).unwrap();
    let (values, _) = read(&mut machine, 1100);
    assert_eq!(values[&Condition::ProgramResident], Some(100.0 * 1024.0));
}

#[test]
fn what_the_kernel_does_not_say_is_unknown_with_a_reason_once() {
    let root = Root::new();
    root.add("proc/pressure/memory", "nobody knows\n");
    let mut machine = root.machine();
    let (values, unmeasured) = read(&mut machine, 1000);
    assert_eq!(values.values().flatten().count(), 0, "{values:?}");
    assert!(reason(&unmeasured, "stalled on memory").contains("not in a form that is known"));
    assert!(reason(&unmeasured, "stalled on cpu").contains("proc/pressure/cpu"));
    assert!(reason(&unmeasured, "cgroup").contains("proc/7/cgroup"));
    assert!(reason(&unmeasured, "swapping").contains("proc/vmstat"));
    assert_eq!(
        read(&mut machine, 1100),
        (BTreeMap::new(), vec![]),
        "said once"
    );
}

#[test]
fn a_thread_without_a_process_asks_nothing_and_ends_when_told() {
    let root = Root::new();
    root.stall("proc/pressure/memory", 0, 0);
    let mut conditions = Conditions::start(root.path().to_owned());
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(conditions.take(), []);
    assert_eq!(conditions.finish(), [], "it ended before the timeout");
    let device = Device {
        name: "Example".to_owned(),
        uuid: "01".repeat(16),
        ..Device::default()
    };
    let said = format!("{:?}", conditions.unasked([&device].into_iter()));
    assert!(
        said.contains("power of Example") && said.contains("had ended before"),
        "{said}"
    );
}

#[test]
fn a_gpu_of_another_vendor_is_said_to_be_unknown() {
    let mut conditions = Conditions::start(Root::new().path().to_owned());
    let device = Device {
        name: "Example".to_owned(),
        uuid: "01".repeat(16),
        ..Device::default()
    };
    conditions.follow([].into_iter(), [&device, &device].into_iter());
    let said = conditions.finish();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(format!("{said:?}").contains("and no others"), "{said:?}");
}

/// Reads the planted files of a GPU with this driver at 1 s and, after `later`, at 1.5 s.
fn of_card(
    root: &Root,
    driver: &str,
    later: impl FnOnce(),
) -> [BTreeMap<Condition, Option<f64>>; 2] {
    let device = Device {
        driver: driver.to_owned(),
        uuid: "01".repeat(16),
        ..Device::default()
    };
    let gpu = Gpu {
        uuid: device.uuid.as_str().into(),
        name: "Example".to_owned(),
        vendor: Vendor::from_device(&device),
    };
    let mut cards = DrmCards::new(root.path().to_owned());
    let mut updates = Vec::new();
    cards.add(&gpu, &mut updates);
    assert_eq!(updates, []);
    let mut read = |at_ns: i64| {
        let mut updates = Vec::new();
        cards.read(|| at_ns, &mut updates);
        let values = updates.into_iter().map(|said| match said {
            ConditionUpdate::Reading(reading) => (reading.condition, reading.value),
            ConditionUpdate::Unmeasured(what) => panic!("{what:?}"),
        });
        values.collect()
    };
    let first = read(1_000_000_000);
    later();
    [first, read(1_500_000_000)]
}

#[test]
fn a_gpu_of_amd_is_read_by_the_kernels_files() {
    let root = Root::new();
    let card = "sys/class/drm/card1";
    root.add(&format!("{card}/device/vendor"), "0x1002\n");
    root.add("sys/class/drm/card0/device/vendor", "0x8086\n");
    root.add("sys/class/drm/card1-DP-1/device/vendor", "0x1002\n");
    let monitor = format!("{card}/device/hwmon/hwmon4");
    root.add(&format!("{monitor}/name"), "amdgpu\n");
    root.add(&format!("{monitor}/power1_average"), "215000000\n");
    root.add(&format!("{monitor}/temp1_input"), "61000\n");
    root.add(&format!("{monitor}/freq1_input"), "2105000000\n");
    root.add(&format!("{card}/device/mem_info_vram_used"), "4096\n");
    root.add(&format!("{card}/device/gpu_busy_percent"), "73\n");
    root.add(&format!("{card}/device/mem_busy_percent"), "0\n");
    let gone = root.path().join(format!("{monitor}/temp1_input"));
    let [first, then] = of_card(&root, "radv Mesa 25.0.7", || fs::remove_file(gone).unwrap());
    let known = [
        (Condition::Power, Some(215.0)),
        (Condition::Temperature, Some(61.0)),
        (Condition::SmClock, Some(2.105e9)),
        (Condition::MemoryUsed, Some(4096.0)),
        (Condition::GpuBusy, Some(73.0)),
        (Condition::MemoryBusy, Some(0.0)),
    ];
    assert_eq!(first, BTreeMap::from(known));
    assert_eq!(then[&Condition::Temperature], None);
    assert_eq!(then[&Condition::Power], Some(215.0));
}

#[test]
fn a_gpu_of_intel_has_its_power_from_energy_and_says_what_slows_it() {
    let root = Root::new();
    let card = "sys/class/drm/card0";
    root.add(&format!("{card}/device/vendor"), "0x8086\n");
    let monitor = format!("{card}/device/hwmon/hwmon1");
    root.add(&format!("{monitor}/name"), "xe\n");
    root.add(&format!("{monitor}/energy1_input"), "5000000\n");
    let clock = format!("{card}/device/tile0/gt0/freq0");
    root.add(&format!("{clock}/act_freq"), "1950\n");
    for reason in ["pl1", "pl2", "thermal", "prochot"] {
        root.add(&format!("{clock}/throttle/reason_{reason}"), "0\n");
    }
    let [first, then] = of_card(&root, "Intel open-source Mesa driver", || {
        root.add(&format!("{monitor}/energy1_input"), "65000000\n");
        root.add(&format!("{clock}/throttle/reason_pl2"), "1\n");
    });
    let known = [
        (Condition::SmClock, Some(1.95e9)),
        (Condition::ClockPowerCap, Some(0.0)),
        (Condition::ClockHeatSoftware, Some(0.0)),
    ];
    assert_eq!(first, BTreeMap::from(known));
    assert_eq!(then[&Condition::Power], Some(120.0), "60 J in 0.5 s");
    assert_eq!(then[&Condition::ClockPowerCap], Some(100.0));
}

#[test]
fn which_of_two_cards_of_a_vendor_it_is_is_not_guessed() {
    let root = Root::new();
    root.add("sys/class/drm/card0/device/vendor", "0x1002\n");
    root.add("sys/class/drm/card1/device/vendor", "0x1002\n");
    let mut conditions = Conditions::start(root.path().to_owned());
    let device = Device {
        name: "AMD Radeon".to_owned(),
        uuid: "01".repeat(16),
        ..Device::default()
    };
    conditions.follow([].into_iter(), [&device].into_iter());
    let said = format!("{:?}", conditions.finish());
    assert!(said.contains("2 cards"), "{said}");
}
