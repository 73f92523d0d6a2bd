//! Stack tags: what a frame `module!function` means.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::table::{file_name, rows};

/// What frames that match a pattern mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackTag {
    /// What the time goes to, e.g. `lock`, `memory`, `etw`.
    pub category: &'static str,
    /// Module pattern; `*` stands for any text. Matched without case.
    pub module: &'static str,
    /// Function pattern; `*` stands for any text. Matched with case.
    pub function: &'static str,
    /// The meaning in a few words.
    pub meaning: &'static str,
    /// `corroborated` (the name occurs in public source), `case` (from a published analysis) or
    /// `general-knowledge`.
    pub confidence: &'static str,
}

/// Names under which symbol files and stacks know the kernel.
const KERNEL_NAMES: &[&str] = &["nt", "ntkrnlmp", "ntkrnlpa", "ntkrpamp"];
const KERNEL: &str = "ntoskrnl";

static TAGS: LazyLock<Vec<StackTag>> = LazyLock::new(|| {
    rows(include_str!("../data/stack_tags.tsv"))
        .map(|[category, module, function, meaning, confidence]| StackTag {
            category,
            module,
            function,
            meaning,
            confidence,
        })
        .collect()
});

/// Patterns by module, the most specific first.
struct Matcher {
    /// By lower-case module name without extension.
    by_module: HashMap<String, Vec<&'static StackTag>>,
    /// Patterns whose module has a `*`.
    any_module: Vec<&'static StackTag>,
}

static MATCHER: LazyLock<Matcher> = LazyLock::new(|| {
    let mut matcher = Matcher { by_module: HashMap::new(), any_module: Vec::new() };
    for tag in stack_tags() {
        if tag.module.contains('*') {
            matcher.any_module.push(tag);
        } else {
            matcher.by_module.entry(stem(tag.module).to_ascii_lowercase()).or_default().push(tag);
        }
    }
    for tags in matcher.by_module.values_mut().chain([&mut matcher.any_module]) {
        tags.sort_by_key(|tag| Reverse(specificity(tag)));
    }
    matcher
});

/// All tags, in the order of the table.
pub fn stack_tags() -> &'static [StackTag] {
    &TAGS
}

/// The most specific tag of a frame; `None` if no pattern matches. The module may have a path and may
/// lack its extension.
pub fn stack_tag(module: &str, function: &str) -> Option<&'static StackTag> {
    let name = canonical_module(module);
    let module = file_name(module);
    let matcher = &*MATCHER;
    let first = |tags: &[&'static StackTag], check_module: bool| {
        tags.iter().copied().find(|t| {
            glob(t.function, function, false) && (!check_module || module_matches(t.module, module))
        })
    };
    let own = matcher.by_module.get(&name).and_then(|tags| first(tags, false));
    let any = first(&matcher.any_module, true);
    match (own, any) {
        (Some(own), Some(any)) if specificity(any) > specificity(own) => Some(any),
        (own, any) => own.or(any),
    }
}

/// [`stack_tag`] of a frame written `module!function`, perhaps with an offset `+0x12` behind it.
pub fn stack_tag_of_frame(frame: &str) -> Option<&'static StackTag> {
    let (module, function) = frame.split_once('!')?;
    let function = match function.rsplit_once("+0x") {
        Some((name, offset)) if offset.bytes().all(|b| b.is_ascii_hexdigit()) => name,
        _ => function,
    };
    stack_tag(module, function)
}

fn module_matches(pattern: &str, module: &str) -> bool {
    glob(pattern, module, true) || (module == stem(module) && glob(stem(pattern), module, true))
}

/// A function without `*` beats any with one; more literal characters beat fewer; a named module beats
/// a pattern.
fn specificity(tag: &StackTag) -> (bool, usize, usize) {
    let literal = |pattern: &str| pattern.bytes().filter(|b| *b != b'*').count();
    (!tag.function.contains('*'), literal(tag.function), literal(tag.module))
}

/// A module's name in lower case, without path and extension; the kernel has one name of its several.
pub(crate) fn canonical_module(module: &str) -> String {
    let name = stem(file_name(module)).to_ascii_lowercase();
    if KERNEL_NAMES.contains(&name.as_str()) { KERNEL.to_owned() } else { name }
}

/// Whether it is the kernel, by any of its names.
pub(crate) fn is_kernel(module: &str) -> bool {
    canonical_module(module) == KERNEL
}

/// The name without `.exe`, `.dll` or `.sys`.
fn stem(module: &str) -> &str {
    match module.rsplit_once('.') {
        Some((stem, end)) if ["exe", "dll", "sys"].iter().any(|e| e.eq_ignore_ascii_case(end)) => stem,
        _ => module,
    }
}

/// Whether `text` fits `pattern`, in which `*` stands for any text. Linear in practice: only the last
/// star is ever tried again.
pub(crate) fn glob(pattern: &str, text: &str, ignore_case: bool) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let same = |a: u8, b: u8| if ignore_case { a.eq_ignore_ascii_case(&b) } else { a == b };
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while let Some(&byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(&expected) if same(expected, byte) => {
                p += 1;
                t += 1;
            }
            _ => match retry {
                Some((after_star, from)) => {
                    p = after_star;
                    t = from + 1;
                    retry = Some((after_star, t));
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or(&[]).iter().all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("*SpinWait*", "Concurrency::SpinWait::Spin", true),
            ("RtlDebug*Heap*", "RtlDebugAllocateHeap", true),
            ("a*b*c", "aXbXbc", true),
            ("abc", "ab", false),
            ("", "x", false),
            ("Etwp*", "etwpLog", false),
        ] {
            assert_eq!(glob(pattern, text, false), fits, "{pattern} {text}");
        }
        assert!(glob("KernelBase.dll", "kernelbase.DLL", true));
    }

    #[test]
    fn the_most_specific_pattern_wins() {
        let tag = stack_tag("ntoskrnl.exe", "EtwpLogKernelEvent").unwrap();
        assert_eq!((tag.category, tag.function), ("etw", "EtwpLogKernelEvent"));
        let tag = stack_tag("ntoskrnl.exe", "EtwpSomethingElse").unwrap();
        assert_eq!(tag.function, "Etwp*");
        assert_eq!(stack_tag("ntoskrnl.exe", "NoSuchFunctionAnywhere"), None);
    }

    #[test]
    fn what_calls_a_callout_is_the_network() {
        for function in ["KfdClassify", "ArbitrateAndEnforce", "ProcessCallout"] {
            let tag = stack_tag("NETIO.SYS", function).unwrap();
            assert_eq!((tag.category, tag.module), ("network", "netio.sys"), "{function}");
        }
    }

    #[test]
    fn modules_in_any_form() {
        let tag = stack_tag("ntoskrnl.exe", "EtwpTraceStackWalk");
        assert!(tag.is_some());
        for module in ["nt", "NTKRNLMP.exe", r"\SystemRoot\system32\ntoskrnl.exe", "ntoskrnl"] {
            assert_eq!(stack_tag(module, "EtwpTraceStackWalk"), tag, "{module}");
        }
        assert_eq!(stack_tag_of_frame("nt!EtwpTraceStackWalk+0x1f3"), tag);
        assert_eq!(stack_tag_of_frame("no frame"), None);
        assert_eq!(stack_tag("ntdll.dll", "EtwpTraceStackWalk"), None);
    }

    #[test]
    fn every_pattern_finds_itself_or_something_as_specific() {
        assert_eq!(stack_tags().len(), 247);
        for tag in stack_tags() {
            let (module, function) = (tag.module.replace('*', "x"), tag.function.replace('*', "x"));
            let found = stack_tag(&module, &function).unwrap();
            assert!(specificity(found) >= specificity(tag), "{tag:?} {found:?}");
        }
    }
}
