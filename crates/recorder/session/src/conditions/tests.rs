//! The samplers read planted files; what cannot be read is unknown, with its reason.

use super::host::Host;
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

    fn host(&self) -> Host {
        let mut host = Host::new(self.path().to_owned());
        host.add_process(7);
        host
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// What is read, and what cannot be.
fn read(host: &mut Host, at_ms: i64) -> (BTreeMap<Condition, Option<f64>>, Vec<Unmeasured>) {
    let mut heard = Vec::new();
    host.read(at_ms * 1_000_000, &mut heard);
    let (mut values, mut unmeasured) = (BTreeMap::new(), Vec::new());
    for said in heard {
        match said {
            Heard::Reading(reading) => {
                values.insert(reading.condition, reading.value);
            }
            Heard::Unmeasured(what) => unmeasured.push(what),
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
    let mut host = root.host();
    let (first, _) = read(&mut host, 1000);
    assert_eq!(
        first,
        BTreeMap::new(),
        "before a second reading nothing is known"
    );
    // 25 ms and 5 ms of 100 ms; pages of this machine.
    root.stall("proc/pressure/memory", 30_000, 6_000);
    root.add("proc/vmstat", "pswpin 110\npswpout 20\n");
    let (values, _) = read(&mut host, 1100);
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
    root.add("proc/7/status", "Name:\tprogram\nVmSwap:\t   2048 kB\n");
    let group = "sys/fs/cgroup/user.slice/run.scope";
    root.add(&format!("{group}/cgroup.type"), "domain\n");
    root.add("sys/fs/cgroup/user.slice/cgroup.type", "domain\n");
    root.stall(&format!("{group}/memory.pressure"), 1_000, 0);
    // The controller is switched on further out only.
    let events = "sys/fs/cgroup/user.slice/memory.events";
    root.add(events, "low 0\nhigh 3\nmax 40\noom 0\noom_kill 1\n");
    let mut host = root.host();
    let (first, unmeasured) = read(&mut host, 1000);
    assert!(reason(&unmeasured, "stalls of the machine").contains("CONFIG_PSI"));
    assert_eq!(
        first[&Condition::GroupMemoryMax],
        Some(0.0),
        "what was before is not the program's"
    );
    assert_eq!(first[&Condition::ProgramSwap], Some(2048.0 * 1024.0));
    root.stall(&format!("{group}/memory.pressure"), 11_000, 0);
    root.add(events, "low 0\nhigh 3\nmax 52\noom 0\noom_kill 1\n");
    let (values, _) = read(&mut host, 1100);
    assert_eq!(values[&Condition::GroupMemoryStall], Some(10.0));
    assert_eq!(values[&Condition::GroupMemoryMax], Some(12.0));
    assert_eq!(values[&Condition::GroupKilled], Some(0.0));
    // The group goes with its program, which is no fault.
    fs::remove_dir_all(root.path().join("sys")).unwrap();
    let (values, unmeasured) = read(&mut host, 1200);
    assert_eq!(values[&Condition::GroupMemoryStall], None);
    assert_eq!(unmeasured, []);
}

#[test]
fn what_the_kernel_does_not_say_is_unknown_with_a_reason_once() {
    let root = Root::new();
    root.add("proc/pressure/memory", "nobody knows\n");
    let mut host = root.host();
    let (values, unmeasured) = read(&mut host, 1000);
    assert_eq!(values.values().flatten().count(), 0, "{values:?}");
    assert!(reason(&unmeasured, "stalled on memory").contains("not in a form that is known"));
    assert!(reason(&unmeasured, "stalled on cpu").contains("proc/pressure/cpu"));
    assert!(reason(&unmeasured, "cgroup").contains("proc/7/cgroup"));
    assert!(reason(&unmeasured, "swapping").contains("proc/vmstat"));
    assert_eq!(
        read(&mut host, 1100),
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
    let since = Instant::now();
    assert_eq!(conditions.finish(), []);
    assert!(since.elapsed() < PATIENCE);
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
    assert!(format!("{said:?}").contains("only the driver of NVIDIA's GPUs"));
}
