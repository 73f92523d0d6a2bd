//! Declarations as Arrow schemas. The metadata travels into Parquet files.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::{ColumnSpec, ColumnType, TableSpec};

/// The column as an Arrow field, with metadata `etwhy.unit`, `etwhy.role` and `etwhy.doc`.
pub fn arrow_field(column: &ColumnSpec) -> Field {
    let ty = match column.ty {
        ColumnType::I64 => DataType::Int64,
        ColumnType::I32 => DataType::Int32,
        ColumnType::F64 => DataType::Float64,
        ColumnType::Bool => DataType::Boolean,
        ColumnType::Text => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        ColumnType::LongText => DataType::Utf8,
    };
    Field::new(column.name.as_ref(), ty, column.nullable).with_metadata(HashMap::from([
        ("etwhy.unit".to_owned(), column.unit.name().to_owned()),
        ("etwhy.role".to_owned(), column.role.name().to_owned()),
        ("etwhy.doc".to_owned(), column.doc.to_string()),
    ]))
}

/// The table as an Arrow schema, with metadata `etwhy.table`, `etwhy.version`, `etwhy.title`, `etwhy.doc`,
/// `etwhy.evidence` and, where declared, `etwhy.sorted_by`.
pub fn arrow_schema(spec: &TableSpec) -> SchemaRef {
    let mut metadata = HashMap::from([
        ("etwhy.table".to_owned(), spec.name.to_string()),
        ("etwhy.version".to_owned(), spec.version.to_string()),
        ("etwhy.title".to_owned(), spec.title.to_string()),
        ("etwhy.doc".to_owned(), spec.manual()),
        ("etwhy.evidence".to_owned(), spec.evidence.text()),
    ]);
    if let Some(column) = &spec.sorted_by {
        metadata.insert("etwhy.sorted_by".to_owned(), column.to_string());
    }
    let fields: Vec<Field> = spec.columns.iter().map(arrow_field).collect();
    Arc::new(Schema::new_with_metadata(fields, metadata))
}
