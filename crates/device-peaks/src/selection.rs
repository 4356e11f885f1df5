//! Defines [`Selection`], which lists the devices of all interfaces (CUDA, Vulkan), numbers them in that order, and
//! decides which of them the user asked for.

use gapscope_model::Api;
use gapscope_replay::DeviceChoice;

/// The devices that were asked for, among all that are listed one after the other.
pub struct Selection<'a> {
    choice: Option<&'a DeviceChoice>,
    /// Names and interfaces of the devices so far.
    pub listed: Vec<String>,
}

impl<'a> Selection<'a> {
    pub fn new(choice: Option<&'a DeviceChoice>) -> Selection<'a> {
        Selection {
            choice,
            listed: Vec::new(),
        }
    }

    /// Lists the next device, and returns whether it was asked for.
    pub fn takes(&mut self, api: Api, device: &str) -> bool {
        let number = self.listed.len();
        self.listed.push(format!("{device} ({})", name(api)));
        match self.choice {
            None => true,
            Some(DeviceChoice::Number(asked)) => *asked == number,
            Some(DeviceChoice::Name(part)) => device.to_lowercase().contains(&part.to_lowercase()),
        }
    }
}

/// Returns the name of an interface.
pub fn name(api: Api) -> &'static str {
    match api {
        Api::Cuda => "CUDA",
        _ => "Vulkan",
    }
}
