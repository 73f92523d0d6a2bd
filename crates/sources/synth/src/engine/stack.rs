//! Stack records for an event: one or two, or keys.

use super::Engine;
use crate::value::Draw;
use crate::world::Style;
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events as kernel;
use etwhy_etl::write::RecordBuf;
use std::io;

/// Cache slots of stacks stand this far apart; a stack has one for its kernel half and one for its user half.
pub(crate) const KEY_BASE: u64 = 0xFFFF_FA83_0000_0000;
/// See [`KEY_BASE`].
pub(crate) const KEY_STEP: u64 = 0x80;

/// The key of a half of a stack.
pub(crate) fn key(stack: usize, user: bool) -> u64 {
    KEY_BASE + (2 * stack as u64 + u64::from(user)) * KEY_STEP
}

/// An event that a stack belongs to.
pub(crate) struct Owner {
    /// When it happened.
    pub(crate) ns: i64,
    pub(crate) cpu: u16,
    /// Thread index.
    pub(crate) thread: usize,
}

impl Engine<'_> {
    /// Adds the records of a stack. `ip` replaces the innermost frame.
    pub(crate) fn stack(
        &mut self,
        owner: &Owner,
        stack: usize,
        style: Style,
        ip: Option<u64>,
    ) -> io::Result<()> {
        let world = self.world;
        let Some(stack_ref) = world.stacks.list.get(stack) else { return Ok(()) };
        let (kernel, user) = (stack_ref.kernel.as_slice(), stack_ref.user.as_slice());
        if style == Style::None || kernel.is_empty() && user.is_empty() {
            return Ok(());
        }
        let thread = world.processes.thread(owner.thread);
        let (pid, tid) = (thread.pid, thread.tid);
        let pointer = world.facts.pointer_size;
        let time = self.out.ticks(owner.ns);
        let head = |r: &mut RecordBuf, ticks: i64, event: KernelEvent| {
            r.perfinfo(pointer, event.hook, 2, ticks).i64(time).u32(pid).u32(tid);
        };
        let walk_time = 2_000 + self.rng.below(5_000) as i64;
        let user_delay = {
            let mut draw = Draw { rng: &mut self.rng, n: 0, x: 0.0 };
            walk_time + world.facts.user_stack_delay.ns(&mut draw)
        };
        let first = ip.or(kernel.first().copied()).or(user.first().copied());
        let both = style == Style::Full && !kernel.is_empty() && !user.is_empty();
        let (near, far) = if kernel.is_empty() { (user, &[][..]) } else { (kernel, user) };
        if style == Style::Keys {
            let near_user = kernel.is_empty();
            let half =
                if near_user { kernel::StackWalk::StackKeyUser } else { kernel::StackWalk::StackKeyKernel };
            self.out.add(owner.cpu, owner.ns + walk_time, |r, t| {
                head(r, t, half);
                r.ptr(key(stack, near_user))
            })?;
            if !far.is_empty() {
                self.out.add(owner.cpu, owner.ns + user_delay, |r, t| {
                    head(r, t, kernel::StackWalk::StackKeyUser);
                    r.ptr(key(stack, true))
                })?;
            }
            self.truth.key_used(stack);
            return Ok(());
        }
        self.out.add(owner.cpu, owner.ns + walk_time, |r, t| {
            head(r, t, kernel::StackWalk::Stack);
            for (i, frame) in near.iter().enumerate() {
                r.ptr(if i == 0 { first.unwrap_or(*frame) } else { *frame });
            }
            if both {
                for frame in far {
                    r.ptr(*frame);
                }
            }
            r
        })?;
        if !both && !far.is_empty() {
            self.out.add(owner.cpu, owner.ns + user_delay, |r, t| {
                head(r, t, kernel::StackWalk::Stack);
                for frame in far {
                    r.ptr(*frame);
                }
                r
            })?;
        }
        Ok(())
    }
}
