//! A mode of the program `planted` that runs kernels without pipelines, as shader objects.

use anyhow::{Context, Result};
use ash::vk;

use crate::args::Args;
use crate::gpu::Object;
use crate::kernel::{SPIN_MULTIPLIER, compile, spin_wgsl};
use crate::setup::Setup;
use crate::truth::Truth;

/// Runs n times a dispatch of a pipeline and then one of a shader object; `truth` gets what a trace should show.
pub fn shader_objects(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let functions = gpu.shader_object.as_ref().context("it is enabled")?;
    let spirv = compile(&spin_wgsl("spin_object", SPIN_MULTIPLIER))?;
    let code: Vec<u8> = spirv.iter().flat_map(|word| word.to_le_bytes()).collect();
    let stage = vk::ShaderStageFlags::COMPUTE;
    let layouts = [spin.layout.set];
    let ranges = [vk::PushConstantRange::default().size(4).stage_flags(stage)];
    let info = [vk::ShaderCreateInfoEXT::default()
        .stage(stage)
        .code_type(vk::ShaderCodeTypeEXT::SPIRV)
        .code(&code)
        .name(c"spin_object")
        .set_layouts(&layouts)
        .push_constant_ranges(&ranges)];
    let created = unsafe { functions.create_shaders(&info, None) };
    let shader = created.map_err(|(_, error)| error)?[0];
    gpu.own(Object::Shader(shader));
    gpu.name(shader, c"named shader object")?;
    for _ in 0..args.iterations {
        let mut recording = setup.recording()?;
        for _ in 0..args.n {
            spin.bind(&recording);
            recording.dispatch_in_order(spin.groups);
            unsafe { functions.cmd_bind_shaders(recording.buffer, &[stage], &[shader]) };
            recording.dispatch_in_order(spin.groups);
        }
        setup.run(&[&recording.end()?])?;
    }
    truth.note("object_dispatches", args.iterations * args.n);
    setup.report(truth)
}
