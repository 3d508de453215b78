//! A column and the type it was declared with.

/// A column of a table. Its type is given as the database prints it (`COLUMN_TYPE` of
/// `information_schema.columns`) and is read once, when the column is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The name of the column.
    pub name: String,
    /// The type as declared, such as `bigint(20) unsigned`, `varchar(64)` or `datetime(3)`.
    pub mysql_type: String,
    /// Whether the column is part of the primary key.
    pub is_key: bool,
    /// Whether the column may be NULL.
    pub is_nullable: bool,
    pub(crate) kind: Type,
    pub(crate) is_unsigned: bool,
    pub(crate) fraction: u8,
    pub(crate) length: Option<usize>,
    pub(crate) labels: Vec<String>,
}

/// What a declared type is, as far as the formats tell types apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
    Decimal,
    Float,
    Double,
    Bit,
    Char,
    Varchar,
    Text,
    Binary,
    Varbinary,
    Blob,
    Enum,
    Set,
    Json,
    Geometry,
    Year,
    Date,
    Time,
    DateTime,
    Timestamp,
    /// A type of another server or of a later version. Its values tell what they are.
    Other,
}

impl Column {
    /// A column that may be NULL and is no part of the primary key; see [`Column::key`] and
    /// [`Column::not_null`]. A type that is not known is no error: its values are written as what they are.
    pub fn new(name: impl Into<String>, mysql_type: impl Into<String>) -> Self {
        let mysql_type = mysql_type.into();
        let lower = mysql_type.to_ascii_lowercase();
        let end = lower.find(|letter: char| letter == '(' || letter.is_ascii_whitespace()).unwrap_or(lower.len());
        let kind = kind_of(&lower[..end], &lower);
        let inner = mysql_type.find('(').and_then(|start| mysql_type.get(start + 1..mysql_type.rfind(')')?));
        let number = inner.and_then(|text| text.trim().parse::<usize>().ok());
        let fraction = match kind {
            Type::Time | Type::DateTime | Type::Timestamp => number.unwrap_or(0).min(6),
            _ => 0,
        };
        Self {
            name: name.into(),
            is_key: false,
            is_nullable: true,
            kind,
            // The whole text is searched, as Canal does (TableMeta.FieldMeta.isUnsigned).
            is_unsigned: lower.contains("unsigned"),
            fraction: u8::try_from(fraction).unwrap_or(6),
            length: number,
            labels: match kind {
                Type::Enum | Type::Set => labels_of(inner.unwrap_or_default()),
                _ => Vec::new(),
            },
            mysql_type,
        }
    }

    /// The same column as part of the primary key, hence not NULL.
    #[must_use]
    pub fn key(mut self) -> Self {
        self.is_key = true;
        self.not_null()
    }

    /// The same column as one that is never NULL.
    #[must_use]
    pub fn not_null(mut self) -> Self {
        self.is_nullable = false;
        self
    }

    /// Digits after the second that TIME, DATETIME and TIMESTAMP were declared with, 0 to 6.
    pub fn fraction_digits(&self) -> u8 {
        self.fraction
    }

    /// Whether the type was declared `unsigned`.
    pub fn is_unsigned(&self) -> bool {
        self.is_unsigned
    }

    /// The label of an ENUM's index, from 1.
    pub fn label(&self, index: u16) -> Option<&str> {
        self.labels.get(usize::from(index).checked_sub(1)?).map(String::as_str)
    }

    /// The declared length of BINARY, whose trailing zero bytes the binlog does not hold.
    pub fn binary_length(&self) -> Option<usize> {
        // BINARY without a length is BINARY(1).
        (self.kind == Type::Binary).then_some(self.length.unwrap_or(1))
    }
}

fn kind_of(word: &str, whole: &str) -> Type {
    match word {
        "tinyint" | "bool" | "boolean" => Type::TinyInt,
        "smallint" => Type::SmallInt,
        "mediumint" => Type::MediumInt,
        "int" | "integer" => Type::Int,
        "bigint" => Type::BigInt,
        "decimal" | "numeric" | "dec" | "fixed" => Type::Decimal,
        "float" => Type::Float,
        "double" | "real" => Type::Double,
        "bit" => Type::Bit,
        // As Canal does: a CHAR that says `binary` somewhere is not decoded (LogEventConvert, issue 66).
        "char" | "nchar" if whole.contains("binary") => Type::Binary,
        "varchar" | "nvarchar" if whole.contains("binary") => Type::Varbinary,
        "char" | "nchar" => Type::Char,
        "varchar" | "nvarchar" => Type::Varchar,
        "tinytext" | "text" | "mediumtext" | "longtext" => Type::Text,
        "binary" => Type::Binary,
        "varbinary" => Type::Varbinary,
        "tinyblob" | "blob" | "mediumblob" | "longblob" => Type::Blob,
        "enum" => Type::Enum,
        "set" => Type::Set,
        "json" => Type::Json,
        "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring" | "multipolygon"
        | "geometrycollection" | "geomcollection" => Type::Geometry,
        "year" => Type::Year,
        "date" => Type::Date,
        "time" => Type::Time,
        "datetime" => Type::DateTime,
        "timestamp" => Type::Timestamp,
        _ => Type::Other,
    }
}

/// The labels of ENUM and SET: quoted texts between commas, a quote in a label being doubled.
fn labels_of(inner: &str) -> Vec<String> {
    let mut labels = Vec::new();
    let mut label: Option<String> = None;
    let mut letters = inner.chars().peekable();
    while let Some(letter) = letters.next() {
        match (&mut label, letter) {
            (None, '\'') => label = Some(String::new()),
            (None, _) => {}
            (Some(text), '\'') if letters.next_if_eq(&'\'').is_some() => text.push('\''),
            (Some(_), '\'') => labels.extend(label.take()),
            (Some(text), letter) => text.push(letter),
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_type_is_read_once_with_all_it_says() {
        let id = Column::new("id", "bigint(20) unsigned").key();
        assert!(id.kind == Type::BigInt && id.is_unsigned() && id.is_key && !id.is_nullable);
        assert_eq!(Column::new("at", "datetime(3)").fraction_digits(), 3);
        assert_eq!(Column::new("at", "TIMESTAMP").fraction_digits(), 0);
        assert_eq!(Column::new("price", "decimal(10,2)").fraction_digits(), 0);
        assert_eq!(Column::new("uuid", "binary(16)").binary_length(), Some(16));
        assert_eq!(Column::new("flag", "binary").binary_length(), Some(1));
        assert_eq!(Column::new("name", "varchar(64)").binary_length(), None);
        assert_eq!(Column::new("name", "char(4) binary").kind, Type::Binary);
        assert_eq!(Column::new("zero", "int(5) unsigned zerofill").kind, Type::Int);
        assert_eq!(Column::new("ip", "inet6").kind, Type::Other);
        assert_eq!(Column::new("broken", "enum)(").kind, Type::Other);
    }

    #[test]
    fn labels_may_hold_quotes_commas_and_brackets() {
        let column = Column::new("state", "enum('new','it''s, (done)','')");
        assert_eq!(column.labels, ["new", "it's, (done)", ""]);
        assert!(Column::new("state", "set('a").labels.is_empty());
    }
}
