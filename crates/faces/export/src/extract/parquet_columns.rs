//! Whether a Parquet file has the columns of a table.

use etwhy_table::{ColumnSpec, ColumnType, TableSpec};
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{SchemaDescriptor, Type};

/// Where each column of the table stands among the file's columns, if it does; else what is wrong with one.
pub(super) fn columns_of(spec: &TableSpec, schema: &SchemaDescriptor) -> Result<Vec<Option<usize>>, String> {
    let fields = schema.root_schema().get_fields();
    // Fields and leaves must be the same, so that a position means both.
    if let Some(nested) = fields.iter().find(|field| !field.is_primitive()) {
        return Err(format!("column `{}` is nested, which no column of a table is", nested.name()));
    }
    let mut places = Vec::with_capacity(spec.columns.len());
    for column in spec.columns.iter() {
        let mut found = fields.iter().enumerate().filter(|(_, field)| field.name() == column.name);
        let Some((at, field)) = found.next() else {
            places.push(None);
            continue;
        };
        if found.next().is_some() {
            return Err(format!("column `{}` is there twice", column.name));
        }
        if !fits(column, field) {
            let had = describe(field);
            return Err(format!("column `{}` is {had}, not {}", column.name, column.ty.name()));
        }
        places.push(Some(at));
    }
    Ok(places)
}

/// Whether a field holds what a column of that type holds.
fn fits(column: &ColumnSpec, field: &Type) -> bool {
    let Type::PrimitiveType { basic_info, physical_type, .. } = field else { return false };
    // Lists without a name of their own.
    if basic_info.has_repetition() && basic_info.repetition() == Repetition::REPEATED {
        return false;
    }
    let plain = basic_info.logical_type_ref().is_none() && basic_info.converted_type() == ConvertedType::NONE;
    let utf8 = basic_info.logical_type_ref() == Some(&LogicalType::String)
        || basic_info.converted_type() == ConvertedType::UTF8;
    match column.ty {
        ColumnType::I64 => *physical_type == Physical::INT64 && plain,
        ColumnType::I32 => *physical_type == Physical::INT32 && plain,
        ColumnType::F64 => *physical_type == Physical::DOUBLE && plain,
        ColumnType::Bool => *physical_type == Physical::BOOLEAN && plain,
        ColumnType::Text | ColumnType::LongText => *physical_type == Physical::BYTE_ARRAY && utf8,
    }
}

fn describe(field: &Type) -> String {
    let basic = field.get_basic_info();
    let physical = match field {
        Type::PrimitiveType { physical_type, .. } => physical_type.to_string(),
        Type::GroupType { .. } => "a group".to_owned(),
    };
    match (basic.logical_type_ref(), basic.converted_type()) {
        (None, ConvertedType::NONE) => physical,
        (Some(logical), _) => format!("{physical} ({logical:?})"),
        (None, converted) => format!("{physical} ({converted})"),
    }
}
