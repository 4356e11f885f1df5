//! Names of kernels that people read, of all kernels in real traces and of those of other libraries.
//!
//! `tests/kernel-names/README.md` says where they come from.

use gapscope_timeline::vocabulary::KernelNames;
use gapscope_trace::ids::{KernelId, ProcessId};
use gapscope_trace::tables::{Kernel, Kernels, NameSource, Table};
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernel-names")
}

fn table<'a>(names: impl Iterator<Item = &'a str>) -> Kernels {
    let mut table = Kernels::default();
    for (line, id) in names.zip(1..) {
        let (name, full_name) = match line.split_once('\t') {
            Some((name, full_name)) => (name, Some(full_name.to_owned())),
            None => (line, None),
        };
        table.push(Kernel {
            id: KernelId(id),
            process: ProcessId(1),
            name: name.into(),
            name_source: NameSource::EntryPoint,
            entry_point: Some(line.into()),
            full_name: full_name.map(Into::into),
            ..Kernel::default()
        });
    }
    table
}

#[test]
fn kernel_names_of_real_traces_are_readable_and_differ() {
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let table = table(text.lines());
        let names = KernelNames::new(&table);
        let mut lines: Vec<&str> = (0..table.len()).map(|row| names.name(row)).collect();
        let written: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let readable = path.with_extension("readable");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&readable, &written).unwrap();
        }
        let expected = std::fs::read_to_string(&readable).unwrap_or_default();
        assert_eq!(written, expected, "{}", path.display());
        lines.sort();
        lines.dedup();
        assert_eq!(lines.len(), table.len(), "{}", path.display());
    }
}

#[test]
fn recorded_kernels_are_called_as_those_of_other_tools() {
    let lines = |name: &str| -> Vec<String> {
        let text = std::fs::read_to_string(folder().join(name)).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.retain(|line| !line.contains("xmma"));
        lines.sort();
        lines
    };
    assert_eq!(
        lines("h100_2gpu_recorded.readable"),
        lines("h100_2gpu_nsys.readable")
    );
}
