//! Modes that create and dispatch kernels in different ways; most dispatch the kernel `spin`. Tests compare a trace
//! with what a mode did, which [`Truth`] records.

use anyhow::Result;
use ash::vk;

use crate::args::Args;
use crate::buffer::Buffer;
use crate::kernel::{SPIN_MULTIPLIER, Shader, compile, make_specialisable, spin_wgsl};
use crate::setup::Setup;
use crate::spin::data_bytes;
use crate::truth::{Truth, monotonic_ns};

/// Makes a pipeline of another kernel before each submission, and notes how long that took in all. SPIR-V is compiled
/// before.
pub fn pipelines_in_loop(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let mut modules = Vec::new();
    for iteration in 0..args.iterations {
        let name = format!("spin_{iteration}");
        modules.push((
            compile(&spin_wgsl(&name, SPIN_MULTIPLIER + 2 * iteration))?,
            name,
        ));
    }
    let mut pipeline_ns = 0;
    for (spirv, name) in &modules {
        let start = monotonic_ns();
        let pipeline = spin.layout.pipeline(gpu, &Shader::new(spirv, name))?;
        pipeline_ns += monotonic_ns() - start;
        let mut recording = setup.recording()?;
        spin.bind_set(&recording);
        spin.bind_pipeline(&recording, pipeline);
        for _ in 0..args.n {
            recording.dispatch_in_order(spin.groups);
        }
        setup.run(&[&recording.end()?])?;
    }
    truth.note("pipelines", args.iterations);
    truth.note("pipeline_ns", pipeline_ns);
    setup.report(truth)
}

/// Makes `count` pipelines of one SPIR-V module, each with another constant.
pub fn specialise(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let mut spirv = compile(&spin_wgsl("specialised_spin", SPIN_MULTIPLIER))?;
    make_specialisable(&mut spirv, SPIN_MULTIPLIER)?;
    let mut pipelines = Vec::new();
    for kernel in 0..args.count {
        let constant = Some(SPIN_MULTIPLIER + 2 * kernel);
        let shader = Shader {
            constant,
            ..Shader::new(&spirv, "specialised_spin")
        };
        pipelines.push(spin.layout.pipeline(gpu, &shader)?);
    }
    for _ in 0..args.iterations {
        let mut recording = setup.recording()?;
        spin.bind_set(&recording);
        for &pipeline in &pipelines {
            spin.bind_pipeline(&recording, pipeline);
            for _ in 0..args.n {
                recording.dispatch_in_order(spin.groups);
            }
        }
        setup.run(&[&recording.end()?])?;
    }
    truth.note("kernels", args.count);
    setup.report(truth)
}

/// Takes the size of dispatches from a buffer.
pub fn indirect(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let size = Buffer::new(gpu, 16)?;
    let words = [args.groups, 1, 1].map(u32::to_le_bytes);
    size.write(gpu, words.as_flattened())?;
    for _ in 0..args.iterations {
        let mut recording = setup.recording()?;
        spin.bind(&recording);
        for _ in 0..args.n {
            unsafe {
                gpu.device
                    .cmd_dispatch_indirect(recording.buffer, size.handle, 0)
            };
            recording.count_dispatch();
            recording.barrier();
        }
        setup.run(&[&recording.end()?])?;
    }
    setup.report(truth)
}

/// Runs dispatches over the first and the second half of a buffer in turn, by `vkCmdDispatchBase`.
pub fn base(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let halves = Buffer::new(gpu, 2 * data_bytes(args))?;
    spin.layout.point(gpu, spin.set, &halves, vk::WHOLE_SIZE);
    let spirv = compile(&spin_wgsl("spin_from_base", SPIN_MULTIPLIER))?;
    let flags = vk::PipelineCreateFlags::DISPATCH_BASE;
    let pipeline = spin.layout.pipeline(
        gpu,
        &Shader {
            flags,
            ..Shader::new(&spirv, "spin_from_base")
        },
    )?;
    for _ in 0..args.iterations {
        let mut recording = setup.recording()?;
        spin.bind_set(&recording);
        spin.bind_pipeline(&recording, pipeline);
        for dispatch in 0..args.n {
            let base = dispatch % 2 * spin.groups;
            unsafe {
                gpu.device
                    .cmd_dispatch_base(recording.buffer, base, 0, 0, spin.groups, 1, 1)
            };
            recording.count_dispatch();
            recording.barrier();
        }
        setup.run(&[&recording.end()?])?;
    }
    truth.add_result(halves.read(gpu)?);
    setup.report(truth)
}
