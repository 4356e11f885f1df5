//! Rows of a real trace (an M3 Ultra, Instruments 27.2, a Python program), as its viewer printed them; digits that it
//! did not print are filled in from the tables that print them (commit times, GPU ends), and the others with zeros.

use crate::Exports;
use gapscope_trace::ids::{SubmissionId, ThreadId};
use gapscope_trace::tables::OpaqueWorkKind;

const SUBMISSIONS: &str = r##"<?xml version="1.0"?>
<trace-query-result>
<node xpath='//trace-toc[1]/run[1]/data[1]/table[71]'><schema name="metal-application-command-buffer-submissions"><col><mnemonic>start</mnemonic><name>Creation</name><engineering-type>start-time</engineering-type></col><col><mnemonic>duration</mnemonic><name>Duration</name><engineering-type>duration</engineering-type></col><col><mnemonic>event-type</mnemonic><name>Event Type</name><engineering-type>metal-event-name</engineering-type></col><col><mnemonic>gpu</mnemonic><name>Metal Device</name><engineering-type>metal-device-name</engineering-type></col><col><mnemonic>track-label</mnemonic><name>Track Label</name><engineering-type>metal-object-label</engineering-type></col><col><mnemonic>num-encoders</mnemonic><name># Encoders</name><engineering-type>uint32</engineering-type></col><col><mnemonic>encoder-time</mnemonic><name>Encoder Time</name><engineering-type>duration</engineering-type></col><col><mnemonic>process</mnemonic><name>Process</name><engineering-type>process</engineering-type></col><col><mnemonic>thread</mnemonic><name>Thread</name><engineering-type>thread</engineering-type></col><col><mnemonic>event-icon</mnemonic><name>Event Icon</name><engineering-type>metal-event</engineering-type></col><col><mnemonic>event-label</mnemonic><name>Note</name><engineering-type>narrative</engineering-type></col><col><mnemonic>encoder-time-label</mnemonic><name>Encoder Time Label</name><engineering-type>narrative</engineering-type></col><col><mnemonic>frame-number</mnemonic><name>Frame #</name><engineering-type>uint32</engineering-type></col><col><mnemonic>color</mnemonic><name>Color</name><engineering-type>render-buffer-depth</engineering-type></col><col><mnemonic>cmdbuffer-id</mnemonic><name>Commmand Buffer Id</name><engineering-type>metal-command-buffer-id</engineering-type></col></schema>
<row><start-time id="1" fmt="00:00.900.359">900359375</start-time><duration id="2" fmt="517.50 µs">517500</duration><metal-event-name id="3" fmt="CommandBufferSubmission">CommandBufferSubmission</metal-event-name><metal-device-name id="4" fmt="M3 Ultra">M3 Ultra</metal-device-name><sentinel/><uint32 id="5" fmt="1">1</uint32><duration id="6" fmt="498.88 µs">498880</duration><process id="7" fmt="python (99926)"><pid id="8" fmt="99926">99926</pid></process><thread id="9" fmt="Main Thread (0x11ab5b7) (python, pid: 99926)"><tid id="10" fmt="0x11ab5b7">18527671</tid><process ref="7"/></thread><metal-event id="11" fmt="Green">Green</metal-event><narrative id="12" fmt="Committed &quot;Command Buffer 0&quot; with 1 encoders"><metal-object-label id="13" fmt="Command Buffer 0">Command Buffer 0</metal-object-label></narrative><narrative id="14" fmt="498.88 µs Metal Encoder duration (python (99926))"><duration ref="6"/></narrative><uint32 ref="5"/><render-buffer-depth id="15" fmt="0">0</render-buffer-depth><metal-command-buffer-id id="16" fmt="0x154d189050">91487768656</metal-command-buffer-id></row>
</node></trace-query-result>
"##;

const INTERVALS: &str = r##"<?xml version="1.0"?>
<trace-query-result>
<node xpath='//trace-toc[1]/run[1]/data[1]/table[66]'><schema name="metal-gpu-intervals"><col><mnemonic>start</mnemonic><name>Creation</name><engineering-type>start-time</engineering-type></col><col><mnemonic>duration</mnemonic><name>Duration</name><engineering-type>duration</engineering-type></col><col><mnemonic>channel-name</mnemonic><name>Channel Name</name><engineering-type>gpu-channel-name</engineering-type></col><col><mnemonic>frame-number</mnemonic><name>Frame</name><engineering-type>gpu-frame-number</engineering-type></col><col><mnemonic>start-latency</mnemonic><name>CPU to GPU Latency</name><engineering-type>duration</engineering-type></col><col><mnemonic>event-depth</mnemonic><name>Depth</name><engineering-type>metal-nesting-level</engineering-type></col><col><mnemonic>event-label</mnemonic><name>Label</name><engineering-type>formatted-label</engineering-type></col><col><mnemonic>state</mnemonic><name>State</name><engineering-type>gpu-state</engineering-type></col><col><mnemonic>connection-UUID</mnemonic><name>Connection UUID</name><engineering-type>connection-uuid64</engineering-type></col><col><mnemonic>color</mnemonic><name>Color</name><engineering-type>render-buffer-depth</engineering-type></col><col><mnemonic>process</mnemonic><name>Process</name><engineering-type>process</engineering-type></col><col><mnemonic>gpu</mnemonic><name>Metal Device</name><engineering-type>metal-device-name</engineering-type></col><col><mnemonic>channel-subtitle</mnemonic><name>Channel Subtitle</name><engineering-type>metal-object-label</engineering-type></col><col><mnemonic>iosurface-accesses</mnemonic><name>IOSurface Accesses</name><engineering-type>formatted-label</engineering-type></col><col><mnemonic>bytes</mnemonic><name>Bytes</name><engineering-type>size-in-bytes</engineering-type></col><col><mnemonic>cmdbuffer-id</mnemonic><name>Commmand Buffer Id</name><engineering-type>metal-command-buffer-id</engineering-type></col><col><mnemonic>encoder-id</mnemonic><name>Encoder Id</name><engineering-type>metal-command-buffer-id</engineering-type></col><col><mnemonic>gpu-submission-id</mnemonic><name>GPU Submission Id</name><engineering-type>uint64</engineering-type></col></schema>
<row><start-time id="1" fmt="00:00.907.208">907208083</start-time><duration id="2" fmt="13.83 µs">13833</duration><gpu-channel-name id="3" fmt="Compute">Compute</gpu-channel-name><gpu-frame-number id="4" fmt="Frame 1">1</gpu-frame-number><duration id="5" fmt="6.33 ms">6331208</duration><metal-nesting-level id="6" fmt="0">0</metal-nesting-level><formatted-label id="7" fmt="Command Buffer 0:Compute Command 0   (python (99926)) 0x4e189059"><string id="8" fmt="Command Buffer 0:Compute Command 0">Command Buffer 0:Compute Command 0</string><process id="9" fmt="python (99926)"><pid id="10" fmt="99926">99926</pid></process></formatted-label><gpu-state id="11" fmt="Active">Active</gpu-state><connection-uuid64 id="12" fmt="1">1</connection-uuid64><render-buffer-depth id="13" fmt="0">0</render-buffer-depth><process ref="9"/><metal-device-name id="14" fmt="M3 Ultra">M3 Ultra</metal-device-name><sentinel/><sentinel/><size-in-bytes id="15" fmt="0 Bytes">0</size-in-bytes><metal-command-buffer-id id="16" fmt="0x154d189050">91487768656</metal-command-buffer-id><metal-command-buffer-id id="17" fmt="0x154d189051">91487768657</metal-command-buffer-id><uint64 id="18" fmt="1,310,232,665">1310232665</uint64></row>
</node></trace-query-result>
"##;

#[test]
fn a_command_buffer_of_a_real_trace_is_read() {
    let exports = Exports::new();
    exports.add("submissions", SUBMISSIONS);
    exports.add("intervals", INTERVALS);
    let trace = exports.trace();
    let t = &trace.tables;
    // The table of frame assignments prints the commit in full.
    assert_eq!(t.submissions.start_ns, [900_876_875]);
    assert_eq!(t.submissions.thread, [Some(ThreadId(0x11a_b5b7))]);
    assert_eq!(t.opaque_work.kind, [OpaqueWorkKind::ComputePass]);
    // The table of dependencies prints the end in full.
    let end = t.opaque_work.start_ns.at(0).unwrap() + t.opaque_work.duration_ns.at(0).unwrap();
    assert_eq!(end, 907_221_916);
    assert_eq!(t.command_buffers.submission, [SubmissionId(1)]);
    assert_eq!(trace.manifest.devices[0].name, "M3 Ultra");
    assert_eq!(trace.manifest.processes[0].pid, 99926);
    assert_eq!(trace.manifest.threads[0].name, "Main Thread");
}
