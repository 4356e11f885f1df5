//! Makes the groups that tracks (lines of the page) are drawn in, with ids and names: one for each GPU and recorded
//! process, and one for the host.

use crate::protocol::{Group, GroupKind};
use crate::texts::cut;
use gapscope_timeline::vocabulary::Vocabulary;
use gapscope_trace::ids::ProcessId;

impl Group {
    /// Returns the group of a GPU.
    pub fn gpu(vocabulary: &Vocabulary, gpu: usize) -> Group {
        let gpus = vocabulary.gpus();
        Group {
            id: format!("g{gpu}"),
            kind: GroupKind::Gpu,
            name: cut(&gpus.title(gpu)),
            device_ids: gpus.devices(gpu).to_vec(),
            process: None,
        }
    }

    /// Returns the group of the host as a whole.
    pub fn host() -> Group {
        Group {
            id: "host".to_owned(),
            kind: GroupKind::Host,
            name: "host".to_owned(),
            device_ids: Vec::new(),
            process: None,
        }
    }

    /// Returns the group of a recorded process.
    pub fn process(vocabulary: &Vocabulary, id: ProcessId) -> Group {
        Group {
            id: format!("p{id}"),
            kind: GroupKind::Process,
            name: cut(&vocabulary.process(id)),
            device_ids: Vec::new(),
            process: Some(id),
        }
    }
}
