//! The binlogs of real servers, and bytes that no server wrote.
