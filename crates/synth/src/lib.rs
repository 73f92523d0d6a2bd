//! etwhy-synth
#![forbid(unsafe_code)]
