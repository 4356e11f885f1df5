//! Records commands of which only the effect is known, and work that is timed as a whole (opaque work): render
//! passes and other scopes, renderings that are suspended and resumed, and secondary command buffers.

use super::CommandBuffer;
use ash::vk;
use gapscope_spool::event::{Command, NO_QUERY, Op, OpaqueWorkKind};
use gapscope_spool::ids;

/// The effect of a command that is recorded without its other parameters.
#[derive(Clone, Copy)]
pub enum Effect {
    /// The command is timed as a whole.
    Opaque(OpaqueWorkKind),
    /// A scope starts, which is timed as a whole: commands inside have no times of their own.
    ScopeStart(OpaqueWorkKind),
    /// The innermost scope ends.
    ScopeEnd,
    /// A dynamic rendering starts.
    RenderingStart(vk::RenderingFlags),
    /// A dynamic rendering ends or is suspended.
    RenderingEnd,
    /// A transfer, with its bytes where they are known.
    Transfer(Op, Option<u64>),
    /// A dispatch whose workgroups come from memory.
    DispatchIndirect,
    /// Kernels reach descriptors that are not followed from here on.
    ForgetBindings,
}

impl CommandBuffer {
    /// Prepares for a command with this effect: returns the effect unchanged, for `after_effect`, and the first
    /// query.
    pub fn before_effect(&mut self, effect: Effect) -> (Effect, u32) {
        let query = match effect {
            // Work inside a scope is part of the scope.
            Effect::Opaque(_) if self.in_scope => NO_QUERY,
            Effect::Opaque(kind) | Effect::ScopeStart(kind) => self.start_opaque(kind),
            Effect::RenderingStart(flags) => self.start_rendering(flags),
            Effect::Transfer(..) | Effect::DispatchIndirect => self.start_timing(),
            Effect::ScopeEnd | Effect::RenderingEnd | Effect::ForgetBindings => NO_QUERY,
        };
        (effect, query)
    }

    /// Records a command after the next layer's function has run, with the query that `before_effect` returned.
    pub fn after_effect(&mut self, effect: Effect, query: u32) {
        match effect {
            Effect::Opaque(_) if self.in_scope => {}
            Effect::Opaque(_) => self.end_opaque(),
            Effect::ScopeStart(_) | Effect::RenderingStart(_) => self.in_scope = true,
            Effect::ScopeEnd => {
                self.in_scope = false;
                self.end_opaque();
            }
            Effect::RenderingEnd => {
                self.in_scope = false;
                self.suspended = std::mem::take(&mut self.suspending);
                if !self.suspended {
                    self.end_opaque();
                }
            }
            Effect::Transfer(op, bytes) => {
                self.push_transfer(op, query, bytes, ids::Buffer::NONE, ids::Buffer::NONE);
            }
            Effect::ForgetBindings => self.forget_sets(),
            Effect::DispatchIndirect => {
                self.end_timing(query);
                let operands = [0, 0, 0, self.kernel.0];
                self.push(Command::new(Op::DispatchIndirect, query, operands));
            }
        }
    }

    /// Ends the timing of a transfer and records it; `bytes` is `None` where its size is not known.
    pub fn push_transfer(
        &mut self,
        op: Op,
        query: u32,
        bytes: Option<u64>,
        from: ids::Buffer,
        to: ids::Buffer,
    ) {
        self.end_timing(query);
        let bytes = bytes.unwrap_or(u64::MAX);
        let operands = [bytes as u32, (bytes >> 32) as u32, from.0, to.0];
        self.push(Command::new(op, query, operands));
    }

    /// Starts opaque work, after ending any that is open, and returns its first query.
    fn start_opaque(&mut self, kind: OpaqueWorkKind) -> u32 {
        if self.open_opaque.is_some() {
            self.end_opaque();
        }
        let query = self.start_timing();
        self.push(Command::new(
            Op::OpaqueBegin,
            query,
            [kind.number().into(), 0, 0, 0],
        ));
        self.open_opaque = Some(query);
        query
    }

    /// Ends the opaque work that has started. Nothing else has been timed meanwhile, so its pair of queries is still
    /// the newest.
    pub(super) fn end_opaque(&mut self) {
        let query = self.open_opaque.take().unwrap_or(NO_QUERY);
        let end = match query {
            NO_QUERY => NO_QUERY,
            query => query + 1,
        };
        self.push(Command::new(Op::OpaqueEnd, end, [0; 4]));
        self.end_timing(query);
    }

    /// Starts a rendering and returns its first query. A rendering that resumes a suspended one of the same command
    /// buffer adds nothing: it belongs to the opaque work that is still open. Between a suspended rendering and the
    /// one that resumes it nothing may act or synchronise, not even a timestamp.
    fn start_rendering(&mut self, flags: vk::RenderingFlags) -> u32 {
        self.suspending = flags.contains(vk::RenderingFlags::SUSPENDING);
        let resumes = flags.contains(vk::RenderingFlags::RESUMING) && !self.acted;
        if self.suspending && !self.suspended && !resumes {
            self.before_action();
            self.cut_counting();
        }
        if flags.contains(vk::RenderingFlags::RESUMING) {
            if self.suspended {
                self.suspended = false;
                return NO_QUERY;
            }
            if !self.acted {
                self.resume_another();
            }
        }
        self.start_opaque(OpaqueWorkKind::RenderPass)
    }

    /// Notes that the first command resumes what another command buffer has suspended. No timestamp may come before
    /// it, so the times of this command buffer are not known.
    fn resume_another(&mut self) {
        self.acted = true;
        self.resumes = true;
        self.times_commands = false;
        self.queries.give_up();
    }

    /// Returns whether a rendering is suspended across the start or the end, so that nothing may be put around the
    /// instances.
    pub fn continues_another(&self) -> bool {
        self.resumes || self.suspended
    }

    /// Prepares for secondary command buffers (run by this one): where one of them has no timestamps inside, starts
    /// the timing that encloses all of them. Returns the first query of that timing.
    pub fn start_secondaries<'a>(
        &mut self,
        secondaries: impl Iterator<Item = &'a CommandBuffer>,
    ) -> u32 {
        let mut untimed = false;
        // The first secondary command buffer that acts resumes what is suspended before it; the last one decides
        // whether a rendering is suspended behind all of them.
        let (mut first, mut suspended) = (None, self.suspended);
        for secondary in secondaries {
            let timing = secondary.timing.as_ref();
            untimed |= timing.is_none_or(|timing| timing.partial);
            if secondary.acted {
                first.get_or_insert(secondary.resumes);
                suspended = secondary.suspended;
            }
        }
        let resumes = first == Some(true);
        if resumes && !self.acted {
            self.resume_another();
        } else {
            self.before_action();
        }
        self.cut_counting();
        match untimed && !resumes && !suspended {
            true => self.start_timing(),
            false => NO_QUERY,
        }
    }

    /// Records that a secondary command buffer is executed; `query` encloses it where it has no timestamps.
    /// Afterwards this one is suspended if the secondary one is.
    pub fn execute(&mut self, secondary: &CommandBuffer, query: u32) {
        self.push(Command::new(
            Op::Execute,
            query,
            [secondary.recording.0, 0, 0, 0],
        ));
        self.children.extend(secondary.timing.clone());
        if secondary.acted {
            self.suspended = secondary.suspended;
        }
    }
}
