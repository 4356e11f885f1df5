//! Compiles compute kernels from WGSL to SPIR-V at run time.

use anyhow::{Context, Result, bail};
use ash::vk;

pub const WORKGROUP_SIZE: u32 = 64;

/// Returns the source of a kernel that changes each element of its buffer for `spin` rounds. The result depends on
/// the number of rounds and dispatches, so that it shows a lost or repeated dispatch.
pub fn spin_wgsl(name: &str, multiplier: u32) -> String {
    format!(
        "
struct Parameters {{ spin: u32 }}
var<immediate> parameters: Parameters;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size({WORKGROUP_SIZE})
fn {name}(@builtin(global_invocation_id) id: vec3u) {{
    if id.x >= arrayLength(&data) {{
        return;
    }}
    var value = data[id.x] + id.x + 1u;
    for (var round = 0u; round < parameters.spin; round++) {{
        value = (value ^ (value >> 15u)) * {multiplier}u + 1013904223u;
    }}
    data[id.x] = value;
}}
"
    )
}

/// The multiplier of the usual kernel, by whose value `make_specialisable` finds the constant.
pub const SPIN_MULTIPLIER: u32 = 739_982_445;

pub fn compile(wgsl: &str) -> Result<Vec<u32>> {
    use naga::valid::{Capabilities, ValidationFlags, Validator};
    let module = naga::front::wgsl::parse_str(wgsl).context("the kernel does not parse")?;
    let info = Validator::new(ValidationFlags::all(), Capabilities::IMMEDIATES)
        .validate(&module)
        .context("the kernel is not valid")?;
    let options = naga::back::spv::Options {
        lang_version: (1, 3),
        force_loop_bounding: false,
        // The flags give the same SPIR-V in debug and release builds.
        flags: naga::back::spv::WriterFlags::DEBUG,
        ..Default::default()
    };
    naga::back::spv::write_vec(&module, &info, &options, None)
        .context("the kernel has no SPIR-V form")
}

pub const SPEC_ID: u32 = 0;

/// Makes the constant `value` of a kernel a specialisation constant, which naga's WGSL does not support. It fails
/// where the SPIR-V has no such constant.
pub fn make_specialisable(spirv: &mut Vec<u32>, value: u32) -> Result<()> {
    const HEADER_WORDS: usize = 5;
    const OP_CONSTANT: u32 = 43;
    const OP_SPEC_CONSTANT: u32 = 50;
    const OP_DECORATE: u32 = 71;
    const DECORATION_SPEC_ID: u32 = 1;
    let mut decorations = None;
    let mut constant = None;
    let mut at = HEADER_WORDS;
    while at < spirv.len() {
        let (words, opcode) = (spirv[at] >> 16, spirv[at] & 0xffff);
        if opcode == OP_DECORATE && decorations.is_none() {
            decorations = Some(at);
        }
        if opcode == OP_CONSTANT && words == 4 && spirv[at + 3] == value {
            spirv[at] = words << 16 | OP_SPEC_CONSTANT;
            constant = Some(spirv[at + 2]);
        }
        at += words as usize;
    }
    let (Some(decorations), Some(constant)) = (decorations, constant) else {
        bail!("the kernel has no constant {value}");
    };
    let decorate = [4 << 16 | OP_DECORATE, constant, DECORATION_SPEC_ID, SPEC_ID];
    spirv.splice(decorations..decorations, decorate);
    Ok(())
}

/// The parts that a pipeline is created from.
pub struct Shader<'a> {
    pub spirv: &'a [u32],
    pub entry_point: &'a str,
    pub flags: vk::PipelineCreateFlags,
    /// The value of the specialisation constant, if the kernel has one.
    pub constant: Option<u32>,
}

impl<'a> Shader<'a> {
    pub fn new(spirv: &'a [u32], entry_point: &'a str) -> Self {
        Self {
            spirv,
            entry_point,
            flags: vk::PipelineCreateFlags::empty(),
            constant: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_multiplier_becomes_a_specialisation_constant() {
        let mut spirv = compile(&spin_wgsl("spin", SPIN_MULTIPLIER)).unwrap();
        let words = spirv.len();
        make_specialisable(&mut spirv, SPIN_MULTIPLIER).unwrap();
        assert_eq!(spirv.len(), words + 4);
        assert!(make_specialisable(&mut spirv, SPIN_MULTIPLIER).is_err());
    }
}
