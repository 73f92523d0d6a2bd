//! Languages: names such as `en-US` and the numbers (LCID) that resources carry.

/// Languages that Windows is translated into, with their LCID.
/// [MS-LCID](https://learn.microsoft.com/openspecs/windows_protocols/ms-lcid), section 2.2.
const LANGUAGES: [(u16, &str); 51] = [
    (0x0401, "ar-SA"),
    (0x0402, "bg-BG"),
    (0x0403, "ca-ES"),
    (0x0404, "zh-TW"),
    (0x0405, "cs-CZ"),
    (0x0406, "da-DK"),
    (0x0407, "de-DE"),
    (0x0408, "el-GR"),
    (0x0409, "en-US"),
    (0x040a, "es-ES_tradnl"),
    (0x040b, "fi-FI"),
    (0x040c, "fr-FR"),
    (0x040d, "he-IL"),
    (0x040e, "hu-HU"),
    (0x040f, "is-IS"),
    (0x0410, "it-IT"),
    (0x0411, "ja-JP"),
    (0x0412, "ko-KR"),
    (0x0413, "nl-NL"),
    (0x0414, "nb-NO"),
    (0x0415, "pl-PL"),
    (0x0416, "pt-BR"),
    (0x0417, "rm-CH"),
    (0x0418, "ro-RO"),
    (0x0419, "ru-RU"),
    (0x041a, "hr-HR"),
    (0x041b, "sk-SK"),
    (0x041d, "sv-SE"),
    (0x041e, "th-TH"),
    (0x041f, "tr-TR"),
    (0x0421, "id-ID"),
    (0x0422, "uk-UA"),
    (0x0424, "sl-SI"),
    (0x0425, "et-EE"),
    (0x0426, "lv-LV"),
    (0x0427, "lt-LT"),
    (0x0429, "fa-IR"),
    (0x042a, "vi-VN"),
    (0x042d, "eu-ES"),
    (0x0439, "hi-IN"),
    (0x0456, "gl-ES"),
    (0x0804, "zh-CN"),
    (0x0809, "en-GB"),
    (0x080a, "es-MX"),
    (0x0816, "pt-PT"),
    (0x081a, "sr-Latn-CS"),
    (0x0c04, "zh-HK"),
    (0x0c07, "de-AT"),
    (0x0c0a, "es-ES"),
    (0x0c0c, "fr-CA"),
    (0x241a, "sr-Latn-RS"),
];

/// English (United States): what texts fall back to.
pub const EN_US: u16 = 0x0409;

/// The number of a language: of `en-US` or `en`, of `1033`, of `0x409`; nothing if it is unknown.
#[must_use]
pub fn parse(text: &str) -> Option<u16> {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u16::from_str_radix(hex, 16).ok();
    }
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    if let Some((lcid, _)) = LANGUAGES.iter().find(|(_, name)| name.eq_ignore_ascii_case(text)) {
        return Some(*lcid);
    }
    // A language without its country: English is that of the United States, Spanish the modern sort of Spain.
    match text.to_ascii_lowercase().as_str() {
        "en" => Some(EN_US),
        "es" => Some(0x0c0a),
        "zh" => Some(0x0804),
        "pt" => Some(0x0416),
        short if short.len() == 2 => LANGUAGES
            .iter()
            .find(|(_, name)| {
                name.get(..3).is_some_and(|n| n.trim_end_matches('-').eq_ignore_ascii_case(short))
            })
            .map(|(lcid, _)| *lcid),
        _ => None,
    }
}

/// The name of a language: `en-US`, `neutral` for 0, `0x1234` if it is unknown.
#[must_use]
pub fn name(lcid: u16) -> String {
    if lcid == 0 {
        return "neutral".to_owned();
    }
    LANGUAGES
        .iter()
        .find(|(number, _)| *number == lcid)
        .map_or_else(|| format!("{lcid:#06x}"), |(_, name)| (*name).to_owned())
}

/// How well a text's language fits what is asked: smaller is better.
///
/// The order is that of `FormatMessage` (asked, neutral, United States English, any), with a sibling of what is asked
/// (Austrian for German) before English.
#[must_use]
pub(crate) fn rank(lcid: u16, asked: &[u16]) -> usize {
    /// The lower ten bits tell the language, the upper ones the country.
    const PRIMARY: u16 = 0x3ff;
    if let Some(at) = asked.iter().position(|&a| a == lcid) {
        return at;
    }
    let n = asked.len();
    match lcid {
        0 => n * 2,
        _ => {
            asked.iter().position(|&a| a & PRIMARY == lcid & PRIMARY).map(|at| n + at).unwrap_or(match lcid {
                EN_US => n * 2 + 1,
                _ if lcid & PRIMARY == 0 => n * 2,
                _ if lcid & PRIMARY == EN_US & PRIMARY => n * 2 + 2,
                _ => n * 2 + 3,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert_eq!(parse("en-US"), Some(1033));
        assert_eq!(parse("DE-de"), Some(1031));
        assert_eq!(parse("de"), Some(1031));
        assert_eq!(parse("es"), Some(3082));
        assert_eq!(parse("0x407"), Some(1031));
        assert_eq!(parse("1031"), Some(1031));
        assert_eq!(parse("klingon"), None);
        assert_eq!(name(1036), "fr-FR");
        assert_eq!(name(0x1234), "0x1234");
    }

    #[test]
    fn asked_then_sibling_then_neutral_then_english_then_any() {
        let asked = [1031u16];
        let mut all = [1036u16, 2057, 1033, 0, 3079, 1031];
        all.sort_by_key(|&l| rank(l, &asked));
        assert_eq!(all, [1031, 3079, 0, 1033, 2057, 1036]);
    }
}
