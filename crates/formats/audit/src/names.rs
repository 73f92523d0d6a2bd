//! Names and words of all languages that are known, looked up without regard to case and apostrophes.

use crate::setting::Setting;
use etwhy_knowledge::{
    AuditSubcategory, SettingWord, audit_setting_names, audit_subcategory, audit_subcategory_names,
};
use std::collections::HashMap;
use std::sync::LazyLock;

/// A name as it is compared: lower case, one kind of apostrophe and of blank, no blanks at the ends.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut blank = true;
    // The German auditpol of Windows 11 prints `Plug &amp; Play` (seen by the project SAMADCON).
    for c in text.replace("&amp;", "&").chars() {
        match c {
            c if c.is_whitespace() || c == '\u{feff}' => {
                if !blank {
                    folded.push(' ');
                }
                blank = true;
                continue;
            }
            '’' | '‘' | '´' | '`' => folded.push('\''),
            c => folded.extend(c.to_lowercase()),
        }
        blank = false;
    }
    if folded.ends_with(' ') {
        folded.pop();
    }
    folded
}

/// One known name.
struct KnownName {
    subcategory: &'static AuditSubcategory,
    languages: Vec<&'static str>,
}

struct Lists {
    names: HashMap<String, KnownName>,
    /// Folded names, the longest first.
    by_length: Vec<String>,
    settings: HashMap<String, (Setting, Vec<&'static str>)>,
    /// Names and words with letters beyond ASCII: they tell code pages apart.
    telling: Vec<String>,
}

static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    let mut names: HashMap<String, KnownName> = HashMap::new();
    for name in audit_subcategory_names() {
        if let Some(subcategory) = audit_subcategory(name.guid) {
            let known = names.entry(fold(name.text));
            known.or_insert(KnownName { subcategory, languages: Vec::new() }).languages.push(name.language);
        }
    }
    let mut settings: HashMap<String, (Setting, Vec<&'static str>)> = HashMap::new();
    for word in audit_setting_names() {
        let setting = match word.means {
            SettingWord::Success => Setting::Success,
            SettingWord::Failure => Setting::Failure,
            SettingWord::Both => Setting::Both,
            SettingWord::None => Setting::None,
            SettingWord::Unspecified => Setting::Unspecified,
        };
        settings.entry(fold(word.text)).or_insert((setting, Vec::new())).1.push(word.language);
    }
    let mut by_length: Vec<String> = names.keys().cloned().collect();
    by_length.sort_by_key(|name| (std::cmp::Reverse(name.len()), name.clone()));
    let telling = names.keys().chain(settings.keys()).filter(|name| !name.is_ascii()).cloned().collect();
    Lists { names, by_length, settings, telling }
});

/// The subcategory of this name in any language, also with the words that Group Policy's console adds: `Audit Logon`,
/// `Anmelden überwachen`, `Auditar inicio de sesión`, `ログオンの監査`.
pub fn subcategory(name: &str) -> Option<&'static AuditSubcategory> {
    let folded = fold(name);
    let find = |name: &str| LISTS.names.get(name).map(|known| known.subcategory);
    let bare = || {
        folded
            .strip_prefix("audit ")
            .or_else(|| folded.strip_prefix("auditar "))
            .or_else(|| folded.strip_suffix(" überwachen"))
            .or_else(|| folded.strip_suffix("の監査"))
    };
    find(&folded).or_else(|| find(bare()?))
}

/// The languages that call a subcategory so; empty if none is known.
pub fn languages_of_name(name: &str) -> &'static [&'static str] {
    LISTS.names.get(&fold(name)).map_or(&[], |known| &known.languages)
}

/// The languages that have this word for a setting.
pub fn languages_of_setting(word: &str) -> &'static [&'static str] {
    LISTS.settings.get(&fold(word)).map_or(&[], |(_, languages)| languages)
}

/// What a word for a setting means; also successes and failures put together in a way that is not listed.
pub fn setting(word: &str) -> Option<Setting> {
    let folded = fold(word);
    let known = |word: &str| LISTS.settings.get(word.trim()).map(|(setting, _)| *setting);
    if let Some(setting) = known(&folded) {
        return Some(setting);
    }
    // English, German, French, Spanish, Russian; and what scripts write.
    let separators = [" and ", " und ", " et ", " y ", " и ", ",", "/", "+", "&"];
    separators.iter().find_map(|separator| {
        let (one, other) = folded.split_once(separator)?;
        match (known(one)?, known(other)?) {
            (Setting::Success, Setting::Failure) | (Setting::Failure, Setting::Success) => {
                Some(Setting::Both)
            }
            _ => None,
        }
    })
}

/// A known name that a folded line begins with, and the rest of the line. The longest name wins.
pub fn leading(line: &str) -> Option<(&'static AuditSubcategory, &'static str, String)> {
    let folded = fold(line);
    LISTS.by_length.iter().find_map(|name| {
        let rest = folded.strip_prefix(name.as_str())?;
        let known = LISTS.names.get(name)?;
        // Names of 40 and more characters touch the setting behind them.
        let ends = rest.is_empty() || rest.starts_with(' ') || setting(rest).is_some();
        ends.then(|| (known.subcategory, name.as_str(), rest.trim().to_owned()))
    })
}

/// How many known names and words with letters beyond ASCII stand in a text.
pub fn known_in(text: &str) -> usize {
    let folded = fold(text);
    LISTS.telling.iter().filter(|name| folded.contains(name.as_str())).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_several_languages() {
        for (name, english) in [
            ("Filtering Platform Connection", "Filtering Platform Connection"),
            ("FILTERPLATTFORMVERBINDUNG", "Filtering Platform Connection"),
            ("Audit Logon", "Logon"),
            ("Audit Policy Change", "Audit Policy Change"),
            ("Audit Audit Policy Change", "Audit Policy Change"),
            ("Anmelden überwachen", "Logon"),
            ("Richtlinienänderungen überwachen", "Audit Policy Change"),
            ("Modification de l'état de la sécurité", "Security State Change"),
            ("Modification de l’état de la sécurité", "Security State Change"),
            ("Plug &amp; Play-Ereignisse", "Plug and Play Events"),
            ("Inicio  de\u{a0}sesión", "Logon"),
            ("ログオンの監査", "Logon"),
            ("Вход в систему", "Logon"),
        ] {
            assert_eq!(subcategory(name).map(|s| s.name), Some(english), "{name}");
        }
        assert_eq!(subcategory("Logon/Logoff"), None);
    }

    #[test]
    fn words_for_settings() {
        for (word, means) in [
            ("Success and Failure", Setting::Both),
            ("Erfolg und Fehler", Setting::Both),
            ("Aciertos y errores", Setting::Both),
            ("Успех и Отказ", Setting::Both),
            ("Succès et échec", Setting::Both),
            ("success, failure", Setting::Both),
            ("No Auditing", Setting::None),
            ("keine überwachung", Setting::None),
            ("監査なし", Setting::None),
            ("Not Specified", Setting::Unspecified),
        ] {
            assert_eq!(setting(word), Some(means), "{word}");
        }
        assert_eq!(setting("perhaps"), None);
        assert_eq!(setting(""), None);
    }

    #[test]
    fn a_line_begins_with_the_longest_name() {
        let (sub, _, rest) = leading("  Other Logon/Logoff Events               No Auditing").unwrap();
        assert_eq!((sub.name, rest.as_str()), ("Other Logon/Logoff Events", "no auditing"));
        assert!(leading("Logon/Logoff").is_none());
        // 43 characters and no blank before the setting.
        let (sub, _, rest) = leading("  Detaillierte VerzeichnisdienstreplikationErfolg").unwrap();
        assert_eq!((sub.name, rest.as_str()), ("Detailed Directory Service Replication", "erfolg"));
    }
}
