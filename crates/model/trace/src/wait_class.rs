//! What stacks say that threads waited for.

use crate::finish::Finish;
use etwhy_decode::kernel::names::wait_reason;
use etwhy_knowledge::{WaitClass, releases_mutex, wait_function};
use foldhash::HashMap;

/// What the wait reason alone says (`KWAIT_REASON`).
pub(crate) fn of_reason(reason: u8) -> WaitClass {
    wait_reason(u32::from(reason)).map_or(WaitClass::Other, WaitClass::of_reason)
}

/// Whether the waker's stack may say more: objects of the kernel, mutexes among them.
pub(crate) fn of_object(class: WaitClass) -> bool {
    matches!(class, WaitClass::Object | WaitClass::Other)
}

/// Classes of stacks, each looked up once.
#[derive(Default)]
pub(crate) struct WaitClasses {
    frames: HashMap<u32, Option<WaitClass>>,
    stacks: HashMap<i32, Option<WaitClass>>,
    /// Whether stacks of those who end waits release a mutex.
    wakers: HashMap<i32, bool>,
}

impl WaitClasses {
    /// What a wait with that reason was for, if the thread came back with the stack of that ticket, and another one ended the wait with the
    /// stack of `waker`.
    pub fn class(&mut self, end: &Finish<'_>, reason: u8, ticket: i32, waker: i32) -> WaitClass {
        let class = of_reason(reason);
        if !class.is_open() {
            return class;
        }
        let stack = end.resolved.stack_of_ticket(ticket);
        if let Some(class) = stack.and_then(|stack| self.of_stack(end, stack)) {
            return class;
        }
        match end.resolved.stack_of_ticket(waker) {
            Some(waker) if of_object(class) && self.released(end, waker) => WaitClass::Lock,
            _ => class,
        }
    }

    fn released(&mut self, end: &Finish<'_>, stack: i32) -> bool {
        *self.wakers.entry(stack).or_insert_with(|| {
            let frames = u32::try_from(stack).map_or(&[][..], |stack| end.resolved.frames_of(stack));
            let frames = frames.iter().filter_map(|number| end.resolved.frames.get(*number as usize));
            let name = |sym| end.strings.get(sym);
            releases_mutex(frames.filter_map(|frame| Some((name(frame.module), name(frame.function?)))))
        })
    }

    /// What the innermost function with a class says.
    fn of_stack(&mut self, end: &Finish<'_>, stack: i32) -> Option<WaitClass> {
        if let Some(known) = self.stacks.get(&stack) {
            return *known;
        }
        let frames = end.resolved.frames_of(u32::try_from(stack).ok()?);
        let class = frames.iter().find_map(|number| {
            *self.frames.entry(*number).or_insert_with(|| {
                let frame = end.resolved.frames.get(*number as usize)?;
                let function = end.strings.get(frame.function?);
                wait_function(end.strings.get(frame.module), function).map(|row| row.class)
            })
        });
        self.stacks.insert(stack, class);
        class
    }
}
