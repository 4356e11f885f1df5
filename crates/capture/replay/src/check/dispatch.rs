//! Checks a dispatch against the limits of the device: its workgroups, and the sizes and offsets of its buffers. What
//! does not fit becomes a reason of the [`DeviceCheck`].

use gapscope_capture::model::{Binding, Dispatch, Groups};

use super::DeviceCheck;

impl DeviceCheck<'_> {
    /// Checks one dispatch, of this number in the window; each reason against the device is added to those of the
    /// check.
    pub(super) fn dispatch(&mut self, number: u64, dispatch: &Dispatch) {
        let capture = self.capture;
        let kernel = &capture.pipelines[&dispatch.pipeline];
        self.checked_kernel = Some(kernel.name.clone());
        let limits = self.adapter.properties.limits;
        let most = limits.max_compute_work_group_count;
        if let Groups::Direct(groups) = dispatch.groups {
            let ends = groups
                .iter()
                .zip(dispatch.base)
                .map(|(n, base)| n.checked_add(base));
            if ends
                .zip(most)
                .any(|(end, most)| end.is_none_or(|end| end > most))
            {
                let [x, y, z] = groups;
                let [a, b, c] = most;
                self.refuse(format!(
                    "dispatch {number} has {x} × {y} × {z} workgroups, and the device allows {a} × {b} × {c}"
                ));
            }
        }
        if let Groups::Indirect(range) = dispatch.groups
            && !capture.place(range).1.is_multiple_of(4)
        {
            self.refuse(format!(
                "dispatch {number} reads its workgroups from no whole word"
            ));
        }
        for binding in &dispatch.bindings {
            self.binding(number, binding);
        }
        self.missing(number, dispatch);
    }

    /// Checks the size and the offset of a bound buffer; a null descriptor needs a feature instead.
    fn binding(&mut self, number: u64, binding: &Binding) {
        let limits = self.adapter.properties.limits;
        let at = format!(
            "dispatch {number}, set {}, binding {}",
            binding.set, binding.binding
        );
        let (most, alignment) = match binding.is_uniform() {
            true => (
                limits.max_uniform_buffer_range,
                limits.min_uniform_buffer_offset_alignment,
            ),
            false => (
                limits.max_storage_buffer_range,
                limits.min_storage_buffer_offset_alignment,
            ),
        };
        let Some(range) = binding.range else {
            self.need_feature("nullDescriptor");
            return;
        };
        if range.bytes == 0 {
            self.refuse(format!("{at} has no bytes"));
        }
        if range.bytes > u64::from(most) {
            let bytes = range.bytes;
            self.refuse(format!(
                "{at} has {bytes} bytes, and the device allows {most}"
            ));
        }
        let (_, offset) = self.capture.place(range);
        if !offset.is_multiple_of(alignment.max(1)) {
            self.refuse(format!(
                "{at} begins at byte {offset} of its memory, and the device needs a multiple of {alignment}"
            ));
        }
    }

    /// Refuses descriptors that the shader uses and the capture does not have.
    fn missing(&mut self, number: u64, dispatch: &Dispatch) {
        let Some(shader) = self.needs.shaders.get(&dispatch.pipeline) else {
            return;
        };
        let missing = shader.slots.iter().filter(|slot| {
            let mut bound = dispatch.bindings.iter();
            slot.is_buffer && !bound.any(|b| (b.set, b.binding) == (slot.set, slot.binding))
        });
        let missing: Vec<_> = missing.map(|slot| (slot.set, slot.binding)).collect();
        for (set, binding) in missing {
            self.refuse(format!(
                "dispatch {number}: what set {set}, binding {binding} is bound to is not in the capture"
            ));
        }
    }
}
