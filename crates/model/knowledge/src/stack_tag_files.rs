//! Stack tags of the user's own, from files in the format of Windows Performance Analyzer (`.stacktags`).
//!
//! ```xml
//! <Tag Name="">
//!   <Tag Name="Serialize" Priority="1">
//!     <Entrypoint Module="json.dll" Method="*Write*"/>
//!     <HintTag Name="By type" Priority="2" HintOperator="Callee" OnlyShowModule="false">
//!       <Entrypoint Module="json.dll" Method="Serializer.Dispatch*"/>
//!     </HintTag>
//!   </Tag>
//! </Tag>
//! ```
//!
//! A tag's path is the names from the outside in, joined by `\`. Every stack has one tag at most, so that sums over tags
//! are sums over stacks: the tag of the frame with the highest `Priority` (0 if not given; it is not inherited), and among
//! equals that of the innermost frame. A `HintTag` has the frame that was called (`HintOperator="Callee"`) or that called
//! (`Caller`) as last part of its path. `*` and `?` are wildcards, case does not matter, and `::` is the same as `.`
//! between the parts of a name, because symbols of .NET images write either. An entry without `Method` means the whole module.
//!
//! Microsoft documents the format only by its schema; elements and attributes are those of the files that ship with
//! public tools (ETWAnalyzer's `default.stacktags`, whose remark on serializers says which way priorities go).

use crate::KnowledgeError;
use crate::extend::cut;
use crate::stack_tags::{canonical_module, stack_tag};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Tags and entries that files may have, and how deeply tags nest: more are no tags but a mistake.
const MOST_TAGS: usize = 100_000;
const MOST_LEVELS: usize = 64;
/// Where the name of a tag path's level ends.
const SEPARATOR: char = '\\';

/// Which frame a `HintTag` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The frame that the entry's frame called.
    Callee,
    /// The frame that called the entry's frame.
    Caller,
}

/// A tag of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTag {
    /// Names from the outside in, joined by `\`.
    pub path: String,
    /// The highest wins.
    pub priority: i32,
    /// The frame whose name is the last part of the path, and whether only its module is shown.
    pub hint: Option<(Hint, bool)>,
}

#[derive(Clone, Debug)]
struct Entry {
    module: String,
    method: String,
    tag: usize,
}

/// Tags of one or more files.
#[derive(Clone, Debug, Default)]
pub struct StackTagFiles {
    tags: Vec<FileTag>,
    entries: Vec<Entry>,
    /// Entries by module in lower case without extension, and those with wildcards there.
    by_module: HashMap<String, Vec<usize>>,
    any_module: Vec<usize>,
}

static FILES: OnceLock<StackTagFiles> = OnceLock::new();

/// Puts tags in front of those that ship, for the rest of the program's life. False if that was done already.
pub fn use_stack_tags(files: StackTagFiles) -> bool {
    FILES.set(files).is_ok()
}

impl StackTagFiles {
    /// Adds the tags of a file.
    ///
    /// # Errors
    /// What is wrong in the file, and where.
    pub fn read(&mut self, text: &str, file: &str) -> Result<(), KnowledgeError> {
        let fail = |line: u32, message: String| KnowledgeError {
            file: file.to_owned(),
            line: line as usize,
            message,
        };
        let document = roxmltree::Document::parse(text.trim_start_matches('\u{feff}'))
            .map_err(|e| fail(e.pos().row, format!("no XML: {e}")))?;
        let root = document.root_element();
        let line = |node: &roxmltree::Node<'_, '_>| document.text_pos_at(node.range().start).row;
        if !is(&root, "Tag") {
            let found = root.tag_name().name();
            return Err(fail(
                line(&root),
                format!("a stack tag file begins with <Tag>, not <{}>", cut(found)),
            ));
        }
        // Depth first, in the order of the file, without recursion: files may come from anywhere.
        let mut open: Vec<(roxmltree::Node<'_, '_>, String, usize)> = vec![(root, String::new(), 0)];
        while let Some((node, outer, level)) = open.pop() {
            if level > MOST_LEVELS || self.tags.len() + self.entries.len() > MOST_TAGS {
                return Err(fail(
                    line(&node),
                    format!("more than {MOST_TAGS} tags, or {MOST_LEVELS} levels"),
                ));
            }
            let name = node.attribute("Name").unwrap_or("");
            let path = match (outer.as_str(), name) {
                (outer, "") => outer.to_owned(),
                ("", name) => name.to_owned(),
                (outer, name) => format!("{outer}{SEPARATOR}{name}"),
            };
            let number = |text: &str| {
                let wrong = || fail(line(&node), format!("Priority=\"{}\" is no whole number", cut(text)));
                text.trim().parse::<i32>().map_err(|_| wrong())
            };
            let priority = node.attribute("Priority").map(number).transpose()?.unwrap_or(0);
            let hint = match (is(&node, "HintTag"), node.attribute("HintOperator")) {
                (false, _) => None,
                (true, None) => Some(Hint::Callee),
                (true, Some(text)) if text.eq_ignore_ascii_case("Callee") => Some(Hint::Callee),
                (true, Some(text)) if text.eq_ignore_ascii_case("Caller") => Some(Hint::Caller),
                (true, Some(text)) => {
                    let message =
                        format!("HintOperator=\"{}\" is not known; Callee and Caller are", cut(text));
                    return Err(fail(line(&node), message));
                }
            };
            let only_module =
                node.attribute("OnlyShowModule").is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
            let tag = self.tags.len();
            self.tags.push(FileTag { path: path.clone(), priority, hint: hint.map(|h| (h, only_module)) });
            let first = open.len();
            for child in node.children().filter(roxmltree::Node::is_element) {
                if is(&child, "Tag") || is(&child, "HintTag") {
                    open.push((child, path.clone(), level + 1));
                } else if is(&child, "Entrypoint") {
                    let of = |name| child.attribute(name).filter(|text| !text.is_empty()).unwrap_or("*");
                    self.add(of("Module"), of("Method"), tag);
                }
            }
            if let Some(children) = open.get_mut(first..) {
                children.reverse();
            }
        }
        Ok(())
    }

    fn add(&mut self, module: &str, method: &str, tag: usize) {
        let number = self.entries.len();
        self.entries.push(Entry { module: module.to_owned(), method: plain(method), tag });
        if module.contains(['*', '?']) {
            self.any_module.push(number);
        } else {
            self.by_module.entry(canonical_module(module)).or_default().push(number);
        }
    }

    /// How many tags have a name.
    pub fn len(&self) -> usize {
        self.tags.iter().filter(|tag| !tag.path.is_empty()).count()
    }

    /// True if there is no tag.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tag of a frame: of those that fit it the one with the highest priority, and of these the first.
    pub fn tag(&self, module: &str, function: &str) -> Option<&FileTag> {
        let function = plain(function);
        let fits = |entry: &&Entry| glob(&entry.method, &function);
        let own = self.by_module.get(&canonical_module(module)).map_or(&[][..], Vec::as_slice);
        let own = own.iter().filter_map(|&n| self.entries.get(n)).filter(fits);
        let any = self.any_module.iter().filter_map(|&n| self.entries.get(n));
        let any = any.filter(|entry| glob(&entry.module, crate::table::file_name(module))).filter(fits);
        let best = own.chain(any).filter_map(|entry| Some((self.tags.get(entry.tag)?, entry.tag)));
        best.max_by_key(|(tag, number)| (tag.priority, std::cmp::Reverse(*number))).map(|(tag, _)| tag)
    }
}

/// The tag of a frame, as it takes part in that of its stack.
#[derive(Clone, Copy, Debug)]
pub enum FrameTag {
    /// One of the user's.
    File(&'static FileTag),
    /// One that ships.
    Shipped(&'static crate::StackTag),
}

impl FrameTag {
    /// The tag of a frame.
    pub fn for_frame(module: &str, function: &str) -> Option<FrameTag> {
        let own = FILES.get().and_then(|files| files.tag(module, function)).map(FrameTag::File);
        own.or_else(|| stack_tag(module, function).map(FrameTag::Shipped))
    }

    /// What decides between the tags of frames of one stack: the user's come before those that ship.
    fn rank(self) -> (bool, i32) {
        match self {
            FrameTag::File(tag) => (true, tag.priority),
            FrameTag::Shipped(_) => (false, 0),
        }
    }
}

/// The frame that decides, of the tags of a stack's frames, innermost first.
pub fn deciding_frame(tags: impl Iterator<Item = Option<FrameTag>>) -> Option<(usize, FrameTag)> {
    let mut best: Option<(usize, FrameTag)> = None;
    for (position, tag) in tags.enumerate() {
        let Some(tag) = tag else { continue };
        if best.is_none_or(|(_, best)| tag.rank() > best.rank()) {
            best = Some((position, tag));
        }
    }
    best
}

/// The path of a tag; `frame` gives module and function of the stack's frames, innermost first.
pub fn tag_path<'f>(
    position: usize,
    tag: FrameTag,
    frame: impl Fn(usize) -> Option<(&'f str, Option<&'f str>)>,
) -> String {
    let tag = match tag {
        FrameTag::Shipped(tag) => return format!("{}{SEPARATOR}{}", tag.category, tag.meaning),
        FrameTag::File(tag) => tag,
    };
    let Some((hint, only_module)) = tag.hint else { return tag.path.clone() };
    let other = match hint {
        Hint::Callee => position.checked_sub(1),
        Hint::Caller => position.checked_add(1),
    };
    match other.and_then(frame) {
        Some((module, Some(function))) if !only_module => {
            format!("{}{SEPARATOR}{module}!{function}", tag.path)
        }
        Some((module, _)) => format!("{}{SEPARATOR}{module}", tag.path),
        None => tag.path.clone(),
    }
}

fn is(node: &roxmltree::Node<'_, '_>, name: &str) -> bool {
    node.tag_name().name() == name
}

/// A name in lower case, its parts joined by dots.
fn plain(name: &str) -> String {
    name.replace("::", ".").to_lowercase()
}

/// Whether `text` fits `pattern` without regard to case; `*` stands for any text, `?` for one character.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(expected) if *expected == b'?' || expected.eq_ignore_ascii_case(byte) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((after_star, from)) = retry else { return false };
                (p, t) = (after_star, from + 1);
                retry = Some((after_star, t));
            }
        }
    }
    pattern.get(p..).unwrap_or(&[]).iter().all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<Tag Name="">
  <Tag Name="Network">
    <Tag Name="Copy"><Entrypoint Module="HTTP.sys" Method="memcpy*"/></Tag>
    <Tag Name="Firewall" Priority="1000"><Entrypoint Module="mpssvc.dll"/></Tag>
  </Tag>
  <Tag Name="Waits" Priority="-1"><Entrypoint Module="ntoskrnl.exe" Method="KeWait*"/></Tag>
  <Tag Name="Serialize" Priority="5">
    <Entrypoint Module="*json*" Method="*Write?"/>
    <HintTag Name="By type" Priority="9" HintOperator="Callee" OnlyShowModule="false">
      <Entrypoint Module="json.ni.dll" Method="Json.Serializer.Dispatch"/>
    </HintTag>
  </Tag>
</Tag>"#;

    fn files() -> StackTagFiles {
        let mut files = StackTagFiles::default();
        files.read(FILE, "a.stacktags").unwrap();
        files
    }

    #[test]
    fn frames_get_the_tag_with_the_highest_priority() {
        let files = files();
        assert_eq!(files.len(), 6);
        let path = |module, function| files.tag(module, function).map(|t| t.path.as_str());
        assert_eq!(path("http.SYS", "memcpy_repmovs"), Some(r"Network\Copy"));
        assert_eq!(path("http.sys", "UlReceive"), None);
        assert_eq!(path(r"C:\Windows\System32\mpssvc.dll", ""), Some(r"Network\Firewall"));
        assert_eq!(path("ntkrnlmp.exe", "KeWaitForSingleObject"), Some("Waits"));
        assert_eq!(path("my.json.dll", "X::Write2"), Some("Serialize"));
        assert_eq!(path("my.json.dll", "X::Write22"), None);
        assert_eq!(path("json.ni.dll", "Json::Serializer::dispatch"), Some(r"Serialize\By type"));
    }

    #[test]
    fn a_stack_has_the_tag_of_the_innermost_of_its_best_frames() {
        let files: &'static StackTagFiles = Box::leak(Box::new(files()));
        let stack = [
            ("ntoskrnl.exe", "KeWaitForX"),
            ("json.ni.dll", "Json.Serializer.Dispatch"),
            ("a.json.dll", "Write1"),
        ];
        let tags = |from: usize| {
            stack[from..].iter().map(move |(m, f)| files.tag(m, f).map(FrameTag::File)).collect::<Vec<_>>()
        };
        let (position, tag) = deciding_frame(tags(0).into_iter()).unwrap();
        assert_eq!(position, 1);
        let path = tag_path(position, tag, |at| stack.get(at).map(|(m, f)| (*m, Some(*f))));
        assert_eq!(path, r"Serialize\By type\ntoskrnl.exe!KeWaitForX");
        let (position, tag) = deciding_frame(tags(2).into_iter()).unwrap();
        assert_eq!(tag_path(position, tag, |_| None), "Serialize");
        // Waits are what is left if nothing says more.
        let (position, tag) = deciding_frame(tags(0).into_iter().take(1)).unwrap();
        assert_eq!((position, tag_path(position, tag, |_| None).as_str()), (0, "Waits"));
        // The user's tags come before ours, wherever they stand.
        let ours = stack_tag("ntoskrnl.exe", "EtwpLogKernelEvent").map(FrameTag::Shipped);
        let (position, _) = deciding_frame([ours, None, tags(0)[0]].into_iter()).unwrap();
        assert_eq!(position, 2);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = |text: &str| StackTagFiles::default().read(text, "x").unwrap_err().to_string();
        assert!(wrong("<Tag>").starts_with("x:1: no XML"), "{}", wrong("<Tag>"));
        assert_eq!(wrong("<Profile/>"), "x:1: a stack tag file begins with <Tag>, not <Profile>");
        let text = "<Tag Name=\"\">\n<Tag Name=\"a\" Priority=\"high\"/></Tag>";
        assert_eq!(wrong(text), "x:2: Priority=\"high\" is no whole number");
        let text = "<Tag><HintTag Name=\"a\" HintOperator=\"Sibling\"/></Tag>";
        assert!(wrong(text).contains("Callee and Caller"));
        let deep = "<Tag Name=\"a\">".repeat(80) + &"</Tag>".repeat(80);
        assert!(wrong(&deep).contains("64 levels"));
    }
}
