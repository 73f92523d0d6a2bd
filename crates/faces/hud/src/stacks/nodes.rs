//! Nodes of trees as rows.

use crate::fault::Fault;
use etwhy_analysis::stacks::{Before, Metric, NodeName, Ordered, Shown};
use etwhy_table::{
    AdHocBuilder, ColumnSpec, ColumnType, Evidence, Memory, Role, Table, TableSpec, Unit, Value,
};

/// A column of an answer.
pub fn column(name: &'static str, ty: ColumnType, unit: Unit, role: Role, doc: &'static str) -> ColumnSpec {
    ColumnSpec { name: name.into(), ty, unit, role, doc: doc.into(), nullable: true }
}

/// A table of an answer.
pub fn spec(name: &'static str, columns: Vec<ColumnSpec>) -> TableSpec {
    TableSpec {
        name: name.into(),
        title: name.into(),
        doc: name.into(),
        columns: columns.into(),
        sorted_by: None,
        version: 1,
        evidence: Evidence::Documented,
    }
}

/// Columns that say what a name is: name, kind, module, category, tag, security.
pub fn name_columns() -> Vec<ColumnSpec> {
    use ColumnType::{Bool, Text};
    let text = |name, doc| column(name, Text, Unit::None, Role::Other, doc);
    vec![
        column(
            "name",
            Text,
            Unit::None,
            Role::Name,
            "module!function; module!? where no symbol is known; or a group.",
        ),
        text("kind", "group, kernel, user, managed, interrupt, unknown, system, no_stack."),
        column("module", Text, Unit::None, Role::Other, "File name of the image."),
        text("category", "Category of the module in the knowledge base."),
        text("tag", "Stack tag: what the function is for."),
        column("security", Bool, Unit::None, Role::Flag, "It belongs to a security product."),
    ]
}

/// Cells of a name.
pub fn name_cells(name: &NodeName) -> [Value<'_>; 6] {
    fn some(text: &str) -> Value<'_> {
        if text.is_empty() { Value::Null } else { Value::Text(text) }
    }
    [
        Value::Text(&name.label),
        Value::Text(name.kind.name()),
        some(&name.module),
        some(&name.category),
        some(&name.tag),
        Value::Bool(name.security),
    ]
}

/// Nodes as they travel.
pub struct Nodes {
    rows: AdHocBuilder,
}

impl Nodes {
    /// A table of nodes of a metric; `sided`: with a column that says which tree a node is of.
    pub fn new(metric: &Metric) -> Nodes {
        use ColumnType::{I32, I64, Text};
        let unit = metric.unit;
        let mut columns = vec![
            column("side", Text, Unit::None, Role::Other, "Which tree."),
            column("id", I32, Unit::None, Role::Other, "Number of the node."),
            column("parent", I32, Unit::None, Role::Other, "Number of its parent; -1 of the first."),
            column("depth", I32, Unit::None, Role::Other, "Levels below the first."),
        ];
        columns.extend(name_columns());
        columns.extend([
            column("total", I64, unit, Role::Weight, "With all that it called."),
            column("own", I64, unit, Role::Weight, "Itself: where stacks end."),
            column("count", I64, Unit::Count, Role::Count, "Events: samples, waits, transfers."),
            column("own_count", I64, Unit::Count, Role::Count, "Events of itself."),
            column("cut", I64, unit, Role::Weight, "Of stacks that begin here in their middle."),
            column("children", I32, Unit::Count, Role::Count, "Children in the whole tree."),
            column("left_out", I32, Unit::Count, Role::Count, "Children that are too small to be shown."),
            column("left_weight", I64, unit, Role::Weight, "What these weigh."),
            column("before", I64, unit, Role::Weight, "Weight of the same path in what it is compared with."),
        ]);
        Nodes { rows: AdHocBuilder::new(spec("nodes", columns), &Memory::unlimited()) }
    }

    /// Adds nodes of a tree.
    ///
    /// # Errors
    /// Those of the table.
    pub fn add(
        &mut self,
        side: &str,
        of: &Ordered,
        shown: &[Shown],
        before: Option<&Before>,
    ) -> Result<(), Fault> {
        for (id, one) in shown.iter().enumerate() {
            let Some(node) = of.tree.node(one.node) else { continue };
            let name = name_cells(of.tree.name(node));
            let was = before.and_then(|b| b.weights.get(one.node as usize)).copied();
            let mut cells = vec![
                Value::Text(side),
                Value::I64(id as i64),
                Value::I64(if id == 0 { -1 } else { i64::from(one.parent) }),
                Value::I64(one.depth.into()),
            ];
            cells.extend(name);
            cells.extend([
                Value::I64(node.total.weight),
                Value::I64(node.own.weight),
                Value::I64(node.total.count),
                Value::I64(node.own.count),
                Value::I64(node.cut),
                Value::I64(one.children.into()),
                Value::I64(one.left_out.into()),
                Value::I64(one.left_weight),
                was.map_or(Value::Null, Value::I64),
            ]);
            self.rows.push(&cells).map_err(Fault::wrong)?;
        }
        Ok(())
    }

    /// The table.
    ///
    /// # Errors
    /// Those of the table.
    pub fn finish(self) -> Result<Table, Fault> {
        self.rows.finish().map_err(Fault::wrong)
    }
}
