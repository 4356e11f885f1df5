//! Generates the kernels, labels, buffers and bindings of a trace.

use super::noise::Noise;
use super::parameters::{PROCESS, Synthetic};
use crate::Tables;
use crate::build::Labels;
use crate::ids::*;
use crate::tables::{Access, Binding, Buffer, Kernel, NameSource, Table};

/// The number of buffers of each queue.
pub(super) const BUFFERS: u32 = 64;
pub(super) const BUFFER_BYTES: u64 = 4 << 20;

/// The first part of kernels' names; later kernels begin again at the first.
const OPERATIONS: [&str; 12] = [
    "rms_norm",
    "mul_mat",
    "rope",
    "mul_mat_vec",
    "soft_max",
    "mul_mat",
    "add",
    "rms_norm",
    "mul_mat",
    "silu",
    "mul_mat",
    "add",
];
/// The second part of kernels' names.
const TYPES: [&str; 4] = ["f32", "f16", "q4_k", "q8_0"];

/// The typical duration and workgroups of a kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct TypicalKernel {
    pub duration_ns: i64,
    pub groups: u32,
}

/// The parts of a layer, each with a label inside that of the layer.
pub(super) const PARTS: [&str; 2] = ["attention", "feed-forward"];
/// The label around the labels of all layers.
pub(super) const FORWARD: LabelId = LabelId(0);

/// Returns the label of layer `layer`, from 0.
pub(super) fn layer_label(layer: u32) -> LabelId {
    LabelId(FORWARD.0 + 1 + layer * (1 + PARTS.len() as u32))
}

/// Returns the id of buffer `buffer`, from 0, of a queue.
pub(super) fn buffer_id(queue: QueueId, buffer: u32) -> BufferId {
    BufferId((queue.0 - 1) * BUFFERS + buffer % BUFFERS + 1)
}

/// Adds kernels, labels, buffers and bindings. Returns the typical values of each kernel.
pub(super) fn add(
    parameters: &Synthetic,
    noise: &mut Noise,
    tables: &mut Tables,
) -> Vec<TypicalKernel> {
    labels(parameters, tables);
    for queue in parameters.queues() {
        buffers(parameters, queue, tables);
    }
    let count = parameters.kernels.max(1);
    let kernel = |id: u32| {
        let at = id as usize - 1;
        let operation = OPERATIONS[at % OPERATIONS.len()];
        let variant = at / OPERATIONS.len();
        let kind = TYPES[variant % TYPES.len()];
        let tile = 16 << (variant / TYPES.len() % 4);
        let unroll = 1 + at / (OPERATIONS.len() * TYPES.len() * 4);
        tables.kernels.push(Kernel {
            id: KernelId(id),
            process: PROCESS,
            name: format!("{operation}_{kind}_t{tile}_u{unroll}_{at}").into(),
            name_source: NameSource::ObjectName,
            entry_point: Some("main".into()),
            source: Some(
                format!("{:064x}", u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15)).into(),
            ),
            local_x: Some(tile * 4),
            local_y: Some(1),
            local_z: Some(1),
            specialisation: None,
            full_name: None,
            source_file: None,
            source_file_hash: None,
            registers: None,
            local_bytes: None,
            static_shared_bytes: None,
            dynamic_shared_bytes: None,
            accesses: None,
        });
        // From 2 to 66 us, short ones more often.
        let duration_ns = (2_000 << noise.below(6)) + noise.between(0, 2_000);
        TypicalKernel {
            duration_ns,
            groups: 1 << noise.between(2, 12),
        }
    };
    (1..=count).map(kernel).collect()
}

/// Adds the labels in the order of their ids: see [`layer_label`].
fn labels(parameters: &Synthetic, tables: &mut Tables) {
    let mut labels = Labels::default();
    let forward = labels.named(None, "forward");
    for layer in 0..parameters.layers.max(1) {
        let layer = labels.named(Some(forward), &format!("layer {layer}"));
        for text in PARTS {
            labels.named(Some(layer), text);
        }
    }
    labels.push_into(&mut tables.labels);
}

/// Adds buffers and bindings: a dispatch reads one buffer of its queue and writes the next. Binding set N begins with
/// buffer N.
fn buffers(parameters: &Synthetic, queue: QueueId, tables: &mut Tables) {
    for buffer in 0..BUFFERS {
        let id = buffer_id(queue, buffer);
        tables.buffers.push(Buffer {
            id,
            process: PROCESS,
            device: parameters.device_of(queue),
            bytes: BUFFER_BYTES,
            allocation: Some(AllocationId(queue.0)),
            offset_bytes: Some(u64::from(buffer) * BUFFER_BYTES),
            name: (buffer % 4 == 0).then(|| format!("activations {queue}.{buffer}").into()),
        });
        for (binding, access) in [(0, Access::Read), (1, Access::Write)] {
            tables.bindings.push(Binding {
                id: BindingSetId(id.0),
                set: 0,
                binding,
                element: 0,
                buffer: buffer_id(queue, buffer + binding),
                offset_bytes: 0,
                bytes: BUFFER_BYTES,
                access,
            });
        }
    }
}
