//! Records of work on a device.

use super::{NO_TIMES, Reader, node, routes, work_span};
use crate::cupti::fields::{self, Record};
use crate::tracing;
use gapscope_spool::event::{Activity, GraphNode};

impl Reader {
    /// # Safety
    /// It is a kernel's.
    #[inline]
    pub(super) unsafe fn kernel(&mut self, record: &Record<'_>) {
        use fields::kernel::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue = self.queue(record, [DEVICE, CONTEXT, STREAM]);
            if self.kernels.is_full() {
                self.write();
                self.kernels.forget(self.recorder);
            }
            let launch = self.kernels.launch(record, queue, self.recorder);
            let span = work_span(record.get(START), record.get(END));
            if span.is_none() {
                self.losses.add("dispatch times", NO_TIMES);
            }
            self.packer.push(&Activity::Kernel {
                launch,
                span,
                correlation: record.get(CORRELATION),
                node: node(record.get(GRAPH), record.get(NODE)),
            });
        }
    }

    fn transfer(
        &mut self,
        route: u32,
        bytes: u64,
        times: (u64, u64),
        correlation: u32,
        node: Option<GraphNode>,
    ) {
        let span = work_span(times.0, times.1);
        if span.is_none() {
            self.losses.add("transfer times", NO_TIMES);
        }
        self.packer.push(&Activity::Transfer {
            route,
            bytes,
            span,
            correlation,
            node,
        });
    }

    /// # Safety
    /// It is a copy's.
    pub(super) unsafe fn copy(&mut self, record: &Record<'_>) {
        use fields::copy::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue = self.queue(record, [DEVICE, CONTEXT, STREAM]);
            let key = routes::Key::copy(
                queue,
                record.get(KIND),
                record.get(SOURCE),
                record.get(DESTINATION),
            );
            let route = self.routes.route(key, self.recorder);
            let times = (record.get(START), record.get(END));
            let node = node(record.get(GRAPH), record.get(NODE));
            self.transfer(
                route,
                record.get(BYTES),
                times,
                record.get(CORRELATION),
                node,
            );
        }
    }

    /// # Safety
    /// It is a copy's between devices.
    pub(super) unsafe fn peer_copy(&mut self, record: &Record<'_>) {
        use fields::peer_copy::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue = self.queue(record, [DEVICE, CONTEXT, STREAM]);
            let source = self
                .objects
                .device(record.get(SOURCE_DEVICE), self.recorder);
            let destination = self
                .objects
                .device(record.get(DESTINATION_DEVICE), self.recorder);
            let mut key = routes::Key::copy(
                queue,
                record.get(KIND),
                record.get(SOURCE),
                record.get(DESTINATION),
            );
            key.devices = Some((source, destination));
            let route = self.routes.route(key, self.recorder);
            let times = (record.get(START), record.get(END));
            let node = node(record.get(GRAPH), record.get(NODE));
            self.transfer(
                route,
                record.get(BYTES),
                times,
                record.get(CORRELATION),
                node,
            );
        }
    }

    /// # Safety
    /// It is a memset's.
    pub(super) unsafe fn fill(&mut self, record: &Record<'_>) {
        use fields::fill::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue = self.queue(record, [DEVICE, CONTEXT, STREAM]);
            let route = self
                .routes
                .route(routes::Key::fill(queue, record.get(MEMORY)), self.recorder);
            let times = (record.get(START), record.get(END));
            let node = node(record.get(GRAPH), record.get(NODE));
            self.transfer(
                route,
                record.get(BYTES),
                times,
                record.get(CORRELATION),
                node,
            );
        }
    }

    /// # Safety
    /// It is a graph's.
    pub(super) unsafe fn graph(&mut self, record: &Record<'_>) {
        use fields::graph::*;
        // SAFETY: as the caller promises.
        unsafe {
            let span = work_span(record.get(START), record.get(END));
            // This kind stays on while recording is off.
            if span.is_some_and(|span| !tracing::in_window(span.start_ns)) {
                return;
            }
            if span.is_none() {
                self.losses.add("graph times", NO_TIMES);
            }
            let queue = self.queue(record, [DEVICE, CONTEXT, STREAM]);
            self.packer.push(&Activity::GraphRun {
                graph: record.get(GRAPH),
                queue,
                span,
                correlation: record.get(CORRELATION),
            });
        }
    }
}
