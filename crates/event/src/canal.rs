//! Canal's flat message: rows as JSON, byte for byte as Canal 1.1.8 puts them on Kafka.
//!
//! A record has no key and no headers; its value is one [`FlatMessage`] for each row event of the
//! binlog, or several where [`Partitioning`] sends the rows of one event to different partitions. The
//! beginning and the end of a transaction make no record. In order:
//!
//! 1. [`Topics`] names the topic (`canal.mq.topic`, `canal.mq.dynamicTopic`).
//! 2. [`FlatMessage::of_rows`] or [`FlatMessage::of_statement`] builds the message.
//! 3. [`Partitioning`] splits it (`canal.mq.partition`, `canal.mq.partitionHash`, `canal.mq.database.hash`).
//! 4. [`FlatMessage::to_json`] writes it.
//!
//! | member | holds |
//! |---|---|
//! | `data` | each row as column name to text or null; the row after the change, or before a DELETE |
//! | `database`, `table` | where the rows are |
//! | `es` | when the statement ran, in milliseconds, always whole seconds |
//! | `gtid` | the GTID, empty where the server has none |
//! | `id` | a number of the batch, rising within one run of Canal |
//! | `isDdl` | whether it is a change of definition |
//! | `mysqlType`, `sqlType` | each column's declared type and `java.sql.Types` number, see [`sql_type`] |
//! | `old` | UPDATE only: of each row the columns that changed, as they were |
//! | `pkNames` | the columns of the primary key, null without one |
//! | `sql` | empty, or the text of the statement |
//! | `ts` | when the message was made, in milliseconds |
//! | `type` | `INSERT`, `UPDATE`, `DELETE`, `CREATE`, ... |
//!
//! Members stand in alphabetical order and nulls are written, as fastjson2 does it with `WriteNulls`;
//! of a text it escapes quotes, backslashes and the characters below U+0020 alone.
//!
//! Where Canal's own result rests on its Java machine, this is what stands here: TIMESTAMP in a [`Zone`]
//! that is set; FLOAT and DOUBLE as Java 8 to 18 print them, down to the last digit but for some numbers
//! beyond 10^22; MariaDB's UUID and INET6, which Canal cannot read, as the text that the decoder gives.

mod fields;
mod message;
mod names;
mod partition;
mod text;
mod topic;

pub use fields::Fields;
pub use message::{EventType, FlatMessage, Stamp};
pub use partition::{PartitionCounts, Partitioning, Rule};
pub use text::{Zone, sql_type, text};
pub use topic::Topics;
