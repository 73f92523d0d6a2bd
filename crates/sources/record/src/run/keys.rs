//! Names of keys.

use std::fmt;
use std::str::FromStr;

/// Keys that are pressed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// `MOD_ALT`, `MOD_CONTROL`, `MOD_SHIFT`, `MOD_WIN` (winuser.h).
    pub modifiers: u32,
    /// Virtual key code (winuser.h).
    pub key: u32,
    text: String,
}

/// `MOD_ALT`, `MOD_CONTROL`, `MOD_SHIFT`, `MOD_WIN` (winuser.h).
const MODIFIERS: [(&str, u32); 4] = [("alt", 1), ("ctrl", 2), ("shift", 4), ("win", 8)];
/// Keys of names (`VK_…`, winuser.h).
const NAMED: [(&str, u32); 9] = [
    ("pause", 0x13),
    ("space", 0x20),
    ("pageup", 0x21),
    ("pagedown", 0x22),
    ("end", 0x23),
    ("home", 0x24),
    ("insert", 0x2D),
    ("delete", 0x2E),
    ("scroll", 0x91),
];
/// `VK_F1`.
const F1: u32 = 0x70;

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Keys {
    type Err = String;

    fn from_str(text: &str) -> Result<Keys, String> {
        let lower = text.to_lowercase();
        let mut parts: Vec<&str> = lower.split('+').map(str::trim).collect();
        let last = parts.pop().unwrap_or_default();
        let wrong = |why: &str| format!("`{text}` is no key: {why}; for example ctrl+alt+s, shift+f9, pause");
        let mut modifiers = 0;
        for part in &parts {
            let known = MODIFIERS.iter().find(|(name, _)| name == part);
            modifiers |= known.ok_or_else(|| wrong("before the last + stand ctrl, alt, shift and win"))?.1;
        }
        let function = last.strip_prefix('f').and_then(|n| n.parse().ok()).filter(|n| (1..=24).contains(n));
        let named = NAMED.iter().find(|(name, _)| *name == last).map(|(_, code)| *code);
        let typed = match last.as_bytes() {
            [byte] if byte.is_ascii_alphanumeric() => Some(u32::from(byte.to_ascii_uppercase())),
            _ => None,
        };
        if function == Some(12) && modifiers == 0 {
            return Err(wrong("Windows keeps F12 for debuggers"));
        }
        if (typed.is_some() || matches!(last, "space" | "delete")) && modifiers & !4 == 0 {
            return Err(wrong("a key that is typed needs ctrl, alt or win: nobody could type it any more"));
        }
        let key = function.map(|n: u32| F1 + n - 1).or(named).or(typed);
        let key = key.ok_or_else(|| {
            wrong("known are letters, digits, f1 to f24, pause, scroll, insert, home and so on")
        })?;
        Ok(Keys { modifiers, key, text: lower.replace(' ', "") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_winuser_h() {
        let of = |text: &str| text.parse::<Keys>().map(|keys| (keys.modifiers, keys.key));
        assert_eq!(of("ctrl+alt+s"), Ok((3, 0x53)));
        assert_eq!(of("Shift + F9"), Ok((4, 0x78)));
        assert_eq!(of("pause"), Ok((0, 0x13)));
        assert_eq!(of("win+7"), Ok((8, 0x37)));
        for none in ["", "s", "shift+s", "ctrl", "ctrl+", "f12", "f25", "f0", "meta+s", "ctrl+ß", "space"] {
            assert!(of(none).is_err(), "{none}");
        }
        assert_eq!("Ctrl + Alt+S".parse::<Keys>().unwrap().to_string(), "ctrl+alt+s");
    }
}
