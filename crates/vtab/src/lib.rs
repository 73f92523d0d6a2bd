//! Tables as SQLite virtual tables.
