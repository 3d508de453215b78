//! The file: opened, unpacked, told from others.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Cursor, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest as _, Sha256};

use crate::{
    Error, Result,
    follows_csv::{Columns, FollowsCsv},
};

/// First bytes of every gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BUFFER_BYTES: usize = 64 * 1024;

pub(super) type Input = Box<dyn BufRead + Send>;

/// A file of follows whose header has been read.
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) csv: FollowsCsv<Input>,
    /// Length of the file as it lies on disk; `None` for what has none, such as a pipe.
    pub(super) bytes: Option<u64>,
    /// Digest of the file; `None` for what can be read only once.
    pub(super) digest: Option<[u8; 32]>,
    /// Bytes of the file read so far.
    pub(super) read: BytesRead,
}

impl Source {
    /// Opens the file and reads its header. Reads it all once before, for its digest: a file with the
    /// same name, length and beginning may still be another, whose lines must not be passed over.
    pub(super) fn open(path: &Path, columns: &Columns) -> Result<Self> {
        let file = File::open(path).map_err(Error::file("opening", path))?;
        let metadata = file.metadata().map_err(Error::file("looking at", path))?;
        let is_file = metadata.is_file();
        let digest = if is_file { Some(digest(path).map_err(Error::file("reading", path))?) } else { None };
        let read = BytesRead::default();
        let counted = Counted { file, read: read.clone() };
        let input = unpacked(counted).map_err(Error::file("reading", path))?;
        let opened = FollowsCsv::open(input, columns).map_err(Error::file("reading", path))?;
        let csv = opened.map_err(|bad| Error::Usage(format!("{}: {bad}", path.display())))?;
        Ok(Self { path: path.to_owned(), csv, bytes: is_file.then_some(metadata.len()), digest, read })
    }
}

fn digest(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
    let mut digest = Sha256::new();
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Ok(digest.finalize().into());
        }
        let count = bytes.len();
        digest.update(bytes);
        file.consume(count);
    }
}

/// Unpacks what begins like gzip, whatever its name is.
fn unpacked(mut file: impl Read + Send + 'static) -> io::Result<Input> {
    let mut start = Vec::with_capacity(GZIP_MAGIC.len());
    file.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut start)?;
    let is_gzip = start == GZIP_MAGIC;
    let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(start).chain(file));
    // Several gzip files one after the other are one.
    Ok(if is_gzip {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(whole)))
    } else {
        Box::new(whole)
    })
}

/// How much was read, told across threads.
#[derive(Clone, Debug, Default)]
pub(super) struct BytesRead(Arc<AtomicU64>);

impl BytesRead {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Counted {
    file: File,
    read: BytesRead,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read.0.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn follows(bytes: &[u8]) -> io::Result<usize> {
        let input = unpacked(Cursor::new(bytes.to_vec()))?;
        let mut csv = FollowsCsv::open(input, &Columns::Usual)?.unwrap();
        let mut count = 0;
        while let Some(line) = csv.read()? {
            line.follow.unwrap();
            count += 1;
        }
        Ok(count)
    }

    #[test]
    fn gzip_is_told_by_its_first_bytes() {
        assert_eq!(follows(b"from,to\n1,2\n").unwrap(), 1);
        assert_eq!(follows(&gzip("from,to\n1,2\n")).unwrap(), 1);
    }

    #[test]
    fn gzip_files_one_after_the_other_are_one() {
        assert_eq!(follows(&[gzip("from,to\n1,2\n"), gzip("2,1\n3,1\n")].concat()).unwrap(), 3);
    }

    #[test]
    fn a_torn_gzip_file_is_an_error_and_not_an_end() {
        let whole = gzip(&(1..2_000).map(|id| format!("0,{id}\n")).fold("from,to\n".to_owned(), |a, b| a + &b));
        assert_eq!(follows(&whole[..whole.len() - 9]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
