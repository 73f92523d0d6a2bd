//! Foldings one after the other, in the order in which somebody asked for them.
//!
//! [`Folding`] has one order for all its parts. Who looks around in a tree takes a step, looks, takes the next: each of these is
//! a [`Step`], applied to what the ones before it left.

use super::folding::{Folder, Folding};
use super::frames::Frames;
use super::tree::NodeName;

/// A step.
#[derive(Clone, Debug)]
pub enum Step {
    /// A folding.
    Fold(Folding),
    /// Only the stacks that begin with these labels (groups, then frames), and of them what begins at the last of these: a node of the
    /// tree becomes the top of it. Of an inverted tree the labels go inwards out.
    Subtree {
        /// Labels below the root.
        path: Vec<String>,
        /// The path is one of an inverted tree.
        inverted: bool,
    },
}

/// A step that knows the names of a trace.
pub(super) enum Stepper {
    Fold(Folder),
    Subtree { path: Vec<String>, inverted: bool },
}

impl Stepper {
    pub fn new(step: &Step, frames: &Frames, names: &mut Vec<NodeName>) -> Stepper {
        match step {
            Step::Fold(folding) => Stepper::Fold(Folder::new(folding, frames, names)),
            Step::Subtree { path, inverted } => Stepper::Subtree { path: path.clone(), inverted: *inverted },
        }
    }

    /// As [`Folder::fold`]: whether the stack counts, and whether its outermost frame is no longer the one that it was.
    pub fn fold(&self, names: &[NodeName], groups: &[u32], frames: &mut Vec<u32>) -> (bool, bool) {
        let (path, inverted) = match self {
            Stepper::Fold(folder) => return folder.fold(frames),
            Stepper::Subtree { path, inverted } => (path, *inverted),
        };
        let label = |number: Option<&u32>| names.get(*number? as usize).map(|name| name.label.as_str());
        let at = |place: usize| match place.checked_sub(groups.len()) {
            None => label(groups.get(place)),
            Some(place) if inverted => label(frames.iter().rev().nth(place)),
            Some(place) => label(frames.get(place)),
        };
        if !path.iter().enumerate().all(|(place, wanted)| at(place) == Some(wanted)) {
            return (false, false);
        }
        let off = path.len().saturating_sub(groups.len()).saturating_sub(1);
        if inverted {
            frames.truncate(frames.len().saturating_sub(off));
            (true, false)
        } else {
            frames.drain(..off.min(frames.len()));
            (true, off > 0)
        }
    }
}
