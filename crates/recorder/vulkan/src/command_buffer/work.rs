//! Work that is recorded by what it is, and what is timed as a whole: render passes and other scopes, renderings that are
//! suspended and resumed, and secondary command buffers.

use super::CommandBuffer;
use ash::vk;
use gapscope_spool::event::{Command, NO_QUERY, Op, OpaqueWorkKind};

/// What a command is, where its parameters tell no more.
#[derive(Clone, Copy)]
pub enum Work {
    /// It is timed as a whole.
    Opaque(OpaqueWorkKind),
    /// A scope starts, which is timed as a whole: what is inside has no times of its own.
    ScopeStart(OpaqueWorkKind),
    /// The innermost scope ends.
    ScopeEnd,
    /// A dynamic rendering starts.
    RenderingStart(vk::RenderingFlags),
    /// It ends, or is suspended.
    RenderingEnd,
    /// A transfer, with its bytes where they are known.
    Transfer(Op, Option<u64>),
    /// A dispatch whose workgroups come from memory.
    DispatchIndirect,
    /// From here on kernels reach descriptors that are not followed.
    ForgetBindings,
}

impl CommandBuffer {
    /// Before a command.
    pub fn start_work(&mut self, work: Work) -> (Work, u32) {
        let query = match work {
            // What is inside a scope is part of it.
            Work::Opaque(_) if self.in_scope => NO_QUERY,
            Work::Opaque(kind) | Work::ScopeStart(kind) => self.start_opaque(kind),
            Work::RenderingStart(flags) => self.start_rendering(flags),
            Work::Transfer(..) | Work::DispatchIndirect => self.start_timing(),
            Work::ScopeEnd | Work::RenderingEnd | Work::ForgetBindings => NO_QUERY,
        };
        (work, query)
    }

    /// After it.
    pub fn end_work(&mut self, work: Work, query: u32) {
        match work {
            Work::Opaque(_) if self.in_scope => {}
            Work::Opaque(_) => self.end_opaque(),
            Work::ScopeStart(_) | Work::RenderingStart(_) => self.in_scope = true,
            Work::ScopeEnd => {
                self.in_scope = false;
                self.end_opaque();
            }
            Work::RenderingEnd => {
                self.in_scope = false;
                self.suspended = std::mem::take(&mut self.suspending);
                if !self.suspended {
                    self.end_opaque();
                }
            }
            Work::Transfer(op, bytes) => {
                self.end_timing(query);
                let bytes = bytes.unwrap_or(u64::MAX);
                let operands = [bytes as u32, (bytes >> 32) as u32, 0, 0];
                self.push(Command::new(op, query, operands));
            }
            Work::ForgetBindings => self.forget_sets(),
            Work::DispatchIndirect => {
                self.end_timing(query);
                let operands = [0, 0, 0, self.kernel.0];
                self.push(Command::new(Op::DispatchIndirect, query, operands));
            }
        }
    }

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

    /// Ends the opaque work that has started. Nothing else has been timed meanwhile, so its pair is still the newest.
    pub(super) fn end_opaque(&mut self) {
        let query = self.open_opaque.take().unwrap_or(NO_QUERY);
        let end = match query {
            NO_QUERY => NO_QUERY,
            query => query + 1,
        };
        self.push(Command::new(Op::OpaqueEnd, end, [0; 4]));
        self.end_timing(query);
    }

    /// A rendering that resumes a suspended one of this command buffer goes on with it: they are one row. Between a
    /// suspended rendering and the one that resumes it nothing may act or synchronise, timestamps included.
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

    /// The first command resumes what another command buffer has suspended: no timestamp may come before it, and so the
    /// times of this one are not known.
    fn resume_another(&mut self) {
        self.acted = true;
        self.resumes = true;
        self.times_commands = false;
        self.queries.give_up();
    }

    /// Nothing may be put around its instances: a rendering is suspended across its start or its end.
    pub fn continues_another(&self) -> bool {
        self.resumes || self.suspended
    }

    /// Before secondary command buffers are executed: starts the timing that encloses them, where one of them has no
    /// timestamps inside.
    pub fn start_secondaries<'a>(
        &mut self,
        secondaries: impl Iterator<Item = &'a CommandBuffer>,
    ) -> u32 {
        let mut untimed = false;
        // The first one that acts resumes what is suspended before it; behind the last one a rendering is suspended.
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

    /// A secondary command buffer is executed here; `query` encloses it where it has no timestamps.
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
