//! The verdicts of several recordings: one by one, and a summary of all.

use crate::{Form, Open, Report, document};
use etwhy_base::units::duration_ns;
use etwhy_doc::{Block, Doc, Line, escape_markup, html};
use etwhy_rules::{Answer, Severity};
use etwhy_table::Database;
use etwhy_trace::catalog::trace::TraceRow;
use serde::Serialize;
use std::io::{self, Write};

/// Name and version of the JSON.
pub const SCHEMA: &str = "etwhy.why-several/1";

/// Verdicts of several recordings.
#[derive(Clone, Debug, Serialize)]
pub struct Several {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What sets each recording apart from the first.
    pub apart: Vec<String>,
    /// The recordings, in the order in which they were given.
    pub traces: Vec<One>,
}

/// One recording: what its line of the summary says, and its verdict.
#[derive(Clone, Debug, Default, Serialize)]
pub struct One {
    /// Its files.
    pub files: Vec<String>,
    /// Name of the content of its files: `recording_id` of table `trace`.
    pub trace_id: String,
    /// Name of the machine in this boot.
    pub machine_id: String,
    /// Computer, where recorded.
    pub computer: Option<String>,
    /// Windows version and build.
    pub os: String,
    /// Start, UTC.
    pub start_utc: String,
    /// From the first to the last event.
    pub duration_ns: i64,
    /// Findings above info, by severity: critical, warning, notice.
    pub found: [usize; 3],
    /// How many patterns were asked for, and how many of them cannot be determined.
    #[serde(flatten)]
    pub open: Open,
    /// The verdict in one sentence.
    pub sentence: String,
    /// Why there is no verdict.
    pub error: Option<String>,
    /// The verdict as `why` gives it for one trace.
    pub report: Option<Report>,
}

impl One {
    /// A recording that was read.
    pub fn new(db: &Database, files: Vec<String>, report: Report) -> One {
        let trace = db.read_or_empty::<TraceRow>();
        let first = trace.first();
        let count = |severity: Severity| {
            let is = |o: &&etwhy_rules::Outcome| o.answer == Answer::Found && o.severity == Some(severity);
            report.findings.iter().filter(is).count()
        };
        One {
            files,
            trace_id: first.map_or(String::new(), |row| row.recording_id().to_owned()),
            machine_id: first.map_or(String::new(), |row| row.machine_id().to_owned()),
            computer: trace.iter().find_map(|row| row.computer()).map(str::to_owned),
            os: report.quality.os.clone(),
            start_utc: report.quality.start_utc.clone(),
            duration_ns: report.quality.duration_ns,
            found: [Severity::Critical, Severity::Warning, Severity::Notice].map(count),
            open: report.open(),
            sentence: report.sentence.clone(),
            error: None,
            report: Some(report),
        }
    }

    /// A recording that could not be read.
    pub fn failed(files: Vec<String>, error: String) -> One {
        One { files, error: Some(error), ..One::default() }
    }

    /// Its files in one short text.
    pub fn name(&self) -> String {
        match self.files.as_slice() {
            [] => String::new(),
            [one] => one.clone(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
        }
    }

    /// Computer, start, length and what was found, in words.
    pub fn facts(&self) -> [String; 4] {
        let [critical, warnings, notices] = self.found;
        let parts = [(critical, "critical"), (warnings, "warning"), (notices, "notice")];
        let found: Vec<String> = parts
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, name)| format!("{n} {name}{}", if *n > 1 && *name != "critical" { "s" } else { "" }))
            .collect();
        let start = self.start_utc.split('.').next().unwrap_or_default().to_owned();
        let found = match found.as_slice() {
            [] if self.error.is_some() => "not read".to_owned(),
            [] => self.open.nothing_found(),
            list => list.join(", "),
        };
        let computer = self.computer.clone().unwrap_or_else(|| "not recorded".to_owned());
        [computer, start, duration_ns(self.duration_ns), found]
    }

    /// The verdict, or why there is none.
    pub fn verdict(&self) -> &str {
        self.error.as_deref().unwrap_or(&self.sentence)
    }
}

/// Heads of the columns of the summary.
pub const HEAD: [&str; 6] = ["Trace", "Computer", "Start (UTC)", "Recorded", "Found", "Verdict"];

impl Several {
    /// What each recording is and what was found in it.
    pub fn summary(&self) -> Doc {
        let mut doc = Doc::titled(format!("Why was it slow? {} recordings", self.traces.len()));
        doc.heading(format!("Summary of {} recordings", self.traces.len()));
        for (n, one) in self.traces.iter().enumerate() {
            let head = Line::from(format!("{}: ", n + 1)).and(Line::name(one.name()));
            doc.item(head.and(format!(" · {}", one.facts().join(" · "))), [one.verdict()]);
        }
        doc
    }

    /// One document: the summary, then each verdict.
    pub fn document(&self) -> Doc {
        let mut doc = self.summary();
        doc.append(self.apart());
        for (n, one) in self.traces.iter().enumerate() {
            let text = Line::from(format!("{}: ", n + 1)).and(Line::name(one.name()));
            doc.blocks.push(Block::Heading { level: 1, text });
            match &one.report {
                Some(report) => doc.append(document(report, &Form::FULL)),
                None => doc.text(one.verdict()),
            }
        }
        doc
    }

    /// Why they are not read as one.
    pub fn apart(&self) -> Doc {
        let mut doc = Doc::default();
        if !self.apart.is_empty() {
            doc.heading("Why they are not read as one");
        }
        self.apart.iter().for_each(|line| doc.item(line, None::<Line>));
        doc
    }

    /// A page with the summary. `pages` are the names of the files with the verdicts, beside this one; `None` for one that could not be
    /// read.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn html(&self, pages: &[Option<String>], out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>etwhy: {} recordings</title>\n<style>body{{font:16px/1.5 system-ui,sans-serif;margin:2rem;color-scheme:light dark}}\
             table{{border-collapse:collapse}}th,td{{text-align:left;vertical-align:top;padding:.4rem .8rem;border-bottom:1px \
             solid #8886}}</style></head>\n<body><h1>Why was it slow? {} recordings</h1>\n<table><thead><tr>",
            self.traces.len(),
            self.traces.len()
        )?;
        for head in HEAD {
            write!(out, "<th scope=\"col\">{head}</th>")?;
        }
        writeln!(out, "</tr></thead><tbody>")?;
        for (n, one) in self.traces.iter().enumerate() {
            let name = escape_markup(&one.name());
            match pages.get(n).and_then(Option::as_ref) {
                Some(page) => write!(out, "<tr><td><a href=\"./{}\">{name}</a></td>", escape_markup(page))?,
                None => write!(out, "<tr><td>{name}</td>")?,
            }
            for fact in one.facts() {
                write!(out, "<td>{}</td>", escape_markup(&fact))?;
            }
            writeln!(out, "<td>{}</td></tr>", escape_markup(one.verdict()))?;
        }
        writeln!(out, "</tbody></table>\n{}</body></html>", html::render(&self.apart()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_found_says_how_much_cannot_be_determined() {
        let found = |undetermined, asked, found| {
            let open = Open { undetermined, asked };
            let [.., text] = One { open, found, ..One::default() }.facts();
            text
        };
        assert_eq!(found(87, 89, [0; 3]), "nothing found; 87 of 89 patterns cannot be determined");
        assert_eq!(found(89, 89, [0; 3]), "cannot tell: none of 89 patterns can be determined");
        assert_eq!(found(0, 89, [0; 3]), "nothing found");
        assert_eq!(found(0, 0, [0; 3]), "nothing asked");
        assert_eq!(found(87, 89, [0, 2, 0]), "2 warnings");
        let [.., text] = One::failed(vec!["a.etl".to_owned()], "no trace".to_owned()).facts();
        assert_eq!(text, "not read");
    }
}
