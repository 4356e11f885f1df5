//! `cargo xtask tsan`: builds the hooks, the programs of the tests and their stub drivers with ThreadSanitizer, records
//! programs of several threads, and fails where it finds a race or a leaked thread in a hook. It needs a toolchain of
//! rustup with the sanitizer's library, `cc` and `readelf`, and no nightly.
//!
//! The standard library of the toolchain is not instrumented, so that the sanitizer would not see locks that are taken
//! after a wait. Each link therefore gets a few lines of C (`SHIM`) around those functions that say what they do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{command, target};

/// The only system for which the names and arguments of the wrapped functions are known.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The functions of the standard library that take a lock after a wait: the end of their names, and the C function
/// around them.
const SHIM: [(&str, &str); 6] = [
    ("5Mutex14lock_contended", LOCK),
    ("6RwLock14read_contended", LOCK),
    ("6RwLock15write_contended", LOCK),
    (
        "7Condvar4wait",
        "void REAL(void *, void *); void WRAP(void *c, void *m) { __tsan_release(m); REAL(c, m); __tsan_acquire(m); }",
    ),
    (
        "7Condvar12wait_timeout",
        "_Bool REAL(void *, void *, unsigned long, unsigned); _Bool WRAP(void *c, void *m, unsigned long s, unsigned n) \
         { __tsan_release(m); _Bool r = REAL(c, m, s, n); __tsan_acquire(m); return r; }",
    ),
    (
        "5futexNtB5_4Once4call",
        "void REAL(void *, long, void *, void *, void *); void WRAP(void *o, long i, void *f, void *t, void *l) \
         { REAL(o, i, f, t, l); __tsan_acquire(o); __tsan_release(o); }",
    ),
];
const LOCK: &str = "void REAL(void *); void WRAP(void *l) { REAL(l); __tsan_acquire(l); }";

/// Reports that are no fault of the hooks. The last reference to an `Arc` is dropped behind a fence, which the sanitizer does not
/// know; its own stand-in for that is only in a standard library that was built for it.
const SUPPRESSIONS: &str = "\
race:drop_slow
race:libfake_vulkan_driver.so
race:libvulkan_lvp.so
race:libcuda.so
race:libcupti.so
race:planted::
race:fake_cuda_program::
thread:libfake_vulkan_driver.so
thread:libvulkan_lvp.so
thread:libcuda.so
";

/// The programs that are recorded: modes of `planted`, and steps of the program of the CUDA stub.
const VULKAN: [&str; 12] = [
    "threads --count 8 --iterations 50",
    "devices --iterations 50",
    "steady --iterations 200",
    "churn --iterations 20",
    "polling --iterations 50",
    "simultaneous --iterations 50",
    "submit2 --iterations 50",
    "secondary --iterations 50",
    "ping-pong --iterations 50",
    "abandon --iterations 50",
    "fork --iterations 50",
    "windows --iterations 20",
];
const CUDA: [&str; 3] = ["threads:8:200", "threads:2:2000", "poll-threads:4:200"];

/// Builds, records and looks at what the sanitizer said.
pub fn run() -> Result<()> {
    let folder = target("tsan");
    fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    build(&folder)?;
    command::run(&mut command::cargo_line("build -p gapscope"))?;
    let built = folder.join(TARGET).join("debug");
    let mut reports = Reports::new(&folder)?;
    let driver = folder.join("fake.json");
    let library = built.join("libfake_vulkan_driver.so");
    fs::write(
        &driver,
        format!(
            r#"{{"file_format_version":"1.0.0","ICD":{{"library_path":"{}","api_version":"1.3.280"}}}}"#,
            library.display()
        ),
    )?;
    for mode in VULKAN {
        let program = format!("{} {mode}", built.join("planted").display());
        reports.record(&built, &program, &[("VK_DRIVER_FILES", &driver)])?;
    }
    let stub = folder.join("stub");
    fs::create_dir_all(&stub)?;
    // Both are one library, which has one state.
    fs::copy(built.join("libfake_cuda.so"), stub.join("libcuda.so.1"))?;
    let cupti = stub.join("libcupti.so.13");
    let _ = fs::remove_file(&cupti);
    std::os::unix::fs::symlink(stub.join("libcuda.so.1"), cupti)?;
    for steps in CUDA {
        let program = format!("{} {steps}", built.join("fake-cuda-program").display());
        reports.record(&built, &program, &[("LD_LIBRARY_PATH", &stub)])?;
    }
    reports.judge()
}

/// Builds everything that runs in the recorded programs.
fn build(folder: &Path) -> Result<()> {
    let sysroot = command::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let libraries = Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(TARGET)
        .join("lib");
    let standard = fs::read_dir(&libraries)
        .with_context(|| format!("{} has no standard library", libraries.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libstd-") && name.ends_with(".rlib")
        })
        .context("the toolchain has no standard library to link")?;
    let symbols = command::output(Command::new("readelf").arg("-sW").arg(&standard))?;
    let mut source = "void __tsan_acquire(void *); void __tsan_release(void *);\n".to_owned();
    let shim = folder.join("shim.o");
    let mut flags = format!(
        "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer -Clink-arg=-rdynamic -Clink-arg={}",
        shim.display()
    );
    for (ending, text) in SHIM {
        let name = (symbols.lines())
            .filter(|line| line.contains(" GLOBAL "))
            .filter_map(|line| line.split(' ').next_back())
            .find(|name| name.ends_with(ending))
            .with_context(|| format!("the standard library has no function {ending} any more"))?;
        let text = text
            .replace("REAL", &format!("__real_{name}"))
            .replace("WRAP", &format!("__wrap_{name}"));
        source += &format!("{text}\n");
        flags += &format!(" -Clink-arg=-Wl,--wrap={name}");
    }
    let file = folder.join("shim.c");
    fs::write(&file, source)?;
    command::run(
        Command::new("cc")
            .args(["-c", "-O1", "-fPIC", "-o"])
            .args([&shim, &file]),
    )?;
    let mut cargo = command::cargo_line(
        "build -p planted -p gapscope-vulkan -p gapscope-cuda -p fake-vulkan-driver -p fake-cuda",
    );
    cargo.args(["--target", TARGET, "--target-dir"]).arg(folder);
    cargo.env("RUSTFLAGS", flags).env("RUSTC_BOOTSTRAP", "1");
    command::run(&mut cargo)
}

/// The reports of the sanitizer while programs are recorded.
struct Reports {
    folder: PathBuf,
    /// The programs that have been recorded.
    recorded: u32,
}

impl Reports {
    fn new(folder: &Path) -> Result<Reports> {
        let reports = folder.join("reports");
        let _ = fs::remove_dir_all(&reports);
        fs::create_dir_all(&reports)?;
        fs::write(reports.join("suppressions"), SUPPRESSIONS)?;
        Ok(Reports {
            folder: reports,
            recorded: 0,
        })
    }

    /// Records one program with the hooks of `built`.
    fn record(
        &mut self,
        built: &Path,
        program: &str,
        variables: &[(&str, &PathBuf)],
    ) -> Result<()> {
        let trace = self.folder.join(format!("{}.gapscope", self.recorded));
        self.recorded += 1;
        let options = format!(
            "suppressions={0}/suppressions log_path={0}/report exitcode=0 die_after_fork=0 history_size=4",
            self.folder.display()
        );
        let mut record = Command::new(target("debug/gapscope"));
        record
            .args(["record", "--no-report", "--quiet", "-o"])
            .arg(trace);
        record.arg("--").args(program.split(' '));
        record
            .env("TSAN_OPTIONS", options)
            .env("GAPSCOPE_HOOKS_DIR", built);
        record.envs(variables.iter().copied());
        record.stdout(std::process::Stdio::null());
        command::run(&mut record)
    }

    /// Fails where there is a report.
    fn judge(&self) -> Result<()> {
        let mut count = 0;
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("report") {
                let text = fs::read_to_string(&path)?;
                for summary in text.lines().filter(|line| line.starts_with("SUMMARY")) {
                    count += 1;
                    eprintln!("{}: {summary}", path.display());
                }
            }
        }
        match count {
            0 => {
                eprintln!(
                    "ThreadSanitizer found nothing in {} recorded programs",
                    self.recorded
                );
                Ok(())
            }
            _ => bail!("ThreadSanitizer reported {count} faults"),
        }
    }
}
