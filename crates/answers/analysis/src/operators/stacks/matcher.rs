//! Which frames a user means.

use super::frames::FrameName;
use etwhy_table::Pattern;

/// Names of functions and modules as users type them: `SleepEx`, `kernelbase!SleepEx`, `tedrdrv.sys`, `nt!Ke*`; `;` separates,
/// `!` in front excludes, `*` and `?` are wildcards, letter case does not count.
#[derive(Clone, Debug)]
pub struct Matcher {
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    Pattern(Pattern),
    /// As the scalar `stack_has` of SQL: label, module or category.
    Sql(Pattern),
    Function(String),
    Module(String),
    /// One of them is enough.
    Any(Vec<Matcher>),
}

impl Matcher {
    /// Reads it; every text is one.
    pub fn parse(text: &str) -> Matcher {
        Matcher { how: How::Pattern(Pattern::parse(text)) }
    }

    /// What `stack_has` means by the text: label, module or category of a frame.
    pub fn as_sql(text: &str) -> Matcher {
        Matcher { how: How::Sql(Pattern::parse(text)) }
    }

    /// The frames that are called exactly so ([`FrameName::label`]): names of C++ have stars and question marks of their own.
    pub fn function(label: impl Into<String>) -> Matcher {
        Matcher { how: How::Function(label.into()) }
    }

    /// The frames of the module that is called exactly so.
    pub fn module(name: impl Into<String>) -> Matcher {
        Matcher { how: How::Module(name.into()) }
    }

    /// The frames that one of them means.
    pub fn any(of: Vec<Matcher>) -> Matcher {
        Matcher { how: How::Any(of) }
    }

    /// Whether it means a frame: by function, by module, or by both.
    pub fn matches(&self, frame: &FrameName) -> bool {
        let pattern = match &self.how {
            How::Pattern(pattern) => pattern,
            How::Sql(pattern) => {
                return [&frame.label, &frame.module, &frame.category]
                    .into_iter()
                    .any(|text| pattern.matches(text));
            }
            How::Function(label) => return frame.label == *label,
            How::Module(module) => return frame.module == *module,
            How::Any(of) => return of.iter().any(|one| one.matches(frame)),
        };
        let modules = module_forms(&frame.module);
        let function = frame.function.as_deref().unwrap_or("");
        let both = modules
            .iter()
            .map(|module| format!("{module}!{}", if function.is_empty() { "?" } else { function }));
        let mut forms: Vec<String> = both.collect();
        forms.push(frame.label.clone());
        if !function.is_empty() {
            forms.push(function.to_owned());
        }
        // What is excluded must not match in any form, what is included in one.
        let modules = modules.into_iter().map(str::to_owned);
        let all: Vec<String> = forms.into_iter().chain(modules).collect();
        pattern.matches_any(&all)
    }

    /// Whether it means a module.
    pub fn matches_module(&self, module: &str) -> bool {
        match &self.how {
            How::Pattern(pattern) => {
                let forms: Vec<String> = module_forms(module).into_iter().map(str::to_owned).collect();
                pattern.matches_any(&forms)
            }
            How::Sql(pattern) => pattern.matches(module),
            How::Function(_) => false,
            How::Module(name) => name == module,
            How::Any(of) => of.iter().any(|one| one.matches_module(module)),
        }
    }
}

/// A module as debuggers call it: with its ending, without it, and `nt` for the kernel.
fn module_forms(module: &str) -> Vec<&str> {
    let mut forms = vec![module];
    if let Some((stem, _)) = module.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        forms.push(stem);
    }
    if module.eq_ignore_ascii_case("ntoskrnl.exe") {
        forms.push("nt");
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(module: &str, function: &str) -> FrameName {
        FrameName {
            label: format!("{module}!{function}"),
            module: module.to_owned(),
            function: Some(function.to_owned()).filter(|f| !f.is_empty()),
            ..FrameName::default()
        }
    }

    #[test]
    fn functions_and_modules_as_they_are_typed() {
        let sleep = frame("KernelBase.dll", "SleepEx");
        for text in
            ["SleepEx", "kernelbase!sleepex", "KernelBase.dll!SleepEx", "kernelbase", "Sleep*", "a;SleepEx"]
        {
            assert!(Matcher::parse(text).matches(&sleep), "{text}");
        }
        for text in ["Sleep", "kernel32!SleepEx", "Sleep*;!kernelbase", "nt!SleepEx"] {
            assert!(!Matcher::parse(text).matches(&sleep), "{text}");
        }
        assert!(Matcher::parse("nt!KeWait*").matches(&frame("ntoskrnl.exe", "KeWaitForSingleObject")));
        assert!(Matcher::parse("tedrdrv.sys").matches(&frame("tedrdrv.sys", "")));
        let odd = frame("a.dll", "f<*;?>");
        assert!(
            Matcher::function("a.dll!f<*;?>").matches(&odd) && !Matcher::function("a.dll!*").matches(&odd)
        );
        assert!(Matcher::module("a.dll").matches(&odd) && !Matcher::module("a").matches(&odd));
        assert!(Matcher::as_sql("a.dll!*").matches(&odd) && !Matcher::as_sql("f*").matches(&odd));
        assert!(
            Matcher::parse("nt").matches_module("ntoskrnl.exe")
                && !Matcher::parse("nt").matches_module("ntdll.dll")
        );
    }
}
