//! Results as one HTML file: static, without scripts, with a policy that forbids everything but its own style.

use super::{compared, results};
use crate::compare::Comparison;
use crate::outcome::Outcome;
use etwhy_doc::{Doc, escape_markup as escape, html};

const STYLE: &str = include_str!("page.css");

fn page(title: &str, doc: &Doc) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<title>{0}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header><span \
         class=\"brand\">etwhy probe · {0}</span></header>\n<main>\n<section>\n{1}</section>\n</main>\n<footer>etwhy {2}. All figures hold for this \
         machine, at that time.</footer>\n</body>\n</html>\n",
        escape(title),
        html::render(doc),
        env!("CARGO_PKG_VERSION")
    )
}

/// The page of results.
pub fn report(outcome: &Outcome, scale: Option<f64>) -> String {
    let mut doc = results::document(outcome, scale, true);
    doc.title.get_or_insert_with(|| "What this machine takes".to_owned());
    page("results", &doc)
}

/// The page of a comparison, with the machine of `outcome`.
pub fn comparison(comparison: &Comparison, outcome: &Outcome, per_day: f64, given: bool) -> String {
    let mut doc = results::machine(outcome);
    let compared = compared::document(comparison, per_day, given);
    doc.title = compared.title.clone();
    doc.append(compared);
    page("comparison", &doc)
}
