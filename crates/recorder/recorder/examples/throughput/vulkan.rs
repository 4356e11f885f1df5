//! Fills a spool (the log of events that a recorded program writes) as the Vulkan layer would: command buffers of 64
//! labelled dispatches with bindings, submitted once.

use crate::made_up;
use gapscope_spool::Spool;
use gapscope_spool::event::{Api, Binding, Command, CommonEvent, NO_QUERY, Op, VulkanEvent};
use gapscope_spool::ids as hook;
use std::borrow::Cow;

/// The dispatches of a command buffer.
const IN_COMMAND_BUFFER: u32 = 64;
const KERNELS: u32 = 32;
/// The number of contents of descriptor sets (tables of buffers).
const CONTENTS: u32 = 200;

/// Writes `dispatches` dispatches, and returns the number of dispatches, barriers and command buffers together.
pub fn fill(spool: &Spool, dispatches: u32) -> u64 {
    spool.write(&made_up::device(1, Api::Vulkan, 1.0));
    spool.write(&made_up::queue(1, 1));
    spool.write(&CommonEvent::Text {
        text: hook::Text(1),
        value: "layer",
    });
    for kernel in 1..=KERNELS {
        spool.write(&made_up::kernel(kernel, "main"));
        spool.write(&VulkanEvent::Buffer {
            buffer: hook::Buffer(kernel),
            device: hook::Device(1),
            bytes: 1 << 20,
            at_ns: 0,
        });
    }
    for content in 1..=CONTENTS {
        let entry = |binding| Binding {
            binding,
            element: 0,
            buffer: hook::Buffer(1 + (content + binding) % KERNELS),
            offset: u64::from(content) * 256,
            bytes: 4096,
            kind: 7,
        };
        let entries = (0..4).map(entry).collect();
        spool.write(&VulkanEvent::Bindings {
            content: hook::BindingContent(content),
            entries: Cow::Owned(entries),
        });
    }
    let mut now = 1_000_000u64;
    let mut commands = Vec::new();
    let mut ticks = Vec::new();
    for recording in 1..=dispatches / IN_COMMAND_BUFFER {
        if recording % 1000 == 1 {
            spool.write(&made_up::clock_sample(now as i64));
        }
        commands.clear();
        ticks.clear();
        let begin_ns = now as i64;
        let mut tick = |step: u64| {
            now += step;
            ticks.push(now);
        };
        commands.push(Command::new(Op::Begin, 0, [0; 4]));
        tick(500);
        commands.push(Command::new(Op::LabelBegin, NO_QUERY, [1, 0, 0, 0]));
        for index in 0..IN_COMMAND_BUFFER {
            let number = recording * IN_COMMAND_BUFFER + index;
            commands.push(Command::new(
                Op::BindSet,
                NO_QUERY,
                [0, 1 + number % CONTENTS, 0, 0],
            ));
            let kernel = 1 + number % KERNELS;
            commands.push(Command::new(
                Op::Dispatch,
                1 + 2 * index,
                [number % 7, 1, 1, kernel],
            ));
            commands.push(Command::new(Op::Barrier, NO_QUERY, [0x800, 0, 0x800, 0]));
            tick(700);
            tick(u64::from(3000 + number % 1000));
        }
        commands.push(Command::new(Op::LabelEnd, NO_QUERY, [0; 4]));
        commands.push(Command::new(Op::End, 1 + 2 * IN_COMMAND_BUFFER, [0; 4]));
        tick(200);
        let times = (begin_ns, now as i64 + 1000);
        made_up::run_command_buffer(spool, recording, &commands, times, &ticks);
    }
    let command_buffers = u64::from(dispatches / IN_COMMAND_BUFFER);
    command_buffers * (1 + 2 * u64::from(IN_COMMAND_BUFFER))
}
