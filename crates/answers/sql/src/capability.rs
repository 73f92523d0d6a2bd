//! What a query may do: read the tables of the database with listed functions. SQLite asks before everything else that a statement does
//! (<https://sqlite.org/c3ref/set_authorizer.html>), also inside views and what statements run on their own (`VACUUM`, tables of pragmas), and
//! what is not listed here is refused: files, settings, changes, extensions.

use super::allowed::FUNCTIONS;
use super::kernel::OURS;
use etwhy_vtab::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Tables that SQLite makes of an argument and that read nothing else.
const OF_SQLITE: [&str; 2] = ["json_each", "json_tree"];

/// Which doors are open besides those to the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doors {
    /// `ATTACH` and `DETACH` of SQLite files, to read them: for the owner of the files alone.
    pub attach: bool,
}

/// Why the last statement was refused.
#[derive(Clone, Debug, Default)]
pub struct Refusal(Arc<Mutex<Option<String>>>);

impl Refusal {
    /// Takes the reason.
    pub fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The first reason is the one that people should read.
    fn note(&self, reason: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
    }
}

/// What statements read while somebody asks: tables and their columns.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<BTreeSet<(String, String)>>>);

impl Seen {
    /// Takes what was read since the last time.
    pub fn take(&self) -> BTreeSet<(String, String)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, table: &str, column: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((table.to_owned(), column.to_owned()));
    }
}

/// What a connection and its engine tell each other.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    /// Why the last statement was refused.
    pub refusal: Refusal,
    /// What statements read.
    pub seen: Seen,
    /// The statement is the kernel's, which reads its small tables.
    pub kernel: Arc<AtomicBool>,
    /// The statement is the engine's own: nothing in it comes from a query.
    pub own: Arc<AtomicBool>,
}

/// Names in small letters, as SQLite compares them.
struct Names {
    /// Tables, table functions and views of ours.
    tables: HashSet<String>,
    /// Tables that SQLite has on its own: a name that is neither ours nor one of these is given by the query itself.
    foreign: HashSet<String>,
    functions: HashSet<String>,
}

impl Names {
    fn of(connection: &Connection, tables: Vec<String>, functions: &[&str]) -> etwhy_vtab::Result<Names> {
        let small = |name: &str| name.to_ascii_lowercase();
        let mut known: HashSet<String> = tables.iter().map(|name| small(name)).collect();
        known.extend(OF_SQLITE.map(str::to_owned));
        let mut modules = connection.prepare("SELECT name FROM pragma_module_list")?;
        let mut foreign = HashSet::new();
        let mut rows = modules.query([])?;
        while let Some(row) = rows.next()? {
            foreign.insert(small(&row.get::<_, String>(0)?));
        }
        foreign.retain(|name| !known.contains(name));
        let functions = FUNCTIONS.iter().chain(functions).map(|name| small(name)).collect();
        Ok(Names { tables: known, foreign, functions })
    }

    fn may_read(&self, table: &str, column: &str) -> bool {
        let table = table.to_ascii_lowercase();
        if self.tables.contains(&table) {
            return true;
        }
        // Rows of a common table expression may be counted: it comes without a column.
        let own = ["sqlite_", "pragma_"].iter().any(|start| table.starts_with(start));
        column.is_empty() && !own && !self.foreign.contains(&table)
    }

    /// Why something is refused; `None` if it is allowed.
    fn refuse(&self, context: &AuthContext<'_>, doors: Doors, kernel: bool) -> Option<String> {
        match context.action {
            AuthAction::Select | AuthAction::Recursive => None,
            AuthAction::Attach { .. } | AuthAction::Detach { .. } if doors.attach => None,
            AuthAction::Read { .. } if doors.attach => None,
            AuthAction::Read { table_name, .. } if table_name.starts_with(OURS) => {
                (!kernel).then(|| format!("`{table_name}` is not a table of the trace"))
            }
            AuthAction::Read { table_name, column_name } if self.may_read(table_name, column_name) => None,
            AuthAction::Read { table_name, .. } => Some(format!("`{table_name}` is not a table of the trace")),
            AuthAction::Function { function_name }
                if self.functions.contains(&function_name.to_ascii_lowercase()) =>
            {
                None
            }
            AuthAction::Function { function_name } => {
                Some(format!("function `{function_name}` is not allowed; docs/sql.md lists those that are"))
            }
            AuthAction::Attach { .. } | AuthAction::Detach { .. } => Some(
                "ATTACH and DETACH are not allowed: a query reads the tables of the trace and no other file; `etwhy sql --allow-attach` \
                 permits them"
                    .to_owned(),
            ),
            AuthAction::Pragma { pragma_name, .. } => {
                Some(format!("PRAGMA {pragma_name} is not allowed: a query reads tables and changes no settings"))
            }
            _ => Some(ONLY_QUESTIONS.to_owned()),
        }
    }
}

/// Said of statements that would change something.
pub const ONLY_QUESTIONS: &str = "only SELECT is allowed: a trace cannot be changed";

/// Closes all doors of a connection but those named. Whatever it needs set up must be set up before.
///
/// # Errors
/// SQLite's.
pub fn confine(
    connection: &mut Connection,
    tables: Vec<String>,
    functions: &[&str],
    doors: Doors,
) -> etwhy_vtab::Result<Gate> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // What is attached is read only, and must be there.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, false)?;
    // A column that is not there is an error, as in DuckDB and Spark: in double quotes SQLite takes its name for a text.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    let names = Names::of(connection, tables, functions)?;
    let gate = Gate::default();
    let told = gate.clone();
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        if let AuthAction::Read { table_name, column_name } = context.action {
            told.seen.note(table_name, column_name);
        }
        if told.own.load(Ordering::Relaxed) {
            return Authorization::Allow;
        }
        match names.refuse(&context, doors, told.kernel.load(Ordering::Relaxed)) {
            None => Authorization::Allow,
            Some(reason) => {
                told.refusal.note(reason);
                Authorization::Deny
            }
        }
    }))?;
    Ok(gate)
}
