//! Samples with stacks.

use super::ids::Ids;
use super::packets::{Packets, field};
use crate::profile::{Frame, People, Profile, Stacks, row};
use crate::{Result, sanitize};
use etwhy_table::Rows;
use etwhy_trace::catalog::{image::ImageRow, sample::SampleRow};
use foldhash::{HashMap, HashSet};

/// `Profiling.CpuMode`.
const KERNEL: u64 = 1;
const USER: u64 = 2;

/// What was written of stacks.
struct Interned<'a> {
    stacks: Stacks<'a>,
    images: Rows<'a, ImageRow>,
    stack_seen: HashSet<u32>,
    frame_seen: HashSet<u32>,
    /// By image, or by name where there is none.
    mappings: HashMap<(Option<u32>, &'a str), u64>,
}

impl<'a> Interned<'a> {
    /// Writes a stack unless it was written; its number.
    fn stack(&mut self, stack: u32, packets: &mut Packets<'_>) -> Result<Option<u64>> {
        let frames = self.stacks.frames_of(Some(stack));
        if frames.is_empty() {
            return Ok(None);
        }
        let number = u64::from(stack) + 1;
        if self.stack_seen.insert(stack) {
            // Outermost first.
            let frames: Vec<u32> = frames.iter().rev().copied().collect();
            for frame in &frames {
                self.frame(*frame, packets)?;
            }
            packets.packet(0, |packet| {
                packet.message(field::PACKET_INTERNED_DATA, |data| {
                    data.message(field::INTERNED_CALLSTACKS, |message| {
                        message.uint(field::INTERNED_IID, number);
                        for frame in &frames {
                            message.uint(field::CALLSTACK_FRAMES, u64::from(*frame) + 1);
                        }
                    });
                });
            })?;
        }
        Ok(Some(number))
    }

    fn frame(&mut self, frame: u32, packets: &mut Packets<'_>) -> Result<()> {
        if !self.frame_seen.insert(frame) {
            return Ok(());
        }
        let found = self.stacks.frame(frame);
        let mapping = self.mapping(&found, packets)?;
        let function = packets.text(field::INTERNED_FUNCTION_NAMES, &sanitize(found.label))?;
        let file = match found.file {
            Some(file) => Some(packets.text(field::INTERNED_SOURCE_PATHS, &sanitize(file))?),
            None => None,
        };
        packets.packet(0, |packet| {
            packet.message(field::PACKET_INTERNED_DATA, |data| {
                data.message(field::INTERNED_FRAMES, |message| {
                    message.uint(field::INTERNED_IID, u64::from(frame) + 1);
                    message.uint(field::FRAME_FUNCTION, function);
                    message.uint(field::FRAME_MAPPING, mapping);
                    message.uint(field::FRAME_REL_PC, found.rva.unwrap_or(found.address));
                    if let (Some(file), Some(line)) = (file, found.line) {
                        message.uint(field::FRAME_SOURCE_PATH, file);
                        message.uint(field::FRAME_LINE, line as u64);
                    }
                });
            });
        })
    }

    fn mapping(&mut self, frame: &Frame<'a>, packets: &mut Packets<'_>) -> Result<u64> {
        let key = (frame.image, if frame.image.is_some() { "" } else { frame.module });
        if let Some(number) = self.mappings.get(&key) {
            return Ok(*number);
        }
        let number = self.mappings.len() as u64 + 1;
        self.mappings.insert(key, number);
        let image = frame.image.and_then(|image| self.images.get(image));
        let id =
            image.and_then(|image| Some(format!("{}-{}", image.pdb_guid()?, image.pdb_age().unwrap_or(0))));
        let id = packets.text(field::INTERNED_BUILD_IDS, id.as_deref().unwrap_or(""))?;
        let path = packets.text(
            field::INTERNED_MAPPING_PATHS,
            &sanitize(image.map_or(frame.module, |image| image.path())),
        )?;
        let start = image.map_or(0, |image| image.base()) as u64;
        let size = image.map_or(0, |image| image.size_bytes()).max(0) as u64;
        packets.packet(0, |packet| {
            packet.message(field::PACKET_INTERNED_DATA, |data| {
                data.message(field::INTERNED_MAPPINGS, |message| {
                    message.uint(field::INTERNED_IID, number);
                    message.uint(field::MAPPING_BUILD_ID, id);
                    message.uint(field::MAPPING_START, start);
                    message.uint(field::MAPPING_END, start.saturating_add(size));
                    message.uint(field::MAPPING_PATH, path);
                });
            });
        })?;
        Ok(number)
    }
}

/// Writes the wanted samples.
pub(super) fn write(
    profile: &Profile<'_>,
    people: &People,
    ids: &Ids,
    packets: &mut Packets<'_>,
) -> Result<()> {
    let mut interned = Interned {
        stacks: Stacks::read(profile.db),
        images: profile.db.read_or_empty(),
        stack_seen: HashSet::default(),
        frame_seen: HashSet::default(),
        mappings: HashMap::default(),
    };
    for of in &profile.db.read_or_empty::<SampleRow>() {
        let (ts, upid, utid) = (of.ts_ns(), row(of.upid()), row(of.utid()));
        if !profile.is_in_time(ts) {
            continue;
        }
        let [dpc, isr] = ids.interrupt_threads();
        // An interrupt is not the thread's that it interrupts; it belongs to the machine, as idle time does not.
        let (pid, tid) = if of.in_isr() || of.in_dpc() {
            if profile.scope.processes.is_some() || profile.scope.threads.is_some() {
                continue;
            }
            (ids.interrupts(), if of.in_isr() { isr.0 } else { dpc.0 })
        } else if profile.is_of(people, upid, utid) {
            (upid.map_or(0, |upid| ids.pid(upid)), utid.map_or(0, |utid| ids.tid(utid)))
        } else {
            continue;
        };
        let stack = row(of.stack_id());
        let leaf = stack.and_then(|stack| interned.stacks.frames_of(Some(stack)).first());
        let is_kernel = leaf.is_some_and(|&leaf| interned.stacks.frame(leaf).kind == "kernel");
        let number = match stack {
            Some(stack) => interned.stack(stack, packets)?,
            None => None,
        };
        packets.packet(ts, |packet| {
            packet.message(field::PACKET_PERF_SAMPLE, |sample| {
                sample.uint(field::SAMPLE_CPU, of.cpu().max(0) as u64);
                sample.uint(field::SAMPLE_PID, pid);
                sample.uint(field::SAMPLE_TID, tid);
                sample.uint(field::SAMPLE_CPU_MODE, if is_kernel { KERNEL } else { USER });
                if let Some(number) = number {
                    sample.uint(field::SAMPLE_CALLSTACK, number);
                }
            });
        })?;
    }
    Ok(())
}
