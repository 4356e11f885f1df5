//! The groups of a trace: its GPUs and its recorded processes.

use crate::texts::cut;
use gapscope_timeline::vocabulary::Vocabulary;
use gapscope_trace::ids::{DeviceId, ProcessId};
use serde::Serialize;

/// A GPU, a recorded process, or the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    pub id: String,
    pub kind: &'static str,
    pub name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_ids: Vec<DeviceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessId>,
}

impl Group {
    /// The group of a GPU.
    pub fn gpu(vocabulary: &Vocabulary, gpu: usize) -> Group {
        let gpus = vocabulary.gpus();
        Group {
            id: format!("g{gpu}"),
            kind: "gpu",
            name: cut(&gpus.title(gpu)),
            device_ids: gpus.devices(gpu).to_vec(),
            process: None,
        }
    }

    /// The group of what is of the host as a whole.
    pub fn host() -> Group {
        Group {
            id: "host".to_owned(),
            kind: "host",
            name: "host".to_owned(),
            device_ids: Vec::new(),
            process: None,
        }
    }

    /// The group of a recorded process.
    pub fn process(vocabulary: &Vocabulary, id: ProcessId) -> Group {
        Group {
            id: format!("p{id}"),
            kind: "process",
            name: cut(&vocabulary.process(id)),
            device_ids: Vec::new(),
            process: Some(id),
        }
    }
}
