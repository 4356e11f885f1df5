//! A program that comes from mlx-native, whose devices and queues are those of the crate `metal`: the capture of a forward pass.
//!
//! On a Mac: `MTL_CAPTURE_ENABLED=1 MLX_METAL_CAPTURE=pass.gputrace target/debug/examples/from_mlx_native`. It has not run on
//! one.

#[cfg(target_vendor = "apple")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use gapscope_sdk::mlx::metal_capture::MetalCapture;

    // With an mlx_native::MlxDevice, these are device.metal_device() and device.metal_queue().
    let device = metal::Device::system_default().ok_or("there is no Metal")?;
    let queue = device.new_command_queue();

    let mut capture = MetalCapture::from_env(&to_capture(&device, &queue));
    if let Some(ref mut capture) = capture {
        capture.begin();
    }
    let forward = queue.new_command_buffer();
    forward.set_label("forward");
    forward.commit();
    if let Some(ref mut capture) = capture {
        capture.end();
        println!("{:?}", capture.outcome());
    }
    Ok(())
}

/// The device and the queue as something to capture. The objects of the crate `metal` are the same Objective-C objects as those
/// of `objc2-metal`: pointers to them are taken over.
#[cfg(target_vendor = "apple")]
fn to_capture(
    device: &metal::DeviceRef,
    queue: &metal::CommandQueueRef,
) -> impl gapscope_sdk::capture::CaptureDevice + use<> {
    use gapscope_sdk::kernel_profile;
    use gapscope_sdk::metal::{Device, Object, Wanted};
    use metal::foreign_types::ForeignTypeRef;
    use objc2::rc::Retained;
    use objc2::runtime::ProtocolObject;
    use objc2_metal::{MTLCommandQueue, MTLDevice};

    let device = device.as_ptr().cast::<ProtocolObject<dyn MTLDevice>>();
    let queue = queue.as_ptr().cast::<ProtocolObject<dyn MTLCommandQueue>>();
    // SAFETY: both point to objects that live, and that have these protocols; each is retained once more.
    let (device, queue) = unsafe { (Retained::retain(device), Retained::retain(queue)) };
    let (Some(device), Some(queue)) = (device, queue) else {
        unreachable!("a reference is never null");
    };
    let device = Device::new(device, Wanted::from_env(), kernel_profile::global());
    let queue = device.wrap_queue(queue);
    device.capture(Object::Queue, &[queue]).device()
}

#[cfg(not(target_vendor = "apple"))]
fn main() {
    println!("The crate `metal` is for Apple's systems only.");
}
