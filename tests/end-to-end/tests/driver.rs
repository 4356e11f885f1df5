//! The Vulkan driver that a program runs on.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::product;

/// Which driver, as environment variables.
pub trait Driver {
    fn variables(&self) -> Vec<(String, String)>;
}

/// Mesa's software GPU, even where there are others.
pub struct Lavapipe;

impl Driver for Lavapipe {
    fn variables(&self) -> Vec<(String, String)> {
        // Not VK_DRIVER_FILES: with it, ncnn goes round the loader.
        vec![("VK_LOADER_DRIVERS_SELECT".into(), "lvp*".into())]
    }
}

/// The project's fake driver, with a log of what it did and of misuse that it saw.
pub struct Fake {
    folder: PathBuf,
    settings: Vec<(String, String)>,
}

impl Fake {
    /// `settings` are `FAKE_VK_*` variables without the prefix.
    pub fn new(folder: &Path, settings: &[(&str, &str)]) -> Fake {
        let manifest = json!({
            "file_format_version": "1.0.0",
            "ICD": { "library_path": product::built("libfake_vulkan_driver.so"), "api_version": "1.3.280" },
        });
        fs::write(folder.join("fake.json"), manifest.to_string())
            .expect("the folder can be written");
        let settings = settings
            .iter()
            .map(|(name, value)| (format!("FAKE_VK_{name}"), (*value).to_owned()));
        Fake {
            folder: folder.to_owned(),
            settings: settings.collect(),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What the driver executed, in the order of its log.
    pub fn truth(&self) -> Vec<Value> {
        let text =
            fs::read_to_string(self.file("truth.jsonl")).expect("the driver wrote what it did");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a line of JSON"))
            .collect()
    }

    /// Each misuse of Vulkan that the driver saw, of the program or of ours.
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
