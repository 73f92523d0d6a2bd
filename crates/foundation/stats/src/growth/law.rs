//! The laws that are compared.

/// A law `y = a + b * f(n)`, named by `f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Law {
    /// 1: it does not depend on n.
    Constant,
    /// log n.
    Log,
    /// Square root of n.
    Sqrt,
    /// n.
    Linear,
    /// n log n.
    NLogN,
    /// n^1.5.
    N15,
    /// n².
    Square,
    /// n³.
    Cube,
}

/// What a cost is the cost of, and therefore which laws are ordinary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Of one call, n being the number of the call: all calls together then cost `n` times as much, and whatever grows
    /// faster than log n makes the total super-linear.
    PerCall,
    /// Of work on n things (bytes, entries): super-linear is what grows faster than n log n.
    Total,
}

/// All laws.
pub const LAWS: [Law; 8] =
    [Law::Constant, Law::Log, Law::Sqrt, Law::Linear, Law::NLogN, Law::N15, Law::Square, Law::Cube];

impl Law {
    /// f(n); n below 1 counts as 1.
    pub fn f(self, n: f64) -> f64 {
        let n = n.max(1.0);
        match self {
            Law::Constant => 0.0,
            Law::Log => n.ln(),
            Law::Sqrt => n.sqrt(),
            Law::Linear => n,
            Law::NLogN => n * n.ln(),
            Law::N15 => n * n.sqrt(),
            Law::Square => n * n,
            Law::Cube => n * n * n,
        }
    }

    /// f(1) + f(2) + … + f(n), by Euler and Maclaurin's first terms.
    pub fn sum(self, n: f64) -> f64 {
        let n = n.max(1.0);
        let integral = match self {
            Law::Constant => 0.0,
            Law::Log => n * n.ln() - n + 1.0,
            Law::Sqrt => (n * n.sqrt() - 1.0) / 1.5,
            Law::Linear => (n * n - 1.0) / 2.0,
            Law::NLogN => n * n / 2.0 * n.ln() - (n * n - 1.0) / 4.0,
            Law::N15 => (n.powf(2.5) - 1.0) / 2.5,
            Law::Square => (n.powi(3) - 1.0) / 3.0,
            Law::Cube => (n.powi(4) - 1.0) / 4.0,
        };
        integral + (self.f(1.0) + self.f(n)) / 2.0
    }

    /// `1`, `log n`, `n`, `n^2`, …
    pub fn name(self) -> &'static str {
        match self {
            Law::Constant => "1",
            Law::Log => "log n",
            Law::Sqrt => "n^0.5",
            Law::Linear => "n",
            Law::NLogN => "n log n",
            Law::N15 => "n^1.5",
            Law::Square => "n^2",
            Law::Cube => "n^3",
        }
    }

    /// The law of all calls together, where this one is that of a single call.
    pub fn total_name(self) -> &'static str {
        match self {
            Law::Constant => "n",
            Law::Log => "n log n",
            Law::Sqrt => "n^1.5",
            Law::Linear => "n^2",
            Law::NLogN => "n^2 log n",
            Law::N15 => "n^2.5",
            Law::Square => "n^3",
            Law::Cube => "n^4",
        }
    }

    /// True if work of this form and law grows faster than n log n in all.
    pub fn super_linear(self, form: Form) -> bool {
        match form {
            Form::PerCall => self > Law::Log,
            Form::Total => self > Law::NLogN,
        }
    }

    /// True for laws that are compared for this form. Work in all has no law between log n and n: a square root of
    /// bytes has no mechanism that is known, and would only take weight from n.
    pub fn compared(self, form: Form) -> bool {
        form == Form::PerCall || self != Law::Sqrt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_terms() {
        for law in LAWS {
            let n = 1000;
            let exact: f64 = (1..=n).map(|i| law.f(f64::from(i))).sum();
            let sum = law.sum(f64::from(n));
            assert!((sum - exact).abs() <= 1e-4 * exact.max(1e-9), "{law:?} {sum} {exact}");
        }
    }

    #[test]
    fn what_is_super_linear_depends_on_the_form() {
        assert!(Law::Linear.super_linear(Form::PerCall) && !Law::Linear.super_linear(Form::Total));
        assert!(Law::Sqrt.super_linear(Form::PerCall) && !Law::Log.super_linear(Form::PerCall));
        assert!(Law::N15.super_linear(Form::Total) && !Law::NLogN.super_linear(Form::Total));
    }
}
