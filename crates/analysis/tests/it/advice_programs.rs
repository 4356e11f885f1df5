//! Programs for which advice is given, or looks as if it fitted and does not. Times are in microseconds.

use crate::program::{Program, findings_of};
use crate::true_causes::cuda;
use gapscope_analysis::Findings;

/// A program on Vulkan whose calls of 500 us each submit so many command buffers.
pub fn submissions(command_buffers: u64) -> Findings {
    let mut p = Program::new();
    for turn in 0..3 {
        let t = turn * 1_000;
        p.line(&format!(
            "submission id={turn} process=1 queue=1 thread=7 start_ns={}us duration_ns=500us command_buffers={command_buffers}
             command_buffer id={turn} process=1 queue=1 submission={turn} dispatches=1
             dispatch command_buffer={turn} queue=1 kernel=1 start_ns={}us duration_ns=100us",
            t + 200,
            t + 800
        ));
    }
    p.findings()
}

/// A program on Vulkan that pauses between its submissions, and makes a call in the pause.
pub fn vulkan(call: &str) -> Findings {
    let mut p = Program::new();
    for turn in 0..20 {
        let t = turn * 1_000;
        p.dispatch(1, [t, t + 5], t + 10, 100);
        p.call(call, [t + 120, t + 900]);
    }
    p.findings()
}

/// Two queues of Vulkan on one GPU, of which the second waits for the first and starts 5 us after it.
pub fn vulkan_queues() -> Findings {
    let mut p = Program::new();
    for turn in 0..20 {
        let t = turn * 1_000;
        let first = p.dispatch(1, [t - 10, t - 5], t, 100);
        let second = p.dispatch(2, [t - 4, t - 1], t + 105, 90);
        p.depends(second, first);
    }
    p.findings()
}

/// Two GPUs, of which the first waits for work of the second until `until` us, or does not wait. Two processes use the second.
pub fn vulkan_gpus(plant: impl FnOnce(&mut Program)) -> Findings {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=10s
         process id=1 pid=10 hook=vulkan\nprocess id=2 pid=11 hook=vulkan
         device id=1 process=1 api=vulkan name=GPU uuid=aa clock.error_ns=0
         device id=2 process=1 api=vulkan name=GPU uuid=bb clock.error_ns=0
         device id=3 process=2 api=vulkan name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1\nqueue id=3 device=2\nqueue id=4 device=3
         kernel id=1 process=1 name=work",
    );
    p.dispatch(1, [-20, -10], 0, 100);
    p.call("other-call", [-9, -8]);
    plant(&mut p);
    p.findings()
}

/// Work of the first GPU that waits for work of the second, which runs until `until` us.
pub fn waits_for_gpu(until: i64) -> Findings {
    vulkan_gpus(|p| {
        let other = p.dispatch(3, [-20, -10], 0, until);
        let id = p.dispatch(1, [10, 15], until.max(100) + 5, 100);
        p.depends(id, other);
    })
}

/// Work of this process or of another one that was submitted before the kernel of this one began.
pub fn takes_turns(process: u32, queue: u32) -> Findings {
    vulkan_gpus(|p| {
        p.line(&format!(
            "submission id=90 process={process} queue={queue} thread=9 start_ns=-9us duration_ns=5us command_buffers=1
             command_buffer id=90 process={process} queue={queue} submission=90 dispatches=1
             dispatch command_buffer=90 queue={queue} kernel=1 start_ns=140us duration_ns=100us"
        ));
    })
}

/// A command buffer with so many dispatches, 20 us apart.
pub fn dispatches(count: i64) -> Findings {
    let mut p = Program::new();
    for turn in 0..20 {
        let t = turn * 1_000;
        let id = p.submit(1, [t, t + 5]);
        p.line(&format!(
            "command_buffer id={id} process=1 queue=1 submission={id} dispatches={count}"
        ));
        for position in 0..count {
            let start = t + 10 + position * 120;
            p.line(&format!(
                "dispatch command_buffer={id} position={position} queue=1 kernel=1 start_ns={start}us duration_ns=100us"
            ));
        }
    }
    p.findings()
}

/// A program whose executable is `executable` with two launches and a pause.
pub fn paused(executable: &str, call: bool) -> Findings {
    let mut p = Program::from_text(&format!(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda executable={executable}
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1
         kernel id=1 process=1 name=work"
    ));
    p.launch(1, [0, 5], 10, 100);
    p.launch(1, [500, 505], 510, 100);
    if call {
        p.call("map-memory", [200, 201]);
    }
    p.findings()
}

/// A program without calls but its two launches, with a pause in a range of thread 7. `columns` name the thread that launches.
pub fn in_range(columns: &str, range: &str) -> Findings {
    Program::from_text(&format!(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=kineto executable=/usr/bin/app
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1
         kernel id=1 process=1 name=work
         label id=1 text=\"{range}\"
         marker process=1 scope=thread thread=7 label=1 domain=operator start_ns=109us duration_ns=391us
         submission id=1 process=1 queue=1 {columns} start_ns=0 duration_ns=5us kind=kernel
         submission id=2 process=1 queue=1 {columns} start_ns=500us duration_ns=5us kind=kernel
         dispatch submission=1 queue=1 kernel=1 start_ns=10us duration_ns=100us
         dispatch submission=2 queue=1 kernel=1 start_ns=510us duration_ns=100us"
    ))
    .findings()
}

/// The submission of the work that [`late_start`] has.
pub const SUBMITTED: &str = "submission id=90 process=1 queue=1 thread=7 start_ns=20us duration_ns=5us command_buffers=0 kind=kernel";
/// Work before it, without times.
pub const UNTIMED: &str = "submission id=89 process=1 queue=1 thread=7 start_ns=10us duration_ns=5us command_buffers=0 kind=kernel
     dispatch submission=89 queue=1 kernel=1";

/// Work from 0 to 100 us, and work of the submission 90 that starts at 900 us.
pub fn late_start(api: &str, rows: &str) -> Findings {
    Program::from_text(&format!(
        "manifest sampling_mode=dispatch start_ns=-1ms end_ns=10s
         process id=1 pid=10 hook={api} start_ns=-1ms
         device id=1 process=1 api={api} name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1\nqueue id=2 device=1
         kernel id=1 process=1 name=work
         submission id=1 process=1 queue=1 thread=7 start_ns=-20us duration_ns=5us command_buffers=0 kind=kernel
         dispatch submission=1 queue=1 kernel=1 start_ns=0 duration_ns=100us
         {rows}
         dispatch submission=90 queue=1 kernel=1 start_ns=900us duration_ns=100us"
    ))
    .findings()
}

/// The same beside a submission of a kind to queue 2.
pub fn waits_beside(kind: &str) -> Findings {
    late_start(
        "cuda",
        &format!(
            "{SUBMITTED}\nsubmission id=80 process=1 queue=2 thread=7 start_ns=-10us duration_ns=5us command_buffers=0 kind={kind}"
        ),
    )
}

/// The first recorded work of queue 2 starts at 900 us, in a recording that began after the program's start.
pub fn first_of_queue_2(process_start: i64) -> Findings {
    Program::from_text(&format!(
        "manifest sampling_mode=dispatch start_ns=-50us end_ns=10s
         process id=1 pid=10 hook=cuda start_ns={process_start}us
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1\nqueue id=2 device=1
         kernel id=1 process=1 name=work
         submission id=1 process=1 queue=1 thread=7 start_ns=-20us duration_ns=5us command_buffers=0 kind=kernel
         dispatch submission=1 queue=1 kernel=1 start_ns=0 duration_ns=100us
         submission id=2 process=1 queue=2 thread=7 start_ns=20us duration_ns=5us command_buffers=0 kind=kernel
         dispatch submission=2 queue=2 kernel=1 start_ns=900us duration_ns=100us"
    ))
    .findings()
}

/// Turns of a kernel and a wait, which returns `early` us before the kernel ends.
pub fn returns_early(early: i64) -> Findings {
    let mut p = cuda();
    for turn in 0..20 {
        let t = 1_000 + turn * 1_000;
        p.launch(1, [t, t + 5], t + 10, 300);
        p.line(&format!(
                "host_call process=1 thread=7 call=wait-device-idle count=1 start_ns={}us duration_ns={}us",
                t + 6,
                306 - early
            ));
    }
    p.findings()
}

/// The same with waits for events and 140 us of host code, in a trace that states no error of its clock.
pub fn event_returns_early(early: i64) -> Findings {
    let mut rows = String::new();
    for turn in 0..20 {
        let (id, t) = (turn + 1, turn * 450);
        rows += &format!(
            "submission id={id} process=1 queue=1 thread=7 start_ns={t}us duration_ns=5us kind=kernel
             dispatch submission={id} queue=1 kernel=1 start_ns={}us duration_ns=300us
             host_call process=1 thread=7 call=wait-event start_ns={}us duration_ns={}us\n",
            t + 10,
            t + 6,
            304 - early
        );
    }
    findings_of(
        &("manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda start_ns=0
         device id=1 process=1 api=cuda name=GPU uuid=aa
         queue id=1 device=1
         kernel id=1 process=1 name=work\n"
            .to_owned()
            + &rows),
    )
}

/// Launches of kernels of `kernel` us, `count` of them, in calls of 10 us.
pub fn many(count: i64, kernel: i64) -> Findings {
    let mut p = cuda();
    for turn in 0..count {
        let t = turn * (kernel + 11);
        p.launch(1, [t, t + 10], t + 11, kernel);
    }
    p.findings()
}

/// Launches that are in progress for as long as their kernels run, after `before` us.
pub fn blocking(before: i64) -> Findings {
    let mut p = cuda();
    for turn in 0..50 {
        let t = turn * (before + 970);
        p.launch(1, [t, t + before + 910], t + before, 900);
        p.call("other-call", [t + before + 911, t + before + 912]);
    }
    p.findings()
}

/// Waits for the device, after kernels alone or after copies to the host too.
pub fn synchronises(copies: bool) -> Findings {
    let mut p = cuda();
    for turn in 0..50 {
        let t = turn * 1_000;
        let id = p.launch(1, [t, t + 5], t + 8, 100);
        if copies {
            p.line(&format!(
                "transfer submission={id} queue=1 kind=device-to-host bytes=4 host_memory=pinned start_ns={}us duration_ns=2us",
                t + 109
            ));
        }
        p.call("wait-device-idle", [t + 10, t + 900]);
    }
    p.findings()
}

/// A `cudaFree` on a thread, from 5 to 108 us, that waits for each kernel of 100 us; the next launch is from `from` to `to` us.
pub fn frees(thread: u32, from: i64, to: i64) -> Findings {
    let mut p = cuda();
    let period = to + 5;
    for turn in 0..50 {
        let t = turn * period;
        p.launch(1, [t - period + from, t - period + to], t, 100);
        p.line(&format!(
            "host_call process=1 thread={thread} call=free-memory function=cudaFree start_ns={}us duration_ns=103us",
            t + 5
        ));
        p.call("other-call", [t + 1, t + 2]);
    }
    p.findings()
}

/// Graphs of two kernels in calls of 500 us, and `others` launches in none.
pub fn graphs_and(kernels: usize, others: i64) -> Findings {
    let mut p = cuda();
    for turn in 0..3 {
        let t = turn * 1_000;
        let all = [[t + 650, 50], [t + 710, 50]];
        p.graph(1, [t + 100, t + 600], &all[..kernels], "");
    }
    for turn in 3..3 + others {
        let t = turn * 1_000;
        p.launch(1, [t + 500, t + 600], t + 650, 100);
    }
    p.findings()
}

/// Copies of a kind in calls of 500 us, which start after the call.
pub fn starts_copies(kind: &str, bytes: u64) -> Findings {
    let mut p = cuda();
    for turn in 0..50 {
        let t = turn * 1_000;
        let id = p.mark(1, "transfer", [t, t + 500]);
        p.line(&format!(
            "transfer submission={id} queue=1 kind={kind} bytes={bytes} host_memory=pinned start_ns={}us duration_ns=480us",
            t + 510
        ));
    }
    p.findings()
}

/// A function of the host before each of two kernels, of which the first `timed` have times.
pub fn host_functions(timed: usize) -> Findings {
    let mut p = cuda();
    p.launch(1, [0, 5], 10, 100);
    for turn in 0..2 {
        let t = turn * 600;
        p.mark(1, "host-function", [t + 6, t + 7]);
        p.launch(1, [t + 8, t + 9], t + 500, 100);
        if (turn as usize) < timed {
            p.line(&format!(
                "host_call process=1 call=host-function queue=1 start_ns={}us duration_ns=380us",
                t + 112
            ));
        }
    }
    p.findings()
}

/// A late thread while thread 8 loads code, until after the next launch, or not.
pub fn compiled_meanwhile(call: &'static str) -> Findings {
    let mut p = cuda();
    for turn in 0..20 {
        let t = turn * 10_000;
        p.launch(1, [t, t + 5], t + 8, 100);
        p.call("other-call", [t + 110, t + 111]);
        p.call_on(8, call, [t + 120, t + 10_006]);
    }
    p.findings()
}

/// Work of HIP of this process or of another one that was submitted before the kernel of this one began.
pub fn hip_turns(process: u32) -> Findings {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=10s
         process id=1 pid=10 hook=cuda\nprocess id=2 pid=11 hook=cuda
         device id=1 process=1 api=hip name=GPU uuid=aa clock.error_ns=0
         device id=2 process=2 api=hip name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1\nqueue id=2 device=2
         kernel id=1 process=1 name=work",
    );
    p.launch(1, [-20, -10], 0, 100);
    p.call("other-call", [-9, -8]);
    p.line(&format!(
        "submission id=90 process={process} queue={process} thread=9 start_ns=-9us duration_ns=5us kind=kernel
         dispatch submission=90 queue={process} kernel=1 start_ns=140us duration_ns=100us"
    ));
    p.findings()
}

/// Calls of HIP: one of a function between two launches.
pub fn hip(call: &str, function: &str) -> Findings {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda executable=/usr/bin/app
         device id=1 process=1 api=hip name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1
         kernel id=1 process=1 name=work",
    );
    p.launch(1, [-20, -10], 0, 100);
    p.line(&format!(
        "host_call process=1 thread=7 call={call} function={function} start_ns=110us duration_ns=280us"
    ));
    p.launch(1, [391, 395], 398, 100);
    p.findings()
}
