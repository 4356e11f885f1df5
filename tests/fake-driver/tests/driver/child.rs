//! Runs a test again in a process of its own, with the driver configured by variables.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files that a run left behind.
pub struct Outcome {
    pub misuse: Vec<String>,
    pub truth: Vec<Line>,
    pub output: String,
}

/// A line of the truth log.
pub struct Line(String);

const CHILD: &str = "FAKE_VK_TEST_CHILD";

/// Runs the scenario in a child process, and checks what the process left behind. The scenario is a closure of the
/// calling test, which the child runs alone.
pub fn run(variables: &[(&str, &str)], scenario: impl FnOnce(), check: impl FnOnce(Outcome)) {
    if let Some(outcome) = outcome(variables, scenario) {
        check(outcome);
    }
}

/// Returns what a run of the scenario left behind, as for [`run`]; `None` in the child process itself.
pub fn outcome<S: FnOnce()>(variables: &[(&str, &str)], scenario: S) -> Option<Outcome> {
    // The type of a closure is named after the crate, the modules and the function in which it is.
    let closure = std::any::type_name::<S>();
    let (_, test) = closure.split_once("::").expect("the crate");
    let test = test.trim_end_matches("::{{closure}}");
    if std::env::var(CHILD).is_ok_and(|child| child == test) {
        scenario();
        return None;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test.replace("::", "-"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    let manifest = folder.join("fake.json");
    let library = library();
    let text = format!(
        r#"{{"file_format_version":"1.0.0","ICD":{{"library_path":"{}","api_version":"1.3.280"}}}}"#,
        library.display()
    );
    fs::write(&manifest, text).expect("the manifest");
    let (misuse, truth) = (folder.join("misuse"), folder.join("truth"));
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, test)
        .env("VK_DRIVER_FILES", &manifest)
        .env("FAKE_VK_MISUSE_LOG", &misuse)
        .env("FAKE_VK_TRUTH", &truth)
        .envs(variables.iter().copied())
        .output()
        .expect("the child runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{test}: {}\n{text}\n{errors}",
        output.status
    );
    assert!(text.contains("1 passed"), "no test is named {test}");
    Some(Outcome {
        misuse: lines(&misuse),
        truth: lines(&truth).into_iter().map(Line).collect(),
        output: text,
    })
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path)
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn library() -> PathBuf {
    const NAME: &str = "libfake_vulkan_driver.so";
    let program = std::env::current_exe().expect("this program");
    let found = program
        .ancestors()
        .skip(1)
        .map(|folder| folder.join(NAME))
        .find(|path| path.exists());
    found.expect("the driver is built")
}

impl Outcome {
    pub fn of_kind(&self, kind: &str) -> Vec<&Line> {
        let wanted = format!(r#""kind":"{kind}""#);
        self.truth
            .iter()
            .filter(|line| line.0.contains(&wanted))
            .collect()
    }

    pub fn assert_clean(&self) {
        assert!(self.misuse.is_empty(), "{:#?}", self.misuse);
    }

    pub fn assert_misuse(&self, expected: &[&str]) {
        assert_eq!(self.misuse.len(), expected.len(), "{:#?}", self.misuse);
        for (line, expected) in self.misuse.iter().zip(expected) {
            assert!(line.starts_with(expected), "{line} is not {expected}");
        }
    }
}

impl Line {
    pub fn number(&self, field: &str) -> u64 {
        let start = self.0.find(&format!("\"{field}\":")).expect("the field") + field.len() + 3;
        let digits = self.0[start..].find([',', '}']).expect("its end");
        self.0[start..start + digits].parse().expect("a number")
    }

    pub fn times(&self) -> (u64, u64) {
        (self.number("start_ns"), self.number("end_ns"))
    }
}
