//! Numbers of a scenario: plain, with a unit, or drawn from a distribution.

use etwhy_base::rng::Xoshiro;
use serde::{Deserialize, Deserializer, de::Error as _};
use toml::Value;

/// A moment or a span of time in seconds: `1.5`, `"200ms"`, `"30us"`, `"2min"`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Time(pub f64);

impl Time {
    /// Nanoseconds, saturating.
    pub fn ns(self) -> i64 {
        (self.0 * 1e9).round() as i64
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        let seconds = number(&Value::deserialize(deserializer)?).map_err(D::Error::custom)?;
        if seconds.abs() > LATEST {
            return Err(D::Error::custom(format!("{seconds} s: allowed are up to {LATEST} s")));
        }
        Ok(Time(seconds))
    }
}

/// Farthest moment in seconds: nanoseconds of it leave room for sums.
const LATEST: f64 = 1e9;
/// Longest span that is drawn, in nanoseconds: no trace is longer.
const LONGEST: f64 = 1e16;
/// Most bytes that are drawn at once: what a process has addresses for.
const MOST_BYTES: u64 = 1 << 47;

/// The units that a number in quotes may end in, with their factors (seconds, bytes or plain).
const UNITS: [(&str, f64); 22] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("min", 60.0),
    ("s", 1.0),
    ("h", 3600.0),
    ("%", 0.01),
    ("KiB", 1024.0),
    ("MiB", 1048576.0),
    ("GiB", 1073741824.0),
    ("KB", 1024.0),
    ("MB", 1048576.0),
    ("GB", 1073741824.0),
    ("TB", 1099511627776.0),
    ("B", 1.0),
    ("k", 1e3),
    ("M", 1e6),
    ("GHz", 1e9),
    ("MHz", 1e6),
    ("kHz", 1e3),
    ("Hz", 1.0),
];

/// A number with an optional unit, in seconds, bytes or as it is. Hexadecimal after `0x`.
pub(crate) fn parse_number(text: &str) -> Result<f64, String> {
    let text = text.trim().replace('_', "");
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16)
            .map(|n| n as f64)
            .map_err(|_| format!("{text:?} is no hexadecimal number"));
    }
    if let Ok(plain) = text.parse::<f64>() {
        return Ok(plain);
    }
    for (unit, factor) in UNITS {
        if let Some(Ok(n)) = text.strip_suffix(unit).map(|n| n.trim().parse::<f64>()) {
            return Ok(n * factor);
        }
    }
    let units: Vec<&str> = UNITS.iter().map(|(u, _)| *u).collect();
    Err(format!(
        "{text:?} is not a number; write a number, or a number with one of the units {}",
        units.join(" ")
    ))
}

fn number(value: &Value) -> Result<f64, String> {
    match value {
        Value::Integer(n) => Ok(*n as f64),
        Value::Float(n) if n.is_finite() => Ok(*n),
        Value::String(text) => {
            let number = parse_number(text)?;
            if number.is_finite() { Ok(number) } else { Err(format!("{text:?} is no finite number")) }
        }
        other => Err(format!("expected a number, found a value of type {}", other.type_str())),
    }
}

fn numbers(value: &Value, what: &str, wanted: &[usize]) -> Result<Vec<f64>, String> {
    let list = match value {
        Value::Array(items) => items.iter().map(number).collect::<Result<Vec<_>, _>>()?,
        single => vec![number(single)?],
    };
    if wanted.is_empty() && !list.is_empty() || wanted.contains(&list.len()) {
        return Ok(list);
    }
    Err(format!("{what} takes {wanted:?} numbers, found {}", list.len()))
}

/// A whole number of 64 bits, exactly: an integer or hexadecimal digits in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact(pub(crate) u64);

impl Exact {
    pub(crate) fn from_value(value: &Value) -> Option<Exact> {
        match value {
            Value::Integer(n) => Some(Exact(*n as u64)),
            Value::String(text) => {
                let digits = text.trim().strip_prefix("0x")?.replace(['_', '`'], "");
                u64::from_str_radix(&digits, 16).ok().map(Exact)
            }
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Exact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Exact, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Exact::from_value(&value)
            .ok_or_else(|| D::Error::custom("expected a whole number, e.g. 16 or \"0x8000000000000010\""))
    }
}

/// What a number is drawn from.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Constant(f64),
    Cycle(Vec<f64>),
    Choose(Vec<f64>, Vec<f64>),
    Uniform(f64, f64),
    Normal(f64, f64),
    Exponential(f64),
    Lognormal(f64, f64),
    Pareto(f64, f64),
    Zipf(Vec<f64>),
    Ramp(f64, f64, f64),
    Poly(Vec<f64>),
    Counter(f64, f64),
}

/// A number that may differ from event to event.
#[derive(Clone, Debug, PartialEq)]
pub struct Dist {
    shape: Shape,
    min: f64,
    max: f64,
    factor: f64,
    percent_sign: bool,
}

/// What a draw may depend on besides chance.
pub(crate) struct Draw<'a> {
    pub(crate) rng: &'a mut Xoshiro,
    /// How many came before in the same table.
    pub(crate) n: u64,
    /// Where in the table's window, 0 to 1.
    pub(crate) x: f64,
}

const SHAPES: &str = "uniform=[low, high], normal=[mean, sd], exponential=mean, lognormal=[median, sigma], \
    pareto=[min, alpha], zipf=[n, s], choose=[...] (with weights=[...]), cycle=[...], \
    ramp=[from, to] (with power=p), poly=[c0, c1, c2, ...] (of the event's index), counter=[start, step]";

impl Dist {
    fn of(shape: Shape) -> Dist {
        let (min, max) = (f64::NEG_INFINITY, f64::INFINITY);
        Dist { shape, min, max, factor: 1.0, percent_sign: false }
    }

    /// Always the same number.
    pub fn constant(value: f64) -> Dist {
        Dist::of(Shape::Constant(value))
    }

    /// True when every draw gives the same.
    pub(crate) fn as_constant(&self) -> Option<f64> {
        if let Shape::Constant(value) = self.shape { Some(value) } else { None }
    }

    /// Reads a number, a list (taken in turn), or a table with one shape.
    pub(crate) fn from_value(value: &Value) -> Result<Dist, String> {
        let table = match value {
            Value::Array(_) => {
                let list = numbers(value, "a list", &[])?;
                return Ok(Dist::of(Shape::Cycle(list)));
            }
            Value::Table(table) => table,
            single => return number(single).map(Dist::constant),
        };
        let mut dist = Dist::of(Shape::Constant(f64::NAN));
        let mut found = 0;
        let (mut weights, mut power) = (None, 1.0);
        for (key, value) in table {
            let two = |what| numbers(value, what, &[2]).map(|v| (v[0], v[1]));
            found += 1;
            dist.shape = match key.as_str() {
                "uniform" => two("uniform").map(|(a, b)| Shape::Uniform(a, b))?,
                "normal" => two("normal").map(|(a, b)| Shape::Normal(a, b))?,
                "lognormal" => two("lognormal").map(|(a, b)| Shape::Lognormal(a, b))?,
                "pareto" => two("pareto").map(|(a, b)| Shape::Pareto(a, b))?,
                "exponential" => Shape::Exponential(number(value)?),
                "constant" => Shape::Constant(number(value)?),
                "zipf" => two("zipf").map(|(n, s)| zipf(n, s))?,
                "ramp" => two("ramp").map(|(a, b)| Shape::Ramp(a, b, 1.0))?,
                "counter" => two("counter").map(|(a, b)| Shape::Counter(a, b))?,
                "poly" => Shape::Poly(numbers(value, "poly", &[])?),
                "cycle" | "list" => Shape::Cycle(numbers(value, "cycle", &[])?),
                "choose" => Shape::Choose(numbers(value, "choose", &[])?, Vec::new()),
                other => {
                    found -= 1;
                    match other {
                        "weights" => weights = Some(numbers(value, "weights", &[])?),
                        "power" => power = number(value)?,
                        "min" => dist.min = number(value)?,
                        "max" => dist.max = number(value)?,
                        _ => {
                            return Err(format!(
                                "unknown distribution `{other}`; allowed: {SHAPES}, and min, max"
                            ));
                        }
                    }
                    continue;
                }
            };
        }
        if found != 1 {
            return Err(format!("a distribution needs exactly one of: {SHAPES}"));
        }
        match (&mut dist.shape, weights) {
            (Shape::Choose(values, w), Some(weights)) if values.len() == weights.len() => *w = weights,
            (Shape::Choose(values, _), Some(w)) => {
                return Err(format!("{} values but {} weights", values.len(), w.len()));
            }
            (Shape::Choose(values, w), None) => *w = vec![1.0; values.len()],
            (_, Some(_)) => return Err("weights go with choose".into()),
            (Shape::Ramp(_, _, p), None) => *p = power,
            _ => (),
        }
        Ok(dist)
    }

    /// The same, times a factor.
    pub(crate) fn scaled(self, factor: f64) -> Dist {
        Dist { factor: self.factor * factor, ..self }
    }

    /// What turns a percentage into a share: 1/100, but 1 when it was written with a percent sign.
    pub(crate) fn percent_factor(&self) -> f64 {
        if self.percent_sign { 1.0 } else { 0.01 }
    }

    /// Draws a number.
    pub(crate) fn draw(&self, draw: &mut Draw) -> f64 {
        let n = draw.n as f64;
        let value = match &self.shape {
            Shape::Constant(value) => *value,
            Shape::Cycle(list) => {
                list.get((draw.n % list.len().max(1) as u64) as usize).copied().unwrap_or(0.0)
            }
            Shape::Choose(values, weights) => values.get(pick(weights, draw.rng)).copied().unwrap_or(0.0),
            Shape::Uniform(a, b) => a + (b - a) * draw.rng.uniform(),
            Shape::Normal(mean, sd) => mean + sd * draw.rng.normal(),
            Shape::Exponential(mean) => mean * draw.rng.exponential(),
            Shape::Lognormal(median, sigma) => median * (sigma * draw.rng.normal()).exp(),
            Shape::Pareto(min, alpha) => min * (1.0 - draw.rng.uniform()).powf(-1.0 / alpha),
            Shape::Zipf(weights) => pick(weights, draw.rng) as f64 + 1.0,
            Shape::Ramp(a, b, power) => a + (b - a) * draw.x.powf(*power),
            Shape::Poly(c) => c.iter().rev().fold(0.0, |sum, c| sum * n + c),
            Shape::Counter(start, step) => start + step * n,
        };
        value.max(self.min).min(self.max) * self.factor
    }

    /// A whole number, not below 0.
    pub(crate) fn whole(&self, draw: &mut Draw) -> u64 {
        self.draw(draw).round().max(0.0) as u64
    }

    /// So many bytes, within what a process has.
    pub(crate) fn bytes(&self, draw: &mut Draw) -> u64 {
        self.whole(draw).min(MOST_BYTES)
    }

    /// A span of time in nanoseconds, not below 0.
    pub(crate) fn ns(&self, draw: &mut Draw) -> i64 {
        (self.draw(draw) * 1e9).round().clamp(0.0, LONGEST) as i64
    }
}

/// Largest table of a Zipf distribution.
const ZIPF_MAX: f64 = 100_000.0;

fn zipf(n: f64, s: f64) -> Shape {
    Shape::Zipf((1..=n.clamp(1.0, ZIPF_MAX) as u64).map(|k| (k as f64).powf(-s)).collect())
}

/// An index, chosen by weight.
pub(crate) fn pick(weights: &[f64], rng: &mut Xoshiro) -> usize {
    let total: f64 = weights.iter().sum();
    let mut rest = rng.uniform() * total;
    for (i, weight) in weights.iter().enumerate() {
        rest -= weight;
        if rest < 0.0 {
            return i;
        }
    }
    weights.len().saturating_sub(1)
}

impl<'de> Deserialize<'de> for Dist {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Dist, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let mut dist = Dist::from_value(&value).map_err(D::Error::custom)?;
        dist.percent_sign = format!("{value:?}").contains('%');
        Ok(dist)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dist(text: &str) -> Result<Dist, String> {
        let table: toml::Table = text.parse().unwrap();
        Dist::from_value(&table["v"])
    }

    fn mean(text: &str) -> f64 {
        let (d, mut rng) = (dist(text).unwrap(), Xoshiro::seeded(1));
        (0..20_000).map(|n| d.draw(&mut Draw { rng: &mut rng, n, x: n as f64 / 20_000.0 })).sum::<f64>()
            / 20_000.0
    }

    #[test]
    fn what_no_trace_has_is_refused_or_bounded() {
        #[derive(Deserialize, Debug)]
        struct At {
            #[allow(dead_code)]
            at: Time,
        }
        for text in ["\"nan\"", "\"inf\"", "\"-inf s\"", "1e19", "-1e300"] {
            assert!(toml::from_str::<At>(&format!("at = {text}")).is_err(), "{text}");
        }
        assert!(dist("v = \"inf\"").is_err());
        let mut rng = Xoshiro::seeded(1);
        let mut draw = Draw { rng: &mut rng, n: 1, x: 0.5 };
        for text in ["v = 9223372036854775807", "v = 1e308", "v = { poly = [1e300, 1e300] }"] {
            let huge = dist(text).unwrap();
            assert_eq!(huge.ns(&mut draw), 10_000_000_000_000_000, "{text}");
            assert_eq!(huge.bytes(&mut draw), 1 << 47, "{text}");
        }
    }

    #[test]
    fn numbers_carry_units() {
        for (text, value) in [
            ("250ms", 0.25),
            ("2min", 120.0),
            ("64KB", 65536.0),
            ("0x10", 16.0),
            ("5%", 0.05),
            ("1.5 s", 1.5),
        ] {
            assert!((parse_number(text).unwrap() - value).abs() < 1e-9, "{text}");
        }
        assert!(parse_number("5 apples").unwrap_err().contains("units"));
    }

    #[test]
    fn distributions_have_the_means_they_say() {
        for (text, expected) in [
            ("v = { uniform = [10, 20] }", 15.0),
            ("v = { normal = [5, 1] }", 5.0),
            ("v = { exponential = '2ms' }", 0.002),
            ("v = { ramp = [0, 10] }", 5.0),
            ("v = { ramp = [0, 30], power = 2 }", 10.0),
            ("v = [1, 2, 3]", 2.0),
            ("v = { choose = [0, 10], weights = [3, 1] }", 2.5),
            ("v = { pareto = [1, 3] }", 1.5),
            ("v = { uniform = [0, 10], max = 0 }", 0.0),
            ("v = 7", 7.0),
        ] {
            assert!(
                (mean(text) - expected).abs() < 0.03 * expected.max(1e-9) + 1e-9,
                "{text}: {}",
                mean(text)
            );
        }
    }

    #[test]
    fn mistakes_say_what_is_allowed() {
        assert!(dist("v = { gauss = [1, 2] }").unwrap_err().contains("normal=[mean, sd]"));
        assert!(dist("v = { uniform = [1] }").unwrap_err().contains("takes"));
        assert!(dist("v = { min = 1 }").unwrap_err().contains("exactly one"));
        assert!(dist("v = true").unwrap_err().contains("expected a number"));
    }
}
