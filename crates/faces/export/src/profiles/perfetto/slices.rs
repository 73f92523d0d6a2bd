//! Events with a length, and moments, on tracks.

use super::ids::Ids;
use super::packets::{Packets, field};
use crate::Result;
use crate::profile::{EVENTS, Event, Events, People, Profile, Shown};
use crate::protobuf::Message;
use etwhy_table::Unit;
use foldhash::HashMap;

/// `TrackEvent.Type`.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;

/// Whose track it is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum Owner {
    Machine,
    Cpu(u32),
    Process(u32),
    Thread(u32),
}

impl Owner {
    fn of(event: &Event, people: &People) -> Owner {
        match (event.cpu, event.utid, event.upid) {
            (Some(cpu), ..) => Owner::Cpu(cpu),
            // A track of a thread needs its process.
            (_, Some(utid), _)
                if people.thread(Some(utid)).is_some_and(|t| t.upid.is_some() && t.tid != 0) =>
            {
                Owner::Thread(utid)
            }
            (.., Some(upid)) if people.process(Some(upid)).is_some_and(|p| p.pid != 0) => {
                Owner::Process(upid)
            }
            _ => Owner::Machine,
        }
    }
}

/// Tracks that exist, by owner.
#[derive(Default)]
struct Tracks {
    owners: HashMap<Owner, u64>,
    groups: HashMap<&'static str, u64>,
}

impl Tracks {
    /// A new track of an owner.
    fn add(
        &mut self,
        owner: Owner,
        name: &'static str,
        people: &People,
        ids: &Ids,
        packets: &mut Packets<'_>,
    ) -> Result<u64> {
        let parent = match owner {
            Owner::Machine => None,
            Owner::Cpu(_) => Some(match self.groups.get(name) {
                Some(group) => *group,
                None => {
                    let group = packets.track(|track| track.text(field::TRACK_NAME, name))?;
                    self.groups.insert(name, group);
                    group
                }
            }),
            Owner::Process(_) | Owner::Thread(_) => Some(match self.owners.get(&owner) {
                Some(track) => *track,
                None => {
                    let track = packets.track(|track| describe(track, owner, people, ids))?;
                    self.owners.insert(owner, track);
                    track
                }
            }),
        };
        packets.track(|track| {
            match owner {
                Owner::Cpu(cpu) => track.text(field::TRACK_NAME, &format!("CPU {cpu}")),
                _ => track.text(field::TRACK_NAME, name),
            }
            if let Some(parent) = parent {
                track.uint(field::TRACK_PARENT, parent);
            }
        })
    }
}

fn describe(track: &mut Message, owner: Owner, people: &People, ids: &Ids) {
    match owner {
        Owner::Process(upid) => track.message(field::TRACK_PROCESS, |process| {
            process.uint(field::PROCESS_DESCRIPTOR_PID, ids.pid(upid));
        }),
        Owner::Thread(utid) => track.message(field::TRACK_THREAD, |thread| {
            let upid = people.thread(Some(utid)).and_then(|thread| thread.upid);
            thread.uint(field::THREAD_DESCRIPTOR_PID, upid.map_or(0, |upid| ids.pid(upid)));
            thread.uint(field::THREAD_DESCRIPTOR_TID, ids.tid(utid));
        }),
        Owner::Machine | Owner::Cpu(_) => {}
    }
}

/// A track with the ends of what is open on it, the outermost first.
struct Lane {
    track: u64,
    open: Vec<i64>,
}

impl Lane {
    /// Ends what is over.
    fn end_until(&mut self, ts_ns: i64, packets: &mut Packets<'_>) -> Result<()> {
        while let Some(end) = self.open.pop_if(|end| *end <= ts_ns) {
            packets.packet(end, |packet| {
                packet.message(field::PACKET_TRACK_EVENT, |event| {
                    event.uint(field::EVENT_TYPE, END);
                    event.uint(field::EVENT_TRACK_UUID, self.track);
                });
            })?;
        }
        Ok(())
    }

    /// Whether an event fits: inside of what is open, if its kind may be.
    fn takes(&self, end_ns: i64, nested: bool) -> bool {
        self.open.last().is_none_or(|open| nested && end_ns <= *open)
    }
}

/// Writes all events that are wanted.
pub(super) fn write(
    profile: &Profile<'_>,
    people: &People,
    ids: &Ids,
    packets: &mut Packets<'_>,
) -> Result<()> {
    let mut tracks = Tracks::default();
    // The two kinds of interrupts share their tracks, all others have their own.
    for kinds in EVENTS.chunk_by(|a, b| a.track == b.track) {
        let all: Vec<Events<'_>> = kinds.iter().filter_map(|kind| Events::read(profile, kind)).collect();
        let mut found: Vec<(Owner, Event, usize)> = Vec::new();
        for (number, events) in all.iter().enumerate() {
            events.each(profile, |event| found.push((Owner::of(&event, people), event, number)));
        }
        // What contains stands in front of what it contains.
        found.sort_by_key(|(owner, event, _)| {
            (*owner, event.start_ns, std::cmp::Reverse(event.end_ns.unwrap_or(event.start_ns)))
        });
        for group in found.chunk_by(|a, b| a.0 == b.0) {
            let mut lanes: Vec<Lane> = Vec::new();
            for (owner, event, number) in group {
                let Some(events) = all.get(*number) else { continue };
                let end = event.end_ns.unwrap_or(event.start_ns);
                for lane in &mut lanes {
                    lane.end_until(event.start_ns, packets)?;
                }
                let place = lanes.iter().position(|lane| lane.takes(end, events.kind.nested));
                let place = match place {
                    Some(place) => place,
                    None => {
                        let track = tracks.add(*owner, events.kind.track, people, ids, packets)?;
                        lanes.push(Lane { track, open: Vec::new() });
                        lanes.len() - 1
                    }
                };
                let Some(lane) = lanes.get_mut(place) else { continue };
                slice(events, event, lane.track, packets)?;
                lane.open.extend(event.end_ns);
            }
            for lane in &mut lanes {
                lane.end_until(i64::MAX, packets)?;
            }
        }
    }
    Ok(())
}

fn slice(events: &Events<'_>, event: &Event, track: u64, packets: &mut Packets<'_>) -> Result<()> {
    let name = packets.text(field::INTERNED_EVENT_NAMES, &events.name(event))?;
    let category = packets.text(field::INTERNED_CATEGORIES, events.kind.part)?;
    let mut fields = Vec::new();
    for (name, shown) in events.fields(event) {
        fields.push((packets.text(field::INTERNED_ANNOTATION_NAMES, name)?, shown));
    }
    packets.packet(event.start_ns, |packet| {
        packet.message(field::PACKET_TRACK_EVENT, |message| {
            message.uint(field::EVENT_TYPE, if event.end_ns.is_some() { BEGIN } else { INSTANT });
            message.uint(field::EVENT_TRACK_UUID, track);
            message.uint(field::EVENT_NAME_IID, name);
            message.uint(field::EVENT_CATEGORY_IIDS, category);
            for (name, shown) in &fields {
                message.message(field::EVENT_ANNOTATIONS, |annotation| {
                    annotation.uint(field::ANNOTATION_NAME_IID, *name);
                    match shown {
                        Shown::Text(text) => annotation.text(field::ANNOTATION_STRING, text),
                        Shown::Number(n, Unit::Address | Unit::Hex64) => {
                            annotation.uint(field::ANNOTATION_POINTER, *n as u64);
                        }
                        Shown::Number(n, Unit::Hex32) => {
                            annotation.uint(field::ANNOTATION_POINTER, u64::from(*n as u32));
                        }
                        Shown::Number(n, _) => annotation.int(field::ANNOTATION_INT, *n),
                    }
                });
            }
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_takes_what_lies_inside_of_what_is_open() {
        let mut out = Vec::new();
        let mut packets = Packets::new(&mut out);
        let mut lane = Lane { track: 1, open: vec![100, 50] };
        assert!(lane.takes(50, true) && !lane.takes(51, true) && !lane.takes(50, false));
        lane.end_until(50, &mut packets).unwrap();
        assert_eq!(lane.open, [100]);
        assert!(lane.takes(100, true));
        lane.end_until(i64::MAX, &mut packets).unwrap();
        assert!(lane.takes(i64::MAX, false));
        assert!(!out.is_empty());
    }
}
