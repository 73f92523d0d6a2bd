//! Findings: claims about a trace that anyone can check.
//!
//! A finding is one text file (`crates/answers/rules/findings/*.toml`, or a user's own): manual page, what it needs, thresholds with
//! their source, a query over tables, texts, tests. The answer is *found*, *not found*, or *cannot tell because …*.
//! [`mod@rule`] reads the files, [`mod@evaluate`] asks the tables, [`mod@text`] fills numbers into sentences, [`mod@check`] runs the
//! tests that the files hold.

#![forbid(unsafe_code)]

pub mod advice;
pub mod check;
pub mod counter_needs;
pub mod evaluate;
mod facts;
mod instance;
mod loss;
pub mod manual;
mod patience;
pub mod rule;
mod shipped;
pub mod text;
mod unsampled;

pub use advice::{Advice, Class, Step};
pub use evaluate::{Answer, Hit, Outcome, evaluate, evaluate_all, evaluate_below};
pub use facts::Reason;
pub use instance::Instance;
pub use rule::{
    CostOf, Rule, RuleError, Rules, Severity, Source, Subject, builtin, builtin_with_tests, load_file,
    load_folder, with_folders,
};
