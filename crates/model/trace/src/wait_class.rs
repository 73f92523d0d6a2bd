//! What stacks say that threads waited for.

use crate::finish::Finish;
use etwhy_decode::kernel::names::wait_reason;
use etwhy_knowledge::{WaitClass, releases_mutex, wait_function};
use foldhash::HashMap;
use std::sync::LazyLock;

/// Stacks and their names, as the end of a pass or as tables hold them.
pub trait Named {
    /// The number of the stack that a ticket stands for.
    fn stack(&self, ticket: i32) -> Option<u32>;
    /// Its frames, innermost first.
    fn frames(&self, stack: u32) -> &[u32];
    /// Module of a frame, and its function if that has a name.
    fn name(&self, frame: u32) -> Option<(&str, Option<&str>)>;
    /// The process of a thread.
    fn process(&self, utid: u32) -> Option<u32>;
}

impl Named for Finish<'_> {
    fn stack(&self, ticket: i32) -> Option<u32> {
        u32::try_from(self.resolved.stack_of_ticket(ticket)?).ok()
    }

    fn frames(&self, stack: u32) -> &[u32] {
        self.resolved.frames_of(stack)
    }

    fn name(&self, frame: u32) -> Option<(&str, Option<&str>)> {
        let frame = self.resolved.frames.get(frame as usize)?;
        Some((self.strings.get(frame.module), frame.function.map(|name| self.strings.get(name))))
    }

    fn process(&self, utid: u32) -> Option<u32> {
        self.model.upid_of(utid)
    }
}

/// What the wait reason alone says (`KWAIT_REASON`).
pub(crate) fn of_reason(reason: u8) -> WaitClass {
    wait_reason(u32::from(reason)).map_or(WaitClass::Other, WaitClass::of_reason)
}

/// The number of a wait reason (`KWAIT_REASON`) by its name; `u8::MAX` for none.
pub fn reason_of(name: &str) -> u8 {
    static REASONS: LazyLock<HashMap<&str, u8>> = LazyLock::new(|| {
        (0..u8::MAX).filter_map(|reason| Some((wait_reason(u32::from(reason))?, reason))).collect()
    });
    REASONS.get(name).copied().unwrap_or(u8::MAX)
}

/// Whether the waker's stack may say more: objects of the kernel, mutexes among them.
pub(crate) fn of_object(class: WaitClass) -> bool {
    matches!(class, WaitClass::Object | WaitClass::Other)
}

/// Classes of stacks, each looked up once.
#[derive(Default)]
pub(crate) struct WaitClasses {
    frames: HashMap<u32, Option<WaitClass>>,
    stacks: HashMap<u32, Option<WaitClass>>,
    /// Whether stacks of those who end waits release a mutex.
    wakers: HashMap<u32, bool>,
}

impl WaitClasses {
    /// What a wait with that reason was for, if the thread came back with the stack of that ticket, and another one ended the wait with the
    /// stack of `waker`.
    pub fn class(&mut self, named: &impl Named, reason: u8, ticket: i32, waker: i32) -> WaitClass {
        let class = of_reason(reason);
        if !class.is_open() {
            return class;
        }
        if let Some(class) = named.stack(ticket).and_then(|stack| self.of_stack(named, stack)) {
            return class;
        }
        match named.stack(waker) {
            Some(waker) if of_object(class) && self.released(named, waker) => WaitClass::Lock,
            _ => class,
        }
    }

    /// Whether the stack of whoever ended a wait could tell that it released a mutex: without names of functions it cannot.
    pub fn names_waker(named: &impl Named, waker: i32) -> bool {
        let leaf = named.stack(waker).and_then(|stack| named.frames(stack).first());
        leaf.and_then(|frame| named.name(*frame)).is_some_and(|(_, function)| function.is_some())
    }

    /// Whether a function on the stack of that ticket has a name.
    pub fn names_any(named: &impl Named, ticket: i32) -> bool {
        let frames = named.stack(ticket).map_or(&[][..], |stack| named.frames(stack));
        frames.iter().filter_map(|frame| named.name(*frame)).any(|(_, function)| function.is_some())
    }

    fn released(&mut self, named: &impl Named, stack: u32) -> bool {
        *self.wakers.entry(stack).or_insert_with(|| {
            let names = named.frames(stack).iter().filter_map(|frame| named.name(*frame));
            releases_mutex(names.filter_map(|(module, function)| Some((module, function?))))
        })
    }

    /// What the innermost function with a class says.
    fn of_stack(&mut self, named: &impl Named, stack: u32) -> Option<WaitClass> {
        if let Some(known) = self.stacks.get(&stack) {
            return *known;
        }
        let class = named.frames(stack).iter().find_map(|number| {
            *self.frames.entry(*number).or_insert_with(|| {
                let (module, function) = named.name(*number)?;
                wait_function(module, function?).map(|row| row.class)
            })
        });
        self.stacks.insert(stack, class);
        class
    }
}
