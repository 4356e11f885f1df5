//! Chooses the Vulkan driver on which a program runs.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::product;

/// A driver, as the environment variables that select it.
pub trait Driver {
    fn variables(&self) -> Vec<(String, String)>;
}

/// Mesa's software GPU, also on machines with other GPUs.
pub struct Lavapipe;

impl Driver for Lavapipe {
    fn variables(&self) -> Vec<(String, String)> {
        // With VK_DRIVER_FILES, ncnn would bypass the loader.
        vec![("VK_LOADER_DRIVERS_SELECT".into(), "lvp*".into())]
    }
}

/// The project's fake driver, with a log of what it did and of the misuse that it saw.
pub struct Fake {
    folder: TempDir,
    settings: Vec<(String, String)>,
}

impl Fake {
    /// Creates a fake driver with a folder for its log. `settings` are `FAKE_VK_*` variables without the prefix.
    pub fn new(settings: &[(&str, &str)]) -> Fake {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let manifest = json!({
            "file_format_version": "1.0.0",
            "ICD": { "library_path": product::built("libfake_vulkan_driver.so"), "api_version": "1.3.280" },
        });
        fs::write(folder.path().join("fake.json"), manifest.to_string())
            .expect("the folder can be written");
        let settings = settings
            .iter()
            .map(|(name, value)| (format!("FAKE_VK_{name}"), (*value).to_owned()));
        Fake {
            folder,
            settings: settings.collect(),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the entries of the driver's log about executed work, in their order.
    pub fn truth(&self) -> Vec<Value> {
        let text =
            fs::read_to_string(self.file("truth.jsonl")).expect("the driver wrote what it did");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a line of JSON"))
            .collect()
    }

    /// Returns each misuse of Vulkan that the driver saw, whether by the program or by gapscope.
    pub fn misuse(&self) -> String {
        fs::read_to_string(self.file("misuse.log")).unwrap_or_default()
    }
}

impl Driver for Fake {
    fn variables(&self) -> Vec<(String, String)> {
        let path = |name: &str| self.file(name).to_string_lossy().into_owned();
        let mut variables = vec![
            ("VK_DRIVER_FILES".into(), path("fake.json")),
            ("FAKE_VK_TRUTH".into(), path("truth.jsonl")),
            ("FAKE_VK_MISUSE_LOG".into(), path("misuse.log")),
        ];
        variables.extend(self.settings.iter().cloned());
        variables
    }
}
