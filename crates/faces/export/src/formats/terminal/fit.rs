//! Fits columns into the width of the terminal.

use crate::text::width;

use super::cells::Column;

/// A text that is cut below this tells nothing any more.
const NARROWEST_TEXT: usize = 12;

/// The widths of the columns from the left; columns beyond them are not to be shown.
pub(super) fn fit(columns: &[Column], rows: &[Vec<String>], limit: Option<usize>, gap: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|c| width(&c.header)).collect();
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = width(cell).max(*widest);
        }
    }
    let Some(limit) = limit else { return widths };
    // Take columns away until the rest fits with its texts at their narrowest, then let the texts grow.
    let narrowest = |(column, width): (&Column, &usize)| {
        if column.text { (*width).min(NARROWEST_TEXT) } else { *width }
    };
    while widths.len() > 1 {
        let needed: usize = columns.iter().zip(&widths).map(narrowest).sum();
        if needed + gap * (widths.len() - 1) <= limit {
            break;
        }
        widths.pop();
    }
    let texts: Vec<bool> = columns.iter().take(widths.len()).map(|c| c.text).collect();
    let fixed: usize = widths.iter().zip(&texts).filter(|(_, text)| !**text).map(|(w, _)| w).sum();
    let room = limit.saturating_sub(fixed + gap * widths.len().saturating_sub(1));
    let cap = largest_cap(&widths, &texts, room);
    for (width, _) in widths.iter_mut().zip(&texts).filter(|(_, text)| **text) {
        *width = (*width).min(cap);
    }
    if let ([only], true) = (widths.as_mut_slice(), texts.first() == Some(&false)) {
        *only = (*only).min(limit.max(1));
    }
    widths
}

/// The largest width to which texts can be cut so that all of them fit into `room`.
fn largest_cap(widths: &[usize], texts: &[bool], room: usize) -> usize {
    let needed = |cap: usize| -> usize {
        widths.iter().zip(texts).filter(|(_, text)| **text).map(|(width, _)| (*width).min(cap)).sum()
    };
    let (mut fits, mut too_much) = (0, widths.iter().copied().max().unwrap_or(0).min(room) + 1);
    while fits + 1 < too_much {
        let middle = fits + (too_much - fits) / 2;
        if needed(middle) <= room { fits = middle } else { too_much = middle }
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_share_what_is_left() {
        assert_eq!(largest_cap(&[10, 50, 5], &[true, true, false], 40), 30);
        assert_eq!(largest_cap(&[10, 50, 50], &[true, true, true], 50), 20);
        assert_eq!(largest_cap(&[10, 10], &[true, true], 100), 10);
        assert_eq!(largest_cap(&[10, 10], &[true, true], 0), 0);
        assert_eq!(largest_cap(&[], &[], 10), 0);
    }
}
