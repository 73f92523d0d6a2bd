//! Perfetto: a `Trace` of `TracePacket`s, as ui.perfetto.dev and the trace processor read them.
//!
//! The layout is that of <https://github.com/google/perfetto/tree/main/protos/perfetto/trace>. Context switches and what made
//! threads ready are `sched_switch` and `sched_waking` of ftrace, so that the tracks of processors and the states of threads
//! appear; speed and idle states of processors are `cpu_frequency` and `cpu_idle`. Samples are `perf_sample`s with interned
//! frames. All else is `TrackEvent`s. Times are those of the trace on the clock BOOTTIME; a snapshot ties them to real time.
//!
//! Windows reuses process and thread ids, the trace processor tells threads by their ids: a later instance gets a number
//! from 0x40000000 on, and its own id stays in its name. Packets are written table by table; the reader sorts them.

mod counters;
mod ids;
mod packets;
mod samples;
mod sched;
mod slices;

use std::io::Write;

use crate::Result;
use crate::profile::{People, Profile, ProfileFormat, ProfilePart};
use ids::Ids;
use packets::{Packets, field};

/// Declaration.
pub static FORMAT: ProfileFormat = ProfileFormat {
    name: "perfetto",
    extensions: &["pftrace", "perfetto-trace", "perfetto"],
    about: "Perfetto trace (protobuf)",
    open: "https://ui.perfetto.dev (nothing is uploaded); trace_processor_shell FILE",
    weighted: false,
    most_weights: 0,
    always_gzip: false,
    binary: true,
    parts: &[
        ProfilePart {
            name: "sample",
            about: "CPU samples with stacks; those in DPCs and ISRs under a process of their own",
            tables: &["sample"],
        },
        ProfilePart {
            name: "sched",
            about: "context switches and wake-ups: processors and thread states",
            tables: &["cswitch"],
        },
        ProfilePart {
            name: "power",
            about: "frequency and idle states of processors",
            tables: &["cpu_frequency", "idle_state"],
        },
        ProfilePart {
            name: "counter",
            about: "counters of CPU use, memory, disk queues",
            tables: &["cpu_time", "memory_counter", "disk_io"],
        },
        ProfilePart { name: "interrupt", about: "DPCs and ISRs by processor", tables: &["dpc", "isr"] },
        ProfilePart { name: "gc", about: ".NET garbage collections", tables: &["clr_gc"] },
        ProfilePart { name: "exception", about: ".NET exceptions", tables: &["clr_exception"] },
        ProfilePart { name: "contention", about: ".NET lock contention", tables: &["clr_contention"] },
        ProfilePart { name: "disk_io", about: "disk transfers", tables: &["disk_io", "file"] },
        ProfilePart { name: "file_io", about: "file operations", tables: &["file_io", "file"] },
        ProfilePart { name: "hard_fault", about: "hard page faults", tables: &["hard_fault", "file"] },
        ProfilePart { name: "hang", about: "delays of user interfaces", tables: &["ui_delay"] },
        ProfilePart { name: "mark", about: "marks", tables: &["mark"] },
        ProfilePart { name: "syscall", about: "system calls", tables: &["syscall"] },
    ],
    write,
};

fn write(profile: &Profile<'_>, out: &mut dyn Write) -> Result<()> {
    let people = People::read(profile.db);
    let ids = Ids::new(&people);
    let mut packets = Packets::new(out);
    packets.start(profile.start_unix_ns(), profile.sample_interval_ns())?;
    process_tree(&people, &ids, &mut packets)?;
    if profile.has("sched") {
        sched::switches(profile, &people, &ids, &mut packets)?;
    }
    if profile.has("power") {
        sched::power(profile, &mut packets)?;
    }
    if profile.has("sample") {
        samples::write(profile, &people, &ids, &mut packets)?;
    }
    slices::write(profile, &people, &ids, &mut packets)?;
    if profile.has("counter") {
        counters::write(profile, &mut packets)?;
    }
    Ok(())
}

/// Names of all processes and threads.
fn process_tree(people: &People, ids: &Ids, packets: &mut Packets<'_>) -> Result<()> {
    packets.packet(0, |packet| {
        packet.message(field::PACKET_PROCESS_TREE, |tree| {
            for (upid, process) in people.processes.iter().enumerate().filter(|(_, p)| p.pid != 0) {
                tree.message(field::TREE_PROCESSES, |message| {
                    message.uint(field::PROCESS_PID, ids.pid(upid as u32));
                    message.uint(field::PROCESS_PPID, process.parent.map_or(0, |parent| ids.pid(parent)));
                    // The first word of the command line is the name that is shown.
                    message.text(field::PROCESS_CMDLINE, &process.label);
                    if let Some(line) = &process.command_line {
                        message.text(field::PROCESS_CMDLINE, line);
                    }
                });
            }
            tree.message(field::TREE_PROCESSES, |message| {
                message.uint(field::PROCESS_PID, ids.interrupts());
                message.text(field::PROCESS_CMDLINE, "[DPC and ISR]");
            });
            for (utid, thread) in people.threads.iter().enumerate().filter(|(_, t)| t.tid != 0) {
                let Some(upid) = thread.upid else { continue };
                tree.message(field::TREE_THREADS, |message| {
                    message.uint(field::THREAD_TID, ids.tid(utid as u32));
                    message.text(field::THREAD_NAME, &thread.label);
                    message.uint(field::THREAD_TGID, ids.pid(upid));
                });
            }
            for (tid, name) in ids.interrupt_threads() {
                tree.message(field::TREE_THREADS, |message| {
                    message.uint(field::THREAD_TID, tid);
                    message.text(field::THREAD_NAME, name);
                    message.uint(field::THREAD_TGID, ids.interrupts());
                });
            }
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::test_profile::{profile, written};

    /// What the packets mean is checked with other readers (`crates/faces/etwhy/tests/all/export.rs`).
    #[test]
    fn names_are_harmless_and_parts_can_be_left_out() {
        let has =
            |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        let all = written(&FORMAT, &profile());
        assert!(has(&all, "evil;name␊ 12.exe (40)") && has(&all, "a.dll!work") && !has(&all, "name\n"));
        let mut some = profile();
        some.without = ["sample".to_owned()].into();
        let some = written(&FORMAT, &some);
        assert!(has(&some, "worker (44)") && !has(&some, "a.dll!work"));
    }
}
