//! Finds the installed Vulkan drivers in the places where the Vulkan loader (the library between programs and
//! drivers) looks: each driver has a manifest, a JSON file that names its library.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The variables that tell a program to open a driver.
pub const VARIABLES: [&str; 4] = [
    "NCNN_VULKAN_DRIVER",
    "VK_DRIVER_FILES",
    "VK_ICD_FILENAMES",
    "VK_ADD_DRIVER_FILES",
];

/// Returns the names of the libraries of all installed Vulkan drivers, without their versions.
pub fn libraries() -> HashSet<OsString> {
    manifests()
        .iter()
        .filter_map(|manifest| library(manifest))
        .collect()
}

/// Returns the manifests of installed drivers, each once: those in the loader's folders and those that variables
/// name.
pub fn manifests() -> Vec<PathBuf> {
    let list = |variable: &str, default: &str| {
        let value = std::env::var_os(variable).filter(|v| !v.is_empty());
        std::env::split_paths(&value.unwrap_or_else(|| default.into())).collect::<Vec<_>>()
    };
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let mut bases = vec![PathBuf::from("/usr/local/etc"), PathBuf::from("/etc")];
    bases.extend(list("XDG_CONFIG_DIRS", "/etc/xdg"));
    bases.extend(list("XDG_DATA_DIRS", "/usr/local/share:/usr/share"));
    bases.extend(["/usr/local/share", "/usr/share"].map(PathBuf::from));
    bases.extend([home.join(".local/share"), home.join(".config")]);
    let mut manifests: Vec<PathBuf> = bases
        .iter()
        .flat_map(|base| json_files(&base.join("vulkan/icd.d")))
        .collect();
    for variable in VARIABLES {
        for path in list(variable, "") {
            if path.is_dir() {
                manifests.extend(json_files(&path));
            } else {
                manifests.push(path);
            }
        }
    }
    let mut seen = HashSet::new();
    manifests.retain(|manifest| seen.insert(manifest.clone()));
    manifests
}

/// Returns the files of a folder whose names end in `.json`; none when there is no such folder.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect()
}

/// Returns the library that a driver's manifest names. The path may also be that of a library, as ncnn allows.
fn library(manifest: &Path) -> Option<OsString> {
    if manifest.extension().is_none_or(|e| e != "json") {
        return manifest.file_name().map(unversioned);
    }
    let text = std::fs::read(manifest).ok()?;
    let json: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let path = json.get("ICD")?.get("library_path")?.as_str()?;
    Path::new(path).file_name().map(unversioned)
}

/// Returns a library's name without its version. A manifest names `libGLX_nvidia.so.0`, but the file that is mapped
/// is the one behind that link, `libGLX_nvidia.so.580.159.04`.
pub fn unversioned(library: &OsStr) -> OsString {
    let name = library.to_string_lossy();
    match name.split_once(".so.") {
        Some((base, _)) => format!("{base}.so").into(),
        None => library.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drivers_library_is_read_from_its_manifest() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("driver.json");
        let json =
            r#"{"ICD": {"library_path": "../lib/libvulkan_made_up.so", "api_version": "1.3.0"}}"#;
        std::fs::write(&manifest, json).unwrap();
        assert_eq!(library(&manifest), Some("libvulkan_made_up.so".into()));
        std::fs::write(&manifest, "{").unwrap();
        assert_eq!(library(&manifest), None);
        assert_eq!(
            library(Path::new("/opt/libvulkan_direct.so")),
            Some("libvulkan_direct.so".into())
        );
    }

    #[test]
    fn a_library_is_known_behind_its_link() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("driver.json");
        std::fs::write(
            &manifest,
            r#"{"ICD": {"library_path": "libGLX_made_up.so.0"}}"#,
        )
        .unwrap();
        let mapped = unversioned(OsStr::new("libGLX_made_up.so.580.159.04"));
        assert_eq!(library(&manifest), Some(mapped));
    }
}
