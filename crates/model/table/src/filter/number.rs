//! Numbers with units, exact to the last nanosecond.

use crate::Unit;

/// A fraction, measured in the unit of a column. The denominator is positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exact {
    numerator: i128,
    denominator: i128,
}

impl Exact {
    pub(super) fn floor(self) -> i128 {
        self.numerator.div_euclid(self.denominator)
    }

    pub(super) fn ceil(self) -> i128 {
        -(-self.numerator).div_euclid(self.denominator)
    }

    pub(super) fn float(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// A number as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Written {
    mantissa: i128,
    /// Power of ten that divides the mantissa.
    decimals: u32,
    /// The unit written after it.
    pub(super) suffix: Option<Unit>,
}

impl Written {
    /// Reads `12`, `-1.5`, `0x1F`, `1_000`, `2.5ms`, `4 KiB`, `90%`.
    pub(super) fn parse(text: &str) -> Result<Written, String> {
        let (sign, digits) = match text.trim().strip_prefix('-') {
            Some(rest) => (-1, rest.trim_start()),
            None => (1, text.trim()),
        };
        if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            let value = u64::from_str_radix(&hex.replace(['_', '`'], ""), 16);
            let value = value.map_err(|_| "is not a hexadecimal number of at most 64 bits".to_owned())?;
            return Ok(Written { mantissa: sign * i128::from(value), decimals: 0, suffix: None });
        }
        let is_digit = |c: char| c.is_ascii_digit() || c == '.' || c == '_';
        let end = digits.find(|c| !is_digit(c)).unwrap_or(digits.len());
        let (number, suffix) = digits.split_at_checked(end).unwrap_or((digits, ""));
        let number = number.replace('_', "");
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        if whole.len() + fraction.len() == 0 || fraction.contains('.') {
            return Err("is not a number".to_owned());
        }
        // 20 digits of a number times the largest unit stay far within 128 bits.
        if whole.len() > 20 || fraction.len() > 12 {
            return Err("has too many digits".to_owned());
        }
        let mantissa: i128 =
            format!("{whole}{fraction}").parse().map_err(|_| "is not a number".to_owned())?;
        let suffix = match suffix.trim() {
            "" => None,
            name => Some(Unit::of_suffix(name).ok_or_else(|| {
                format!("has an unknown unit `{name}` (known: ns us ms s m h, B KB MB GB KiB MiB GiB, %)")
            })?),
        };
        Ok(Written { mantissa: sign * mantissa, decimals: fraction.len() as u32, suffix })
    }

    /// The number in the unit of a column; a number without a unit is in `default`.
    pub(super) fn in_unit(self, column: Unit, default: Unit) -> Result<Exact, String> {
        let denominator = 10i128.pow(self.decimals);
        let unit = self.suffix.unwrap_or(default);
        if unit == column {
            return Ok(Exact { numerator: self.mantissa, denominator });
        }
        match column.ratio(unit) {
            Some((up, down)) => Ok(Exact {
                numerator: self.mantissa * i128::from(up),
                denominator: denominator * i128::from(down),
            }),
            None => Err(format!("is in `{}`, but the column is in `{}`", unit.name(), column.name())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, column: Unit) -> Result<(i128, i128), String> {
        let exact = Written::parse(text)?.in_unit(column, column)?;
        Ok((exact.floor(), exact.ceil()))
    }

    #[test]
    fn units_are_exact() {
        assert_eq!(read("1.5ms", Unit::Ns), Ok((1_500_000, 1_500_000)));
        assert_eq!(read("-2 s", Unit::Ns), Ok((-2_000_000_000, -2_000_000_000)));
        assert_eq!(read("4KiB", Unit::Bytes), Ok((4096, 4096)));
        assert_eq!(read("4kb", Unit::Bytes), Ok((4000, 4000)));
        assert_eq!(read("1500ns", Unit::Us), Ok((1, 2)));
        assert_eq!(read("-1500ns", Unit::Us), Ok((-2, -1)));
        assert_eq!(
            read("0xFFFFF80000000000", Unit::Address),
            Ok((0xFFFF_F800_0000_0000, 0xFFFF_F800_0000_0000))
        );
        assert_eq!(read("1_000", Unit::Count), Ok((1000, 1000)));
        assert_eq!(read("12.5%", Unit::Percent), Ok((12, 13)));
        assert_eq!(read(".5s", Unit::Ms), Ok((500, 500)));
    }

    #[test]
    fn nonsense_is_explained() {
        assert!(read("", Unit::Ns).unwrap_err().contains("not a number"));
        assert!(read("5 parsec", Unit::Ns).unwrap_err().contains("unknown unit `parsec`"));
        assert!(read("5KB", Unit::Ns).unwrap_err().contains("`kb`"));
        assert!(read("5ms", Unit::Count).is_err());
        assert!(read("1.2.3", Unit::Ns).is_err());
        assert!(read("0x", Unit::Ns).is_err());
        assert!(read(&"9".repeat(40), Unit::Ns).unwrap_err().contains("too many"));
        assert!(read("99999999999999999999h", Unit::Ns).is_ok());
    }
}
