//! Documents and their blocks.

use crate::figure::{Figure, Timeline};
use crate::line::Line;
use crate::table::Table;
use serde::Serialize;

/// A document. Blocks are added from top to bottom; what is empty adds nothing.
#[derive(Debug, Default, Serialize)]
pub struct Doc {
    /// What the document is, for those formats that are read apart from the command: a terminal does not show it.
    pub title: Option<String>,
    /// The blocks in order.
    pub blocks: Vec<Block>,
}

/// A part of a document.
#[derive(Debug, Serialize)]
#[serde(tag = "block", rename_all = "snake_case")]
pub enum Block {
    /// A heading: level 2 begins a part of the document, 3 a part of that.
    Heading {
        /// 2 or 3; 1 is the document's title.
        level: u8,
        /// What it says.
        text: Line,
    },
    /// A paragraph.
    Text {
        /// Its words.
        text: Line,
    },
    /// A table.
    Table(Table),
    /// A list.
    List {
        /// Its items.
        items: Vec<Item>,
    },
    /// Words behind a label: a caveat, a warning, a fact. Those behind each other are aligned.
    Note {
        /// What kind of note it is: `But:`, a severity.
        label: Line,
        /// Its words.
        text: Line,
    },
    /// What is known of the source, in a frame.
    Facts {
        /// Title of the frame.
        title: String,
        /// A fact on each line.
        lines: Vec<Line>,
    },
    /// A finding.
    Finding(Finding),
    /// Sums over time as a line of bars.
    Timeline(Timeline),
    /// What draws itself.
    Figure {
        /// The figure.
        figure: Box<dyn Figure>,
    },
    /// Lines to copy or to read exactly, never broken.
    Verbatim {
        /// Language, for colours: `bat`, `sql`, `text`.
        language: String,
        /// The lines.
        lines: Vec<String>,
    },
    /// What may stay folded, where that is possible.
    Details {
        /// What is in there.
        summary: String,
        /// The blocks.
        blocks: Vec<Block>,
    },
    /// An empty line in a terminal, to set parts without headings apart.
    Space,
}

/// An item of a list.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Item {
    /// The item.
    pub text: Line,
    /// Items below it.
    pub below: Vec<Line>,
}

/// A finding: what was seen, how bad it is, what to do.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Finding {
    /// How bad: `critical`, `warning`, `notice`, `info`.
    pub severity: String,
    /// Its name, where the headline alone does not say it. Terminals leave it out.
    pub title: String,
    /// What was seen, of the worst culprit.
    pub headline: Line,
    /// The same of other culprits.
    pub also: Vec<Line>,
    /// Culprits besides, which are only counted.
    pub more: usize,
    /// What it means, and why it happens.
    pub why: Line,
    /// What to do.
    pub fix: Line,
    /// What limits it.
    pub caveats: Vec<Line>,
    /// What would disprove it.
    pub disproof: Line,
    /// The command that explains it.
    pub see: String,
}

impl Doc {
    /// An empty document with a title.
    pub fn titled(title: impl Into<String>) -> Doc {
        Doc { title: Some(title.into()), blocks: Vec::new() }
    }

    /// Begins a part.
    pub fn heading(&mut self, text: impl Into<Line>) {
        self.blocks.push(Block::Heading { level: 2, text: text.into() });
    }

    /// Begins a part of a part.
    pub fn subheading(&mut self, text: impl Into<Line>) {
        self.blocks.push(Block::Heading { level: 3, text: text.into() });
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: impl Into<Line>) {
        let text = text.into();
        if !text.is_empty() {
            self.blocks.push(Block::Text { text });
        }
    }

    /// Adds a table unless it has no rows.
    pub fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }

    /// Adds an item to the list at the end, or begins one.
    pub fn item(&mut self, text: impl Into<Line>, below: impl IntoIterator<Item = impl Into<Line>>) {
        let item = Item { text: text.into(), below: below.into_iter().map(Into::into).collect() };
        match self.blocks.last_mut() {
            Some(Block::List { items }) => items.push(item),
            _ => self.blocks.push(Block::List { items: vec![item] }),
        }
    }

    /// Adds an item with none below it.
    pub fn bullet(&mut self, text: impl Into<Line>) {
        self.item(text, None::<Line>);
    }

    /// Adds a labelled text.
    pub fn note(&mut self, label: impl Into<Line>, text: impl Into<Line>) {
        self.blocks.push(Block::Note { label: label.into(), text: text.into() });
    }

    /// Adds facts in a frame.
    pub fn facts(&mut self, title: impl Into<String>, lines: Vec<Line>) {
        self.blocks.push(Block::Facts { title: title.into(), lines });
    }

    /// Adds a finding.
    pub fn finding(&mut self, finding: Finding) {
        self.blocks.push(Block::Finding(finding));
    }

    /// Adds sums over time.
    pub fn timeline(&mut self, timeline: Timeline) {
        self.blocks.push(Block::Timeline(timeline));
    }

    /// Adds what draws itself.
    pub fn figure(&mut self, figure: impl Figure + 'static) {
        self.blocks.push(Block::Figure { figure: Box::new(figure) });
    }

    /// Adds lines to copy.
    pub fn verbatim(&mut self, language: &str, text: &str) {
        let lines = text.lines().map(str::to_owned).collect();
        self.blocks.push(Block::Verbatim { language: language.to_owned(), lines });
    }

    /// Adds what may stay folded.
    pub fn details(&mut self, summary: impl Into<String>, inner: Doc) {
        self.blocks.push(Block::Details { summary: summary.into(), blocks: inner.blocks });
    }

    /// Sets what follows apart in a terminal.
    pub fn space(&mut self) {
        self.blocks.push(Block::Space);
    }

    /// Adds the blocks of another document.
    pub fn append(&mut self, other: Doc) {
        self.blocks.extend(other.blocks);
    }
}
