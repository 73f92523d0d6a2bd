//! What stacks say that threads waited for.

use crate::finish::Finish;
use etwhy_decode::kernel::names::wait_reason;
use etwhy_knowledge::{WaitClass, wait_function};
use foldhash::HashMap;

/// What the wait reason alone says (`KWAIT_REASON`).
pub(crate) fn of_reason(reason: u8) -> WaitClass {
    wait_reason(u32::from(reason)).map_or(WaitClass::Other, WaitClass::of_reason)
}

/// Classes of stacks, each looked up once.
#[derive(Default)]
pub(crate) struct WaitClasses {
    frames: HashMap<u32, Option<WaitClass>>,
    stacks: HashMap<i32, Option<WaitClass>>,
}

impl WaitClasses {
    /// What a wait with that reason was for, if the thread came back with the stack of that ticket.
    pub fn class(&mut self, end: &Finish<'_>, reason: u8, ticket: i32) -> WaitClass {
        let class = of_reason(reason);
        let stack = if class.is_open() { end.resolved.stack_of_ticket(ticket) } else { None };
        stack.and_then(|stack| self.of_stack(end, stack)).unwrap_or(class)
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
