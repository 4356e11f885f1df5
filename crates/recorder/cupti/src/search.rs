//! Finds the places where libcupti may be, the best first: a [`SearchContext`] goes in, [`Candidate`]s come out.
//!
//! The copy that the program has loaded already comes first, because two copies in one process fight for the driver's
//! only place. Then come the packages of the program's Python, which match its CUDA, then toolkits.

use gapscope_model::memory_maps::mappings;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The facts that the search depends on.
#[derive(Debug, Default)]
pub struct SearchContext {
    /// The files that are mapped into the process.
    pub mapped: Vec<PathBuf>,
    /// The executable.
    pub executable: PathBuf,
    /// The variables `VIRTUAL_ENV`, `CONDA_PREFIX`, `PYTHONPATH`, `CUDA_HOME` and `CUDA_PATH`.
    pub variables: Vec<(&'static str, OsString)>,
    /// The newest CUDA that the driver supports, as 1000 × major + 10 × minor.
    pub driver: Option<u32>,
    /// The folder where toolkits are installed: `/usr/local`.
    pub toolkits: PathBuf,
}

/// A place to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Candidate {
    /// A file that the process has loaded.
    Loaded(PathBuf),
    /// A file that exists.
    File(PathBuf),
    /// A name that the linker searches for.
    Name(String),
}

/// The variables that the search reads.
const VARIABLES: [&str; 5] = [
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "CUDA_HOME",
    "CUDA_PATH",
];

/// A toolkit's names of the program's architecture; the libraries of others are for cross compilers. On ARM there are
/// servers and, up to CUDA 12, Jetson with libraries of its own.
const TOOLKIT_TARGETS: &[&str] = if cfg!(target_arch = "aarch64") {
    &["sbsa-linux", "aarch64-linux"]
} else {
    &["x86_64-linux"]
};

/// Returns the folders of a toolkit's libraries.
fn toolkit_folders() -> impl Iterator<Item = String> {
    let targets = TOOLKIT_TARGETS
        .iter()
        .map(|target| format!("targets/{target}/lib"));
    targets.chain(["extras/CUPTI/lib64", "lib64"].map(str::to_owned))
}

impl SearchContext {
    /// Describes this process. `driver` is the newest CUDA that the driver supports.
    pub fn for_this_process(driver: Option<u32>) -> SearchContext {
        let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
        SearchContext {
            mapped: mapped_files(&maps),
            ..SearchContext::for_command(std::env::current_exe().unwrap_or_default(), driver)
        }
    }

    /// Describes a command that has not started, with the variables of this process.
    pub fn for_command(executable: PathBuf, driver: Option<u32>) -> SearchContext {
        SearchContext {
            mapped: Vec::new(),
            executable,
            variables: VARIABLES
                .into_iter()
                .filter_map(|name| std::env::var_os(name).map(|value| (name, value)))
                .collect(),
            driver,
            toolkits: PathBuf::from("/usr/local"),
        }
    }

    /// Returns the absolute paths in a variable, which separates them by colons.
    fn paths(&self, variable: &str) -> Vec<PathBuf> {
        let value = self.variables.iter().find(|(name, _)| *name == variable);
        value.map_or(Vec::new(), |(_, value)| {
            std::env::split_paths(value)
                .filter(|p| p.is_absolute())
                .collect()
        })
    }

    /// Returns the major versions of CUDA that the driver supports, the newest first; 13 and 12 where the driver is
    /// unknown.
    fn majors(&self) -> Vec<u32> {
        let newest = self.driver.map_or(13, |version| version / 1000);
        [13, 12]
            .into_iter()
            .filter(|major| *major <= newest)
            .collect()
    }
}

/// Returns the files that `/proc/PID/maps` names, sorted, each once.
pub fn mapped_files(maps: &[u8]) -> Vec<PathBuf> {
    let files: BTreeSet<&[u8]> = mappings(maps).filter_map(|mapping| mapping.path).collect();
    let files = files.into_iter().map(OsStr::from_bytes);
    files.map(PathBuf::from).collect()
}

/// Returns the places to try, the best first, each once.
pub fn candidates(context: &SearchContext) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut add = |candidate: Candidate| {
        if !found.contains(&candidate) {
            found.push(candidate);
        }
    };
    for path in &context.mapped {
        if file_name(path).starts_with("libcupti.so") && !is_private(path) {
            add(Candidate::Loaded(path.clone()));
        }
    }
    let packages = python_packages(context);
    for major in context.majors() {
        for folder in &packages {
            for place in [
                format!("nvidia/cu{major}/lib"),
                "nvidia/cuda_cupti/lib".to_owned(),
            ] {
                let path = folder.join(place).join(format!("libcupti.so.{major}"));
                if path.is_file() {
                    add(Candidate::File(path));
                }
            }
        }
    }
    for major in context.majors() {
        for root in toolkits(context) {
            for folder in toolkit_folders() {
                let path = root.join(folder).join(format!("libcupti.so.{major}"));
                if path.is_file() {
                    add(Candidate::File(path));
                }
            }
        }
    }
    for major in context.majors() {
        add(Candidate::Name(format!("libcupti.so.{major}")));
    }
    found
}

/// Returns the folders of Python packages that belong to the program.
fn python_packages(context: &SearchContext) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut add = |folder: PathBuf| {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    };
    for path in &context.mapped {
        for folder in path.ancestors() {
            if ["site-packages", "dist-packages"].contains(&file_name(folder).as_str()) {
                add(folder.to_owned());
            }
        }
    }
    for folder in context.paths("PYTHONPATH") {
        add(folder);
    }
    let roots = context
        .paths("VIRTUAL_ENV")
        .into_iter()
        .chain(context.paths("CONDA_PREFIX"));
    // PREFIX/bin/python3
    for root in roots.chain(context.executable.ancestors().nth(2).map(Path::to_owned)) {
        for lib in ["lib", "lib64"] {
            let Ok(entries) = root.join(lib).read_dir() else {
                continue;
            };
            for python in entries.flatten().map(|e| e.path()) {
                if file_name(&python).starts_with("python3") {
                    add(python.join("site-packages"));
                    add(python.join("dist-packages"));
                }
            }
        }
    }
    folders
}

/// Returns the folders of toolkits: those of variables, then the default one, then versions, the latest name first.
fn toolkits(context: &SearchContext) -> Vec<PathBuf> {
    let mut roots = context.paths("CUDA_HOME");
    roots.extend(context.paths("CUDA_PATH"));
    roots.extend(context.paths("CONDA_PREFIX"));
    roots.push(context.toolkits.join("cuda"));
    let mut versions: Vec<PathBuf> = context.toolkits.read_dir().map_or(Vec::new(), |entries| {
        entries
            .flatten()
            .map(|e| e.path())
            .filter(|p| file_name(p).starts_with("cuda-"))
            .collect()
    });
    versions.sort();
    roots.extend(versions.into_iter().rev());
    roots
}

/// Returns whether a package keeps a copy for itself, of another version than the program's CUDA.
fn is_private(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "triton")
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map_or(String::new(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    struct Disk(TempDir);

    impl Disk {
        fn new() -> Disk {
            Disk(tempfile::tempdir().expect("a folder"))
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn file(&self, path: &str) -> PathBuf {
            let path = self.path(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(&path, "").expect("a file");
            path
        }

        fn context(&self) -> SearchContext {
            SearchContext {
                driver: Some(13_000),
                toolkits: self.path("usr-local"),
                ..SearchContext::default()
            }
        }
    }

    /// Returns the folders of this machine's libraries.
    fn targets() -> &'static [&'static str] {
        match std::env::consts::ARCH {
            "aarch64" => &["targets/sbsa-linux/lib", "targets/aarch64-linux/lib"],
            _ => &["targets/x86_64-linux/lib"],
        }
    }

    fn names(majors: &[u32]) -> Vec<Candidate> {
        majors
            .iter()
            .map(|m| Candidate::Name(format!("libcupti.so.{m}")))
            .collect()
    }

    #[test]
    fn the_copy_that_the_program_has_loaded_comes_before_all_others() {
        let disk = Disk::new();
        let wheel = disk.file("env/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13");
        let mut context = disk.context();
        context.mapped = vec![
            "/opt/x/libcupti.so.2025.3.1".into(),
            disk.path("env/lib/python3.12/site-packages/torch/lib/libtorch.so"),
        ];
        let found = candidates(&context);
        assert_eq!(
            found[..2],
            [
                Candidate::Loaded("/opt/x/libcupti.so.2025.3.1".into()),
                Candidate::File(wheel)
            ]
        );
    }

    #[test]
    fn tritons_own_copy_is_left_alone() {
        let disk = Disk::new();
        let mut context = disk.context();
        context.mapped =
            vec!["/env/site-packages/triton/backends/nvidia/lib/cupti/libcupti.so.12".into()];
        assert_eq!(candidates(&context), names(&[13, 12]));
    }

    #[test]
    fn the_packages_of_the_programs_python_are_found_though_nothing_of_them_is_loaded() {
        let disk = Disk::new();
        let thirteen = disk.file("env/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13");
        let twelve =
            disk.file("env/lib/python3.12/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12");
        let mut context = disk.context();
        context.executable = disk.path("env/bin/python3");
        let expected = [Candidate::File(thirteen), Candidate::File(twelve)];
        assert_eq!(candidates(&context)[..2], expected);
        context.executable = "/usr/bin/python3".into();
        context.variables = vec![("VIRTUAL_ENV", disk.path("env").into())];
        assert_eq!(candidates(&context)[..2], expected);
        context.variables = vec![(
            "PYTHONPATH",
            disk.path("env/lib/python3.12/site-packages").into(),
        )];
        assert_eq!(candidates(&context)[..2], expected);
    }

    #[test]
    fn what_is_newer_than_the_driver_is_not_tried() {
        let disk = Disk::new();
        let twelve = disk.file("usr-local/cuda-12.8/extras/CUPTI/lib64/libcupti.so.12");
        disk.file(&format!(
            "usr-local/cuda-13.0/{}/libcupti.so.13",
            targets()[0]
        ));
        let mut context = disk.context();
        context.driver = Some(12_080);
        let mut expected = vec![Candidate::File(twelve)];
        expected.extend(names(&[12]));
        assert_eq!(candidates(&context), expected);
    }

    #[test]
    fn of_toolkits_the_one_that_the_user_names_comes_first_and_then_the_newest() {
        let disk = Disk::new();
        let [old, new] = ["13.0", "13.2"].map(|version| {
            disk.file(&format!(
                "usr-local/cuda-{version}/{}/libcupti.so.13",
                targets()[0]
            ))
        });
        let named = disk.file("opt/cuda/lib64/libcupti.so.13");
        let mut context = disk.context();
        context.variables = vec![("CUDA_HOME", disk.path("opt/cuda").into())];
        let expected = [named, new, old].map(Candidate::File);
        assert_eq!(candidates(&context)[..3], expected);
    }

    #[test]
    fn of_a_toolkit_the_libraries_for_this_machine_are_tried_and_not_those_of_cross_compilers() {
        let disk = Disk::new();
        let toolkit = "usr-local/cuda-12.9";
        for target in ["x86_64-linux", "sbsa-linux", "aarch64-linux"] {
            disk.file(&format!("{toolkit}/targets/{target}/lib/libcupti.so.12"));
        }
        let mut expected: Vec<_> = (targets().iter())
            .map(|folder| disk.file(&format!("{toolkit}/{folder}/libcupti.so.12")))
            .map(Candidate::File)
            .collect();
        expected.extend(names(&[13, 12]));
        assert_eq!(candidates(&disk.context()), expected);
    }
}
