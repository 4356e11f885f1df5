//! Times a kernel natively on Metal through the SDK: sets labels, runs a kernel that doubles numbers three times, and
//! prints the profile, which is the time of each kernel.
//!
//! `GAPSCOPE_PROFILE_DISPATCH=1 cargo run -p doubled`, on a Mac. With `MTL_CAPTURE_ENABLED=1
//! GAPSCOPE_CAPTURE=forward.gputrace` it also captures the window.

#[cfg(target_vendor = "apple")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use gapscope_sdk::metal::{Device, Dispatch, Object, Wanted};
    use gapscope_sdk::{Capture, kernel_profile};
    use objc2_foundation::NSString;
    use objc2_metal::{
        MTLBuffer, MTLComputeCommandEncoder, MTLComputePipelineState, MTLDevice, MTLLibrary,
        MTLResourceOptions, MTLSize,
    };

    const SOURCE: &str = "
        #include <metal_stdlib>
        kernel void doubled(device float *data [[buffer(0)]], uint at [[thread_position_in_grid]]) {
            data[at] *= 2.0;
        }";
    const COUNT: usize = 1 << 20;

    let device = Device::system_default(Wanted::from_env(), kernel_profile::global())
        .ok_or("there is no Metal")?;
    let queue = device.queue("Stream 0")?;
    let library = device.compile("doubled", SOURCE)?;
    let function = library
        .newFunctionWithName(&NSString::from_str("doubled"))
        .ok_or("there is no function")?;
    let pipeline = device
        .raw()
        .newComputePipelineStateWithFunction_error(&function)
        .map_err(|error| error.localizedDescription().to_string())?;
    let buffer = device
        .raw()
        .newBufferWithLength_options(COUNT * 4, MTLResourceOptions::StorageModeShared)
        .ok_or("Metal gave no buffer")?;

    let captured = device
        .capture(Object::Device, std::slice::from_ref(&queue))
        .device();
    let mut capture = Capture::from_env(&captured);
    if let Ok(capture) = &mut capture {
        capture.begin()?;
    }
    for step in 0..3 {
        let label = format!("step {step}");
        let _step = gapscope_sdk::label::label(&label);
        let mut commands = queue.command_buffer()?;
        let mut pass = commands.compute_pass("double")?;
        let dispatch = Dispatch {
            kernel: "doubled".into(),
            groups: Some([(COUNT / 256) as u32, 1, 1]),
            group_size: Some([256, 1, 1]),
            ..Dispatch::default()
        };
        pass.dispatch(dispatch, |encoder| {
            encoder.setComputePipelineState(&pipeline);
            let size = |width| MTLSize {
                width,
                height: 1,
                depth: 1,
            };
            // SAFETY: the kernel reads and writes COUNT floats, the size of the buffer.
            unsafe { encoder.setBuffer_offset_atIndex(Some(&buffer), 0, 0) };
            encoder.dispatchThreadgroups_threadsPerThreadgroup(size(COUNT / 256), size(256));
        })?;
        pass.end();
        let submitted = commands.commit_and_wait_labeled(&label)?;
        println!("{submitted:?}");
    }
    match capture.and_then(|mut capture| capture.end()) {
        Ok(captured) => println!("captured {:?}", captured.path()),
        Err(why) => println!("not captured: {why}"),
    }
    println!("{}", kernel_profile::global().snapshot());
    println!(
        "{} bytes in {}",
        buffer.length(),
        pipeline.maxTotalThreadsPerThreadgroup()
    );
    Ok(())
}

#[cfg(not(target_vendor = "apple"))]
fn main() {
    println!("Metal is on Apple's systems only: the SDK's examples are for Vulkan.");
}

#[cfg(target_vendor = "apple")]
#[allow(clippy::all, unused, reason = "they are compiled, and never called")]
mod documentation {
    include!(concat!(env!("OUT_DIR"), "/examples.rs"));
}
