//! The trackers in the order in which they see an event, before any analysis does, and what each of them works with.

use crate::event::{Context, Event, Select};
use crate::model::{
    clr, cpu, file_name, il_map, image, naming, place, process, registry_key, service, stack, switch, system,
    thread, volume,
};

/// A tracker: the events that it needs and what it does with them.
pub(crate) struct Tracker {
    pub(crate) selects: &'static [Select],
    pub(crate) event: fn(&Event<'_>, &mut Context<'_>),
    /// Which tables need it.
    pub(crate) needed: Needed,
    /// What it saw before a part of a trace matters inside it.
    pub(crate) before: bool,
}

/// Which tables need what a tracker knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needed {
    /// All.
    Always,
    /// Those with numbers of frames.
    ForFrames,
    /// Those with numbers of stacks.
    ForStacks,
}

const fn always(selects: &'static [Select], event: fn(&Event<'_>, &mut Context<'_>)) -> Tracker {
    Tracker { selects, event, needed: Needed::Always, before: true }
}

/// The trackers in their order.
pub(crate) const TRACKERS: &[Tracker] = &[
    always(process::SELECTS, |e, cx| process::event(e, &mut cx.model.processes, cx.strings, cx.ledger)),
    always(thread::SELECTS, |e, cx| {
        let model = &mut *cx.model;
        let running = model.cpus.running(e.record.cpu, e.ns).map(|r| r.utid);
        thread::event(e, &mut model.threads, &mut model.processes, running, cx.strings, cx.ledger);
    }),
    always(naming::SELECTS, |e, cx| {
        let model = &mut *cx.model;
        naming::event(e, &mut model.named, &mut model.threads, &mut model.processes);
    }),
    always(image::SELECTS, |e, cx| {
        let model = &mut *cx.model;
        image::event(e, &mut model.images, &mut model.processes, cx.strings, cx.ledger);
    }),
    always(volume::SELECTS, |e, cx| volume::event(e, &mut cx.model.volumes)),
    always(system::SELECTS, |e, cx| system::event(e, &mut cx.model.system, cx.ledger)),
    always(service::SELECTS, |e, cx| service::event(e, &mut cx.model.services, cx.strings)),
    always(file_name::SELECTS, |e, cx| file_name::event(e, &mut cx.model.files, cx.strings, cx.ledger)),
    always(registry_key::SELECTS, |e, cx| registry_key::event(e, &mut cx.model.keys, cx.strings)),
    always(clr::SELECTS, |e, cx| {
        let model = &mut *cx.model;
        clr::event(e, &mut model.clr, &mut model.processes, cx.strings);
    }),
    Tracker {
        needed: Needed::ForFrames,
        ..always(il_map::SELECTS, |e, cx| {
            let model = &mut *cx.model;
            let (maps, processes) = (&mut model.il_maps, &mut model.processes);
            il_map::event(e, maps, &model.clr, processes, cx.strings, cx.ledger);
        })
    },
    always(cpu::SELECTS, |e, cx| {
        let model = &mut *cx.model;
        let (threads, processes) = (&mut model.threads, &mut model.processes);
        cpu::event(e, &mut model.cpus, threads, processes, cx.timeline, cx.ledger);
    }),
    always(switch::SELECTS, |e, cx| {
        let model = &mut *cx.model;
        let (threads, processes) = (&mut model.threads, &mut model.processes);
        switch::event(e, &mut model.switches, &model.cpus, threads, processes, cx.ledger);
    }),
    Tracker {
        needed: Needed::ForFrames,
        before: false,
        ..always(place::SELECTS, |e, cx| {
            let model = &mut *cx.model;
            place::event(e, &mut model.places, &model.threads, &model.images);
        })
    },
    Tracker {
        needed: Needed::ForStacks,
        before: false,
        ..always(stack::SELECTS, |e, cx| {
            let model = &mut *cx.model;
            let (threads, processes) = (&mut model.threads, &mut model.processes);
            stack::event(e, &mut model.stacks, threads, processes, &model.images, cx.timeline, cx.ledger);
        })
    },
];
