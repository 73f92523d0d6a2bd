//! Files sorted into recordings.

use super::Identity;
use super::machine::{Difference, Machine};
use super::recording::{Relation, relation};

/// Files sorted into recordings, by number.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    /// The files of each recording, in the order in which they were given; recordings in the order of their first files.
    pub recordings: Vec<Vec<usize>>,
    /// Why there is more than one: for each recording but the first, what sets it apart from the first.
    pub apart: Vec<Apart>,
}

/// What sets a recording apart from the first one.
#[derive(Clone, Debug)]
pub struct Apart {
    /// A file of the first recording and one of this.
    pub files: [usize; 2],
    /// What differs.
    pub differences: Vec<Difference>,
}

/// A recording while it is put together.
struct Open {
    machine: Machine,
    members: Vec<usize>,
}

/// Sorts files into recordings. A file belongs to a recording if it is part of one recording with one of its files, and nothing sets it
/// apart from any of them. A file that tells too little, and would fit recordings that cannot be one, is a recording of its own: nobody
/// knows whose it is.
pub fn group(files: &[Identity]) -> Grouping {
    // Those that name their computer come first, whatever their time: others are compared with what is known then.
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|&n| files.get(n).map(|file| (file.machine.computer.is_none(), file.span_ns.0, n)));
    let mut recordings: Vec<Open> = Vec::new();
    for n in order {
        let Some(file) = files.get(n) else { continue };
        let (homes, others): (Vec<Open>, Vec<Open>) =
            recordings.into_iter().partition(|open| belongs(file, open, files));
        recordings = others;
        let alone = Open { machine: file.machine.clone(), members: vec![n] };
        if can_be_one(&homes, files) {
            // It may connect what nothing connected before.
            recordings.push(homes.into_iter().fold(alone, |mut all, home| {
                all.machine.learn(&home.machine);
                all.members.extend(home.members);
                all
            }));
        } else {
            recordings.extend(homes);
            recordings.push(alone);
        }
    }
    let mut recordings: Vec<Vec<usize>> = recordings.into_iter().map(|open| open.members).collect();
    for members in &mut recordings {
        members.sort_unstable();
    }
    recordings.sort();
    let apart = reasons(files, &recordings);
    Grouping { recordings, apart }
}

/// Nothing sets any of these recordings apart from another.
fn can_be_one(homes: &[Open], files: &[Identity]) -> bool {
    homes.iter().enumerate().all(|(n, a)| {
        homes.iter().skip(n + 1).all(|b| {
            let one = |&member: &usize| files.get(member).is_some_and(|file| !is_apart(file, a, files));
            a.machine.differences(&b.machine).is_empty() && b.members.iter().all(one)
        })
    })
}

fn is_apart(file: &Identity, open: &Open, files: &[Identity]) -> bool {
    let members = open.members.iter().filter_map(|&n| files.get(n));
    members.map(|member| relation(member, file)).any(|relation| matches!(relation, Relation::Apart(_)))
}

fn belongs(file: &Identity, open: &Open, files: &[Identity]) -> bool {
    let members = || open.members.iter().filter_map(|&n| files.get(n));
    open.machine.differences(&file.machine).is_empty()
        && members().any(|member| relation(member, file) == Relation::Parts)
        && !is_apart(file, open, files)
}

fn reasons(files: &[Identity], recordings: &[Vec<usize>]) -> Vec<Apart> {
    let Some((first, others)) = recordings.split_first() else { return Vec::new() };
    let mut all = Vec::new();
    for other in others {
        let mut best: Option<Apart> = None;
        for (&a, &b) in first.iter().flat_map(|a| other.iter().map(move |b| (a, b))) {
            let (Some(one), Some(two)) = (files.get(a), files.get(b)) else { continue };
            let found = match relation(one, two) {
                // Each may go with the other, but not with all of its recording.
                Relation::Parts => continue,
                Relation::Unrelated(difference) => vec![difference],
                Relation::Apart(differences) => differences,
            };
            if best.as_ref().is_none_or(|best| best.differences.len() < found.len()) {
                best = Some(Apart { files: [a, b], differences: found });
            }
        }
        let of_neither = || {
            let text = "it tells too little of its machine, and fits several recordings that cannot be one";
            let files = [*first.first()?, *other.first()?];
            Some(Apart { files, differences: vec![Difference::stated("whose it is", text.to_owned())] })
        };
        all.extend(best.or_else(of_neither));
    }
    all
}
