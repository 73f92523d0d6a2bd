//! Contrasts of one run: what its own kinds of samples say of each other.

use super::cells::{Kind, cells};
use super::difference::{Difference, Sides, differences};
use crate::outcome::ProbeOutcome;
use crate::probe::Contrast;

/// A contrast of one run: two kinds of samples of one probe ([`crate::probe::Contrast`]), compared by round.
#[derive(Clone, Debug)]
pub struct Against {
    /// The contrast's title.
    pub title: String,
    /// What it means.
    pub meaning: String,
    /// State of the results.
    pub state: String,
    /// The comparison: before is the cheap one, after the dear one.
    pub difference: Difference,
}

/// The contrasts of one result that its samples allow.
pub fn contrasts(result: &ProbeOutcome) -> Vec<Against> {
    let Some(probe) = crate::probes::ALL.iter().find(|probe| probe.name == result.probe) else {
        return Vec::new();
    };
    let all = cells(std::iter::once((0, result)));
    let (mut found, mut series) = (Vec::new(), Vec::new());
    for contrast in probe.contrasts {
        let fits = |(word, of): (&str, &str)| word.is_empty() || word == of;
        for (kind, dear) in &all {
            if !fits((contrast.dear.0, &kind.measure)) || !fits((contrast.dear.1, &kind.variant)) {
                continue;
            }
            // An empty word of the cheap side stands for that of the dear one.
            let other =
                |word: &str, same: &str| if word.is_empty() { same.to_owned() } else { word.to_owned() };
            let partner = Kind {
                probe: kind.probe.clone(),
                measure: other(contrast.cheap.0, &kind.measure),
                variant: other(contrast.cheap.1, &kind.variant),
                n: kind.n,
            };
            let Some(cheap) = all.get(&partner).filter(|cheap| partner != *kind && cheap.unit == dear.unit)
            else {
                continue;
            };
            found.push(contrast);
            series.push((kind.clone(), Sides::new(cheap, dear, true), None));
        }
    }
    let against = |(contrast, difference): (&'static Contrast, Difference)| Against {
        title: contrast.title.to_owned(),
        meaning: contrast.meaning.to_owned(),
        state: result.state.clone(),
        difference,
    };
    found.into_iter().zip(differences(&series)).map(against).collect()
}
