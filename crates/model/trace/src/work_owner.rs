//! Whose routine a thread of the System process runs.

use crate::catalog::stack::company_of;
use crate::finish::Finish;
use crate::resolve::{Frame, FrameKind};
use etwhy_knowledge::{is_os_driver, work_host};
use etwhy_table::Sym;

/// The driver whose routine a thread of the System process ran with the stack of this ticket; `None` if it is Windows' own, or if the stack
/// does not tell. Only the routine counts that the thread was started with, or that it took from a queue, as in table `system_work`.
pub(crate) fn driver_of(end: &Finish<'_>, ticket: i32) -> Option<Sym> {
    let stack = u32::try_from(end.resolved.stack_of_ticket(ticket)?).ok()?;
    let kernel = end.resolved.frames_of(stack).get(..end.resolved.kernel_depth(stack))?;
    let mut outer =
        kernel.iter().rev().filter_map(|number| end.resolved.frames.get(*number as usize)).peekable();
    let name = |frame: &Frame| end.strings.get(frame.module);
    let host =
        |frame: &Frame| frame.function.is_some_and(|f| work_host(name(frame), end.strings.get(f)).is_some());
    // A stack that does not reach to the begin of the thread says nothing.
    outer.peek().filter(|frame| host(frame))?;
    let routine = outer.find(|frame| !host(frame))?;
    let nobody = routine.kind != FrameKind::Kernel
        || name(routine).starts_with('[')
        || is_os_driver(name(routine), company_of(end, routine.image));
    (!nobody).then_some(routine.module)
}
