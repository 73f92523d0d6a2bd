//! Small numbers for what rows are grouped by: equal cells have equal numbers, null has 0.

use super::reference::{Far, Reference, position};
use etwhy_table::{ColumnView, Value};
use foldhash::{HashMap, HashMapExt as _};

/// Numbers of texts and ids below this are looked up in a list, others in a map.
const LISTED: usize = 1 << 22;

/// What a number stands for.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    /// A whole number, the number of a text, true or false; the bits of a fraction.
    Bits(i64),
    /// A long text, which is its own meaning.
    Long,
}

/// Numbers of the cells of one column.
pub(super) struct Codes<'d> {
    cells: Vec<Value<'d>>,
    meanings: Vec<Meaning>,
    listed: Vec<u32>,
    others: HashMap<i64, u32>,
    long: HashMap<&'d str, u32>,
}

impl<'d> Codes<'d> {
    pub fn new() -> Codes<'d> {
        Codes {
            cells: vec![Value::Null],
            meanings: vec![Meaning::Bits(0)],
            listed: Vec::new(),
            others: HashMap::new(),
            long: HashMap::new(),
        }
    }

    /// What a number stands for.
    pub fn cell(&self, code: u32) -> Value<'d> {
        self.cells.get(code as usize).copied().unwrap_or(Value::Null)
    }

    #[inline]
    fn bits(&mut self, bits: i64, cell: impl FnOnce() -> Value<'d>) -> u32 {
        let at = position(bits);
        if let Some(code) = self.listed.get(at)
            && *code > 0
        {
            return *code;
        }
        if at >= LISTED
            && let Some(code) = self.others.get(&bits)
        {
            return *code;
        }
        let code = self.next(cell(), Meaning::Bits(bits));
        if at >= LISTED {
            self.others.insert(bits, code);
        } else {
            if self.listed.len() <= at {
                self.listed.resize((at + 1).next_power_of_two(), 0);
            }
            if let Some(slot) = self.listed.get_mut(at) {
                *slot = code;
            }
        }
        code
    }

    fn long(&mut self, text: &'d str) -> u32 {
        if let Some(code) = self.long.get(text) {
            return *code;
        }
        let code = self.next(Value::Text(text), Meaning::Long);
        self.long.insert(text, code);
        code
    }

    fn next(&mut self, cell: Value<'d>, meaning: Meaning) -> u32 {
        let code = u32::try_from(self.cells.len()).unwrap_or(u32::MAX);
        self.cells.push(cell);
        self.meanings.push(meaning);
        code
    }

    fn float(&mut self, number: f64) -> u32 {
        // SQLite knows neither: NaN is null there, and -0.0 is 0.0.
        if number.is_nan() {
            return 0;
        }
        let number = if number == 0.0 { 0.0 } else { number };
        self.bits(number.to_bits() as i64, || Value::F64(number))
    }

    /// The number of one cell.
    pub fn number_of(&mut self, view: &ColumnView<'d>, row: usize) -> u32 {
        match view {
            ColumnView::Text(..) => {
                let view = *view;
                let key = view.key(row);
                key.map_or(0, |key| self.bits(i64::from(key.0), || view.value(row)))
            }
            ColumnView::LongText(_) => view.text(row).map_or(0, |text| self.long(text)),
            ColumnView::F64(..) => view.f64(row).map_or(0, |number| self.float(number)),
            ColumnView::Bool(_) => {
                view.bool(row).map_or(0, |flag| self.bits(i64::from(flag), || Value::Bool(flag)))
            }
            _ => view.i64(row).map_or(0, |number| self.bits(number, || Value::I64(number))),
        }
    }

    /// The numbers of rows of a batch.
    pub fn encode(&mut self, view: &ColumnView<'d>, rows: &[u32], out: &mut Vec<u32>) {
        match *view {
            ColumnView::I32(numbers, None) => out.extend(rows.iter().map(|row| {
                let number = numbers.get(*row as usize).copied().map_or(0, i64::from);
                self.bits(number, || Value::I64(number))
            })),
            ColumnView::I64(numbers, None) => out.extend(rows.iter().map(|row| {
                let number = numbers.get(*row as usize).copied().unwrap_or(0);
                self.bits(number, || Value::I64(number))
            })),
            _ => out.extend(rows.iter().map(|row| self.number_of(view, *row as usize))),
        }
    }

    /// Takes over the numbers of another list: for each of its numbers the one here.
    pub fn absorb(&mut self, other: &Codes<'d>) -> Vec<u32> {
        let mut out = Vec::with_capacity(other.cells.len());
        for (at, (cell, meaning)) in other.cells.iter().zip(&other.meanings).enumerate() {
            out.push(match (at, meaning, cell) {
                (0, _, _) => 0,
                (_, Meaning::Bits(bits), cell) => self.bits(*bits, || *cell),
                (_, Meaning::Long, cell) => cell.as_text().map_or(0, |text| self.long(text)),
            });
        }
        out
    }
}

/// What a key or a distinct value is made of.
pub(super) struct Coder<'d> {
    /// Column of the asked table.
    pub own: usize,
    codes: Codes<'d>,
    /// Numbers by id, if an id leads to the column.
    far: Option<std::sync::Arc<Vec<u32>>>,
}

/// Numbers by id, and the cells by number.
type FarCodes<'d> = (std::sync::Arc<Vec<u32>>, std::sync::Arc<Vec<Value<'d>>>);

/// [`Coder`]s for several threads: what an id leads to is numbered once.
pub(super) struct CoderPlan<'d> {
    own: usize,
    far: Option<FarCodes<'d>>,
}

impl<'d> CoderPlan<'d> {
    pub fn new(reference: &Reference<'d>) -> CoderPlan<'d> {
        let far = reference.far.as_ref().map(|far| {
            let (ids, codes) = number(far);
            (std::sync::Arc::new(ids), std::sync::Arc::new(codes.cells))
        });
        CoderPlan { own: reference.own, far }
    }

    pub fn coder(&self) -> Coder<'d> {
        let mut codes = Codes::new();
        if let Some((_, cells)) = &self.far {
            codes.cells = cells.to_vec();
            codes.meanings = vec![Meaning::Bits(0); cells.len()];
        }
        Coder { own: self.own, codes, far: self.far.as_ref().map(|(ids, _)| ids.clone()) }
    }
}

fn number<'d>(far: &Far<'d>) -> (Vec<u32>, Codes<'d>) {
    let mut codes = Codes::new();
    let views: Vec<ColumnView<'d>> =
        (0..far.table.batches().len()).map(|batch| far.table.view(batch, far.column)).collect();
    let ids = far.rows.iter().map(|row| {
        let place = far.table.locate(*row);
        place.and_then(|(batch, row)| Some(codes.number_of(views.get(batch)?, row))).unwrap_or(0)
    });
    let ids = ids.collect();
    (ids, codes)
}

impl<'d> Coder<'d> {
    pub fn encode(&mut self, view: &ColumnView<'d>, rows: &[u32], out: &mut Vec<u32>) {
        match &self.far {
            None => self.codes.encode(view, rows, out),
            Some(ids) => out.extend(rows.iter().map(|row| {
                view.i64(*row as usize).and_then(|id| ids.get(position(id))).copied().unwrap_or(0)
            })),
        }
    }

    pub fn cell(&self, code: u32) -> Value<'d> {
        self.codes.cell(code)
    }

    /// For each number of the other the one here.
    pub fn absorb(&mut self, other: &Coder<'d>) -> Vec<u32> {
        if self.far.is_some() {
            // Both have the same list.
            (0u32..).take(other.codes.cells.len()).collect()
        } else {
            self.codes.absorb(&other.codes)
        }
    }
}

/// Numbers of pairs: of a group and the number of its next key.
pub(super) struct Pairs {
    listed: Vec<u32>,
    others: HashMap<u64, u32>,
    /// The pairs, by their number.
    pub all: Vec<(u32, u32)>,
}

/// Codes below 1024 are looked up in a list while it is short enough.
const SHIFT: u32 = 10;

impl Pairs {
    pub fn new() -> Pairs {
        Pairs { listed: Vec::new(), others: HashMap::new(), all: Vec::new() }
    }

    #[inline]
    pub fn number_of(&mut self, group: u32, code: u32) -> u32 {
        let at = ((group as usize) << SHIFT) | code as usize;
        let listed = code < (1 << SHIFT) && at < LISTED;
        if listed {
            if let Some(number) = self.listed.get(at)
                && *number != u32::MAX
            {
                return *number;
            }
        } else if let Some(number) = self.others.get(&(u64::from(group) << 32 | u64::from(code))) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push((group, code));
        if listed {
            if self.listed.len() <= at {
                self.listed.resize((at + 1).next_power_of_two(), u32::MAX);
            }
            if let Some(slot) = self.listed.get_mut(at) {
                *slot = number;
            }
        } else {
            self.others.insert(u64::from(group) << 32 | u64::from(code), number);
        }
        number
    }
}
