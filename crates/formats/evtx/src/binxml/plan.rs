//! Where the system values and the fields of a template's instances are.

use super::cell::Cell;
use super::fields::{Finder, Piece, SystemField, Target};
use super::op::Op;
use std::cell::Cell as Shared;
use std::sync::Arc;

/// A piece of content in a definition.
#[derive(Clone, Debug, PartialEq)]
pub enum Atom {
    /// A literal.
    Text(Box<str>),
    /// A value of the instance, and whether nothing is written if it is empty.
    Substitution(u16),
}

impl Piece for Atom {
    fn literal(&self) -> Option<String> {
        match self {
            Atom::Text(text) => Some(text.to_string()),
            Atom::Substitution(_) => None,
        }
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Slot {
    /// There is none.
    #[default]
    None,
    /// A literal of the definition.
    Literal(Box<str>),
    /// A value of the instance.
    Substitution(u16),
    /// Literals and values, one behind the other.
    Mixed(Box<[Atom]>),
}

impl Slot {
    fn from_atoms(atoms: &[Atom]) -> Slot {
        match atoms {
            [] => Slot::None,
            [Atom::Text(text)] => Slot::Literal(text.clone()),
            [Atom::Substitution(number)] => Slot::Substitution(*number),
            many => Slot::Mixed(many.into()),
        }
    }
}

/// Something that holds fields.
#[derive(Clone, Debug)]
pub enum Item {
    /// A field: name, value, and the value without which it is left out.
    Field(Option<Arc<str>>, Slot, Option<u16>),
    /// A value that holds fields of its own, if it is binary XML.
    Nested(u16),
}

/// Where everything is.
#[derive(Debug, Default)]
pub struct Plan {
    /// System values.
    pub system: Vec<(SystemField, Slot)>,
    /// Fields, in order.
    pub items: Vec<Item>,
    /// Values among the first that system values may be.
    pub system_values: usize,
    /// The same as `items`, if fields are all there is.
    pub cells: Option<Box<[Cell]>>,
    /// Value n is cell n.
    pub straight: bool,
}

impl Plan {
    /// The plan of these instructions.
    pub fn from_ops(ops: &[Op]) -> Plan {
        let mut plan = Plan::default();
        // What the elements that are open depend on; a root is never left out.
        let mut open: Vec<Option<u16>> = Vec::new();
        let depends = Shared::new(None);
        let mut found = |target: Target, atoms: &[Atom]| match target {
            Target::System(field) => {
                plan.system.push((field, Slot::from_atoms(atoms)));
            }
            Target::Named(name) => {
                plan.items.push(Item::Field(Some(name.into()), Slot::from_atoms(atoms), depends.get()))
            }
            Target::Unnamed => plan.items.push(Item::Field(None, Slot::from_atoms(atoms), depends.get())),
            Target::Container => plan.items.extend(atoms.iter().filter_map(|atom| match atom {
                Atom::Substitution(number) => Some(Item::Nested(*number)),
                Atom::Text(_) => None,
            })),
        };
        let mut finder = Finder::<Atom>::new();
        for op in ops {
            match op {
                Op::Open { name, depends: own, .. } => {
                    finder.open(name, &mut found);
                    let own = if open.is_empty() { None } else { own.or(depends.get()) };
                    open.push(own);
                    depends.set(own);
                }
                Op::Attribute(name, _) => finder.attribute(name, &mut found),
                Op::Content => finder.content(&mut found),
                Op::End => {
                    finder.end(&mut found);
                    open.pop();
                    depends.set(open.last().copied().flatten());
                }
                Op::Text(text) | Op::CData(text) => finder.piece(Atom::Text(text.clone())),
                Op::Entity(name) => finder.piece(Atom::Text(entity(name).into())),
                Op::Instruction(..) => {}
                Op::Substitution { number, .. } => finder.piece(Atom::Substitution(*number)),
            }
        }
        let numbers = plan.system.iter().filter_map(|(_, slot)| match slot {
            Slot::Substitution(number) => Some(usize::from(*number) + 1),
            _ => None,
        });
        plan.system_values = numbers.max().unwrap_or(0);
        plan
    }

    /// The cells of a template, if it has nothing else.
    pub fn simple_cells(&self) -> Option<Box<[Cell]>> {
        let cell = |item: &Item| match item {
            Item::Field(name, slot, depends) => {
                let value = match slot {
                    Slot::None => Cell::NOTHING,
                    Slot::Substitution(number) => *number,
                    Slot::Literal(_) | Slot::Mixed(_) => return None,
                };
                let simple = depends.is_none_or(|number| number == value && name.is_some());
                simple.then(|| Cell::new(name.clone(), value, depends.is_some()))
            }
            Item::Nested(_) => None,
        };
        let cells: Option<Vec<Cell>> = self.items.iter().map(cell).collect();
        cells.filter(|cells| Cell::are_simple(cells)).map(Cell::numbered)
    }
}

/// The text of an entity; those that XML does not predefine stay as they are written.
pub fn entity(name: &str) -> String {
    match name {
        "lt" => "<".to_owned(),
        "gt" => ">".to_owned(),
        "amp" => "&".to_owned(),
        "quot" => "\"".to_owned(),
        "apos" => "'".to_owned(),
        other => format!("&{other};"),
    }
}
