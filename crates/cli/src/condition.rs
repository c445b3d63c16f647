//! Conditions over named numbers, as a person types them: `step_p50 < 210ms`, `idle_ratio <= 10%`, `step_ns > +3%`.

use std::fmt::{self, Display, Formatter};

/// A number has to be on this side of a limit.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Condition {
    /// The number's name, `_` for `-`.
    pub(crate) name: String,
    pub(crate) operator: Operator,
    pub(crate) limit: Limit,
    /// The limit as it was typed, a blank before the unit.
    pub(crate) typed: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operator {
    Less,
    AtMost,
    More,
    AtLeast,
}

/// A limit with its unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Limit {
    Nanoseconds(f64),
    Bytes(f64),
    /// A percentage as a share, 3 % as 0.03.
    Ratio(f64),
    /// Without a unit: a count, or a share.
    Plain(f64),
}

/// Those with two letters first: `<` is the beginning of one.
const OPERATORS: [(&str, Operator); 4] =
    [("<=", Operator::AtMost), (">=", Operator::AtLeast), ("<", Operator::Less), (">", Operator::More)];

/// As they are printed, and as they are typed: with either of the two letters that look like µ.
const TIMES: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3_600e9)];

const BYTES: [(&str, f64); 10] = [
    ("B", 1.0),
    ("KiB", (1_u64 << 10) as f64),
    ("MiB", (1_u64 << 20) as f64),
    ("GiB", (1_u64 << 30) as f64),
    ("TiB", (1_u64 << 40) as f64),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
];

impl Condition {
    /// Reads a name, an operator, and a number with its unit, with or without blanks between them.
    ///
    /// # Errors
    /// What is not as it has to be.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c))).unwrap_or(text.len());
        let (name, rest) = (&text[..end], text[end..].trim_start());
        if name.is_empty() {
            return Err("it has to begin with the name of a number, as in 'step_p50 < 210ms'".into());
        }
        let found = OPERATORS.iter().find_map(|(sign, operator)| Some((rest.strip_prefix(sign)?, *operator)));
        let (value, operator) = found.ok_or_else(|| format!("after {name} there has to be one of < <= > >="))?;
        let (limit, typed) = Limit::parse(value)?;
        Ok(Self { name: name.replace('-', "_"), operator, limit, typed })
    }

    /// Whether `value`, in the unit of the limit, is on the right side.
    pub(crate) fn holds(&self, value: f64) -> bool {
        let limit = self.limit.value();
        match self.operator {
            Operator::Less => value < limit,
            Operator::AtMost => value <= limit,
            Operator::More => value > limit,
            Operator::AtLeast => value >= limit,
        }
    }
}

impl Limit {
    /// With its text, a blank before the unit.
    pub(crate) fn parse(text: &str) -> Result<(Self, String), String> {
        let value = text.trim();
        let end = value.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c))).unwrap_or(value.len());
        let number: f64 = value[..end].parse().map_err(|_| format!("{value:?} is no number with a unit"))?;
        let unit = value[end..].trim();
        let of =
            |units: &[(&str, f64)]| units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| number * factor);
        let limit = match unit {
            "" => Self::Plain(number),
            "%" => Self::Ratio(number / 100.0),
            _ => {
                let known = of(&TIMES).map(Self::Nanoseconds).or_else(|| of(&BYTES).map(Self::Bytes));
                known.ok_or_else(|| {
                    format!("there is no unit {unit:?}: there are ns us ms s min h, %, B KiB MiB GiB TiB KB MB GB TB")
                })?
            }
        };
        Ok((limit, format!("{} {unit}", &value[..end]).trim_end().to_string()))
    }

    /// Its number, in nanoseconds or bytes or as a share.
    pub(crate) fn value(self) -> f64 {
        match self {
            Self::Nanoseconds(value) | Self::Bytes(value) | Self::Ratio(value) | Self::Plain(value) => value,
        }
    }
}

impl Operator {
    /// As it is typed.
    pub(crate) fn sign(self) -> &'static str {
        OPERATORS.iter().find(|(_, operator)| *operator == self).map_or("", |(sign, _)| sign)
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.name, self.operator.sign(), self.typed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_has_a_name_an_operator_and_a_limit_with_its_unit() {
        let of = |name: &str, operator, limit| Ok((name.to_string(), operator, limit));
        let parsed = |text: &str| Condition::parse(text).map(|parsed| (parsed.name, parsed.operator, parsed.limit));
        assert_eq!(parsed("step_ns > +3%"), of("step_ns", Operator::More, Limit::Ratio(0.03)));
        assert_eq!(parsed("step_ns>2.5 ms"), of("step_ns", Operator::More, Limit::Nanoseconds(2.5e6)));
        assert_eq!(parsed(" step_ns < -10 %"), of("step_ns", Operator::Less, Limit::Ratio(-0.1)));
        assert_eq!(parsed("step-p50<=210ms"), of("step_p50", Operator::AtMost, Limit::Nanoseconds(210e6)));
        assert_eq!(
            parsed("peak_memory >= 1.5GiB"),
            of("peak_memory", Operator::AtLeast, Limit::Bytes(1_610_612_736.0))
        );
        assert_eq!(parsed("findings<1"), of("findings", Operator::Less, Limit::Plain(1.0)));
        for unit in ["us", "µs", "μs"] {
            assert_eq!(parsed(&format!("a > 5 {unit}")), of("a", Operator::More, Limit::Nanoseconds(5e3)));
        }
        for wrong in
            ["", "a", "a 3%", "a = 3%", "< 3%", "a > %", "a > 1-2%", "a > 3é", "a > 3 parsecs", "a << 3", "a > inf"]
        {
            assert!(Condition::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn it_holds_on_its_side_of_the_limit() {
        for (sign, expected) in [
            ("<", [true, false, false]),
            ("<=", [true, true, false]),
            (">", [false, false, true]),
            (">=", [false, true, true]),
        ] {
            let condition = Condition::parse(&format!("a {sign} 2ns")).unwrap();
            assert_eq!([1.0, 2.0, 3.0].map(|value| condition.holds(value)), expected, "{sign}");
        }
    }

    #[test]
    fn it_is_told_as_it_was_typed() {
        for (typed, told) in [
            ("step_p50<210ms", "step_p50 < 210 ms"),
            ("a>=3%", "a >= 3 %"),
            ("a<0.125", "a < 0.125"),
            ("a<7", "a < 7"),
            (" a <+2.5GiB ", "a < +2.5 GiB"),
        ] {
            assert_eq!(Condition::parse(typed).unwrap().to_string(), told);
        }
    }
}
