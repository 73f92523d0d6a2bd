//! Just enough JSON to write the truth file.

use std::fmt::Write;

/// Builds one JSON text. Objects only: that is all the truth file is made of.
#[derive(Default)]
pub(crate) struct Json {
    text: String,
    depth: usize,
    fresh: bool,
}

impl Json {
    pub(crate) fn new() -> Json {
        Json { text: "{".into(), depth: 1, fresh: true }
    }

    fn key(&mut self, key: &str) {
        if !self.fresh {
            self.text.push(',');
        }
        self.fresh = false;
        self.text.push('\n');
        self.text.push_str(&"  ".repeat(self.depth));
        quote(&mut self.text, key);
        self.text.push_str(": ");
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        quote(&mut self.text, value);
    }

    pub(crate) fn whole(&mut self, key: &str, value: u64) {
        self.key(key);
        let _ = write!(self.text, "{value}");
    }

    pub(crate) fn number(&mut self, key: &str, value: f64) {
        self.key(key);
        let value = (value * 1e6).round() / 1e6;
        let _ = write!(self.text, "{}", if value.is_finite() { value } else { 0.0 });
    }

    pub(crate) fn object(&mut self, key: &str, fill: impl FnOnce(&mut Json)) {
        self.key(key);
        self.text.push('{');
        self.depth += 1;
        self.fresh = true;
        fill(self);
        self.depth -= 1;
        if !self.fresh {
            self.text.push('\n');
            self.text.push_str(&"  ".repeat(self.depth));
        }
        self.text.push('}');
        self.fresh = false;
    }

    pub(crate) fn finish(mut self) -> String {
        self.text.push_str("\n}\n");
        self.text
    }
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_nest_and_text_is_escaped() {
        let mut json = Json::new();
        json.text("a\"", "C:\\x\n");
        json.object("b", |j| j.whole("c", 1));
        json.object("d", |_| ());
        json.number("e", 1.5);
        let text: String = json.finish().split_whitespace().collect();
        assert_eq!(text, r#"{"a\"":"C:\\x\u000a","b":{"c":1},"d":{},"e":1.5}"#);
    }
}
