//! One table of a Parquet file: columns of optional texts and numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{KeyValue, ParquetMetaData, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::record::Field;
use parquet::schema::types::{Type, TypePtr};

/// Version of all tables, stored in every file. A reader refuses other versions.
pub const SCHEMA: &str = "1";
const SCHEMA_KEY: &str = "toll.schema";

/// Largest file that is read, and largest decoded content, in bytes.
pub const BYTES_MAX: u64 = 256 << 20;
const ROWS_MAX: i64 = 1 << 20;
const COLUMNS_MAX: usize = 256;

/// The values of a column, one for each row of the table.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Strings in UTF-8. Copies of a string share its bytes.
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

/// A row that was read: values by column.
pub type Row = BTreeMap<String, Field>;

/// Encodes a table as a Parquet file.
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

/// Writes a column: the values that are present, and for each row whether the row has a value.
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

/// Decodes the rows of a table's file.
///
/// # Errors
/// Fails if the file is damaged, too large, or of another version.
pub fn decode(bytes: Vec<u8>) -> Result<Vec<Row>> {
    let file = SerializedFileReader::new(Bytes::from(bytes))?;
    let metadata = file.metadata().file_metadata().key_value_metadata();
    let mut entries = metadata.into_iter().flatten();
    let version = entries.find(|entry| entry.key == SCHEMA_KEY);
    let version = version.and_then(|entry| entry.value.as_deref());
    if version != Some(SCHEMA) {
        let message = version.map_or_else(
            || "it was not written by toll".to_owned(),
            |version| format!("its tables have version {version}, but this toll reads {SCHEMA}"),
        );
        return Err(ParquetError::General(message));
    }
    check_sizes(file.metadata())?;
    let mut bytes = 0;
    let mut rows = Vec::new();
    for row in file.get_row_iter(None)? {
        let row: Row = row?.into_columns().into_iter().collect();
        // The file's size bounds neither rows nor bytes: a dictionary stores a text once for any
        // number of rows, and a run of equal or missing values takes a few bytes.
        bytes += row.iter().map(cell_bytes).sum::<u64>();
        if bytes > BYTES_MAX || rows.len() as i64 >= ROWS_MAX {
            return Err(too_large());
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Refuses a file whose metadata announce more than the limits on memory.
fn check_sizes(metadata: &ParquetMetaData) -> Result<()> {
    let file = metadata.file_metadata();
    check_schema(file.schema())?;
    let groups = metadata.row_groups();
    let rows = groups.iter().map(RowGroupMetaData::num_rows);
    let bytes = groups.iter().map(RowGroupMetaData::total_byte_size);
    if file.schema_descr().num_columns() <= COLUMNS_MAX
        && is_within(rows, ROWS_MAX)
        && is_within(bytes, BYTES_MAX.cast_signed())
    {
        Ok(())
    } else {
        Err(too_large())
    }
}

/// Refuses lists in rows, which may have any number of values.
fn check_schema(schema: &Type) -> Result<()> {
    let mut fields = schema.get_fields().iter();
    let is_one = |field: &TypePtr| {
        field.is_primitive() && field.get_basic_info().repetition() != Repetition::REPEATED
    };
    if fields.all(is_one) {
        Ok(())
    } else {
        Err(ParquetError::General("it has lists in its rows".into()))
    }
}

/// Whether the sum of some counts is at most `max`, and none is negative.
fn is_within(mut counts: impl Iterator<Item = i64>, max: i64) -> bool {
    let sum = counts.try_fold(0_i64, |sum, one| match one {
        0.. => sum.checked_add(one),
        _ => None,
    });
    sum.is_some_and(|sum| sum <= max)
}

/// Memory that a cell takes in a [`Row`].
fn cell_bytes((name, field): (&String, &Field)) -> u64 {
    let text_bytes = match field {
        Field::Str(text) => text.len(),
        Field::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    (size_of::<(String, Field)>() + name.len() + text_bytes) as u64
}

fn too_large() -> ParquetError {
    ParquetError::General(format!(
        "it has more than {ROWS_MAX} rows, {COLUMNS_MAX} columns or {} MiB",
        BYTES_MAX >> 20
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        let text = |text: &str| Some(ByteArray::from(text));
        vec![
            Column {
                name: "name",
                values: Values::Text(vec![text("one"), None, text("drei\u{df}ig")]),
            },
            Column {
                name: "count",
                values: Values::Integer(vec![None, Some(i64::MIN), Some(3)]),
            },
            Column {
                name: "value",
                values: Values::Number(vec![Some(0.5), None, Some(f64::MAX)]),
            },
            Column {
                name: "is_root",
                values: Values::Flag(vec![Some(true), Some(false), None]),
            },
        ]
    }

    #[test]
    fn what_is_written_is_read_again() {
        let rows = decode(encode(&columns()).unwrap()).unwrap();
        let read = |row: usize, name: &str| rows[row][name].clone();
        assert_eq!(rows.len(), 3);
        assert_eq!(read(0, "name"), Field::Str("one".into()));
        assert_eq!(read(1, "name"), Field::Null);
        assert_eq!(read(2, "name"), Field::Str("drei\u{df}ig".into()));
        assert_eq!(read(1, "count"), Field::Long(i64::MIN));
        assert_eq!(read(2, "value"), Field::Double(f64::MAX));
        assert_eq!(read(1, "is_root"), Field::Bool(false));
    }

    #[test]
    fn damage_anywhere_is_an_error_or_leaves_as_many_rows() {
        let bytes = encode(&columns()).unwrap();
        for length in 0..bytes.len() {
            assert!(decode(bytes[..length].to_vec()).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_short_file_of_a_long_content_is_refused() {
        let text = ByteArray::from(vec![b'x'; 100 << 10]);
        let column = Column {
            name: "text",
            values: Values::Text(vec![Some(text); 10_000]),
        };
        let bytes = encode(&[column]).unwrap();
        assert!(bytes.len() < 4 << 20, "{} bytes", bytes.len());
        let error = decode(bytes).unwrap_err().to_string();
        assert!(error.contains("it has more than"), "{error}");
        let column = Column {
            name: "count",
            values: Values::Integer(vec![None; 3 << 20]),
        };
        let bytes = encode(&[column]).unwrap();
        assert!(bytes.len() < 1 << 20, "{} bytes", bytes.len());
        assert!(decode(bytes).is_err());
    }

    #[test]
    fn lists_names_and_cells_that_take_much_memory_are_refused() {
        let none = || Values::Integer(vec![None; 1 << 15]);
        let column = |name| Column {
            name,
            values: none(),
        };
        let long: &'static str = "n".repeat(8 << 10).leak();
        let many = (0..200).map(|number| column(format!("n{number}").leak()));
        for columns in [vec![column(long)], many.collect()] {
            let bytes = encode(&columns).unwrap();
            assert!(bytes.len() < 1 << 20, "{} bytes", bytes.len());
            let error = decode(bytes).unwrap_err().to_string();
            assert!(error.contains("it has more than"), "{error}");
        }
        let list = Type::primitive_type_builder("list", Physical::INT64)
            .with_repetition(Repetition::REPEATED);
        let fields = vec![Arc::new(list.build().unwrap())];
        let schema = Type::group_type_builder("toll").with_fields(fields);
        let error = check_schema(&schema.build().unwrap()).unwrap_err();
        assert!(error.to_string().contains("it has lists"), "{error}");
    }

    #[test]
    fn another_version_is_refused() {
        let mut bytes = encode(&columns()).unwrap();
        let key = SCHEMA_KEY.as_bytes();
        let at = bytes
            .windows(key.len())
            .rposition(|part| part == key)
            .unwrap();
        let value = at + key.len() + 2;
        assert_eq!(bytes[value], b'1');
        bytes[value] = b'9';
        let error = decode(bytes).unwrap_err().to_string();
        assert!(
            error.contains("its tables have version 9, but this toll reads 1"),
            "{error}"
        );
    }
}
