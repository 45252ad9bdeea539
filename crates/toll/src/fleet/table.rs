//! One table of a Parquet file: columns of optional texts and numbers.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

/// Version of all tables, which every file names.
pub const SCHEMA: &str = "1";
const SCHEMA_KEY: &str = "toll.schema";

/// The values of a column; all have as many as the table has rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Texts in UTF-8. A copy of one shares its bytes.
    Text(Vec<Option<ByteArray>>),
    Integer(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
    Flag(Vec<Option<bool>>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: &'static str,
    pub values: Values,
}

/// The file of a table.
pub fn encode(columns: &[Column]) -> Result<Vec<u8>> {
    let fields = columns.iter().map(field).collect::<Result<_>>()?;
    let schema = Type::group_type_builder("toll")
        .with_fields(fields)
        .build()?;
    let version = KeyValue::new(SCHEMA_KEY.to_owned(), SCHEMA.to_owned());
    let properties = WriterProperties::builder()
        .set_created_by(format!("toll {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![version]))
        .build();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in columns {
        let mut writer = group.next_column()?.expect("the schema has as many");
        match &column.values {
            Values::Text(values) => write::<ByteArrayType>(&mut writer, values),
            Values::Integer(values) => write::<Int64Type>(&mut writer, values),
            Values::Number(values) => write::<DoubleType>(&mut writer, values),
            Values::Flag(values) => write::<BoolType>(&mut writer, values),
        }?;
        writer.close()?;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}

fn field(column: &Column) -> Result<TypePtr> {
    let (physical, logical) = match column.values {
        Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Integer(_) => (Physical::INT64, None),
        Values::Number(_) => (Physical::DOUBLE, None),
        Values::Flag(_) => (Physical::BOOLEAN, None),
    };
    Type::primitive_type_builder(column.name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL)
        .build()
        .map(Arc::new)
}

/// A column has its values, and for each row whether there is one.
fn write<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: &[Option<T::T>],
) -> Result<()> {
    let present: Vec<T::T> = values.iter().flatten().cloned().collect();
    let levels: Vec<i16> = values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect();
    let typed = writer.typed::<T>();
    typed.write_batch(&present, Some(&levels), None).map(|_| ())
}
