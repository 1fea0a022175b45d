//! One column of a row group: its pages, as they are collected until the group is complete.

use std::io;

use hashbrown::HashMap;
use zstd::bulk::Compressor;

use super::levels;
use super::thrift::Struct;

/// How values are stored: numbers of the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Physical {
    Int64 = 2,
    Double = 5,
    ByteArray = 6,
}

#[derive(Clone, Copy)]
pub(super) enum Encoding {
    Plain = 0,
    Rle = 3,
    Dictionary = 8,
}

const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;

/// Values of a page that are not null.
pub(super) enum Values<'a> {
    /// Whole numbers, and the bits of those that are not.
    Words(Vec<i64>),
    Texts(Vec<&'a str>),
}

impl Values<'_> {
    fn len(&self) -> usize {
        match self {
            Values::Words(words) => words.len(),
            Values::Texts(texts) => texts.len(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Values::Words(words) => words.iter().for_each(|word| write_word(out, *word)),
            Values::Texts(texts) => texts.iter().for_each(|text| write_text(out, text)),
        }
    }
}

fn write_word(out: &mut Vec<u8>, word: i64) {
    out.extend_from_slice(&word.to_le_bytes());
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Some rows of a column: levels, empty where the column has none, and values.
pub(super) struct Page<'a> {
    pub(super) repetition: Vec<u32>,
    pub(super) definition: Vec<u32>,
    /// Levels, or values of a column without: nulls count.
    pub(super) length: usize,
    pub(super) values: Values<'a>,
}

/// Which levels a column has, and how it is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) physical: Physical,
    pub(super) most_repeated: u32,
    pub(super) most_defined: u32,
}

/// The distinct values of a column, in the order of their first use.
#[derive(Default)]
struct Dictionary {
    words: HashMap<i64, u32>,
    texts: HashMap<String, u32>,
    plain: Vec<u8>,
}

impl Dictionary {
    /// One that is larger is not extended: later pages have their values as they are.
    const MOST_BYTES: usize = 1 << 20;

    /// A column has values of one type, so that one of the two maps is empty.
    fn len(&self) -> usize {
        self.words.len() + self.texts.len()
    }

    /// The numbers of values, which become known by that.
    fn numbers(&mut self, values: &Values<'_>) -> Vec<u32> {
        let Dictionary { words, texts, plain } = self;
        match values {
            Values::Words(values) => values
                .iter()
                .map(|word| {
                    let next = words.len() as u32;
                    *words.entry(*word).or_insert_with(|| {
                        write_word(plain, *word);
                        next
                    })
                })
                .collect(),
            Values::Texts(values) => values
                .iter()
                .map(|text| {
                    let next = texts.len() as u32;
                    *texts.entry_ref(*text).or_insert_with(|| {
                        write_text(plain, text);
                        next
                    })
                })
                .collect(),
        }
    }

    /// The least and the greatest text.
    fn extremes(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let (least, most) = (self.texts.keys().min()?, self.texts.keys().max()?);
        Some((least.as_bytes().to_vec(), most.as_bytes().to_vec()))
    }
}

/// What the file's end says about a column of a row group.
pub(super) struct Summary {
    pub(super) encodings: Vec<Encoding>,
    pub(super) values: i64,
    pub(super) nulls: i64,
    pub(super) unpacked: i64,
    pub(super) packed: i64,
    /// The offset of the dictionary, if there is one, and that of the first page of values.
    pub(super) dictionary_at: Option<i64>,
    pub(super) pages_at: i64,
    /// The least and the greatest value.
    pub(super) extremes: Option<(Vec<u8>, Vec<u8>)>,
}

/// One column of a row group.
pub(super) struct Chunk {
    shape: Shape,
    /// Pages of values, each behind its head.
    pages: Vec<u8>,
    /// What they would be if they were not packed.
    unpacked: usize,
    dictionary: Dictionary,
    /// Whether values are still written by their numbers in the dictionary.
    numbered: bool,
    /// Whether a page has values by their numbers, and as they are.
    used: (bool, bool),
    values: usize,
    nulls: usize,
    extremes: Option<(i64, i64)>,
}

impl Chunk {
    pub(super) fn new(shape: Shape) -> Chunk {
        Chunk {
            shape,
            pages: Vec::new(),
            unpacked: 0,
            dictionary: Dictionary::default(),
            numbered: true,
            used: (false, false),
            values: 0,
            nulls: 0,
            extremes: None,
        }
    }

    /// Adds a page.
    pub(super) fn push(&mut self, page: &Page<'_>, zstd: &mut Compressor<'_>) -> io::Result<()> {
        let mut body = Vec::new();
        write_levels(&mut body, &page.repetition, self.shape.most_repeated);
        write_levels(&mut body, &page.definition, self.shape.most_defined);
        let encoding = self.write_values(&mut body, &page.values);
        self.values += page.length;
        self.nulls += page.length - page.values.len();
        if let (Physical::Int64, Values::Words(words)) = (self.shape.physical, &page.values) {
            for &word in words {
                let (least, most) = self.extremes.unwrap_or((word, word));
                self.extremes = Some((least.min(word), most.max(word)));
            }
        }
        self.unpacked += write_page(&mut self.pages, &body, zstd, DATA_PAGE, |head| {
            head.nested(5, |head| {
                head.i32(1, page.length as i32);
                head.i32(2, encoding as i32);
                head.i32(3, Encoding::Rle as i32);
                head.i32(4, Encoding::Rle as i32);
            });
        })?;
        Ok(())
    }

    /// By their numbers in a dictionary as long as that is worth it.
    fn write_values(&mut self, body: &mut Vec<u8>, values: &Values<'_>) -> Encoding {
        if self.numbered && values.len() > 0 {
            let numbers = self.dictionary.numbers(values);
            // If most are new on the first page they are so on the next.
            if self.used.0 || self.dictionary.len() <= 16.max(values.len() / 2) {
                let width = levels::width_of(self.dictionary.len() as u32 - 1);
                body.push(width as u8);
                levels::write(body, &numbers, width);
                self.used.0 = true;
                self.numbered = self.dictionary.plain.len() < Dictionary::MOST_BYTES;
                return Encoding::Dictionary;
            }
            self.numbered = false;
        }
        self.used.1 = true;
        values.write(body);
        Encoding::Plain
    }

    /// Appends the dictionary and the pages to `out`, whose first byte has the offset `at`.
    pub(super) fn finish(
        mut self,
        out: &mut Vec<u8>,
        at: i64,
        zstd: &mut Compressor<'_>,
    ) -> io::Result<Summary> {
        let start = out.len();
        let at = at + start as i64;
        if self.used.0 {
            let length = self.dictionary.len() as i32;
            self.unpacked +=
                write_page(out, &self.dictionary.plain, zstd, DICTIONARY_PAGE, |head| {
                    head.nested(7, |head| {
                        head.i32(1, length);
                        head.i32(2, Encoding::Plain as i32);
                    });
                })?;
        }
        let pages_at = at + (out.len() - start) as i64;
        out.extend_from_slice(&self.pages);
        let kinds = [(self.used.0 || self.used.1, Encoding::Plain), (true, Encoding::Rle)];
        let kinds = kinds.into_iter().chain([(self.used.0, Encoding::Dictionary)]);
        let words =
            self.extremes.map(|(a, b)| (a.to_le_bytes().to_vec(), b.to_le_bytes().to_vec()));
        // Of texts only where the dictionary has all of them.
        let texts = || if self.used.1 { None } else { self.dictionary.extremes() };
        Ok(Summary {
            encodings: kinds.filter(|(used, _)| *used).map(|(_, kind)| kind).collect(),
            values: self.values as i64,
            nulls: self.nulls as i64,
            unpacked: self.unpacked as i64,
            packed: (out.len() - start) as i64,
            dictionary_at: self.used.0.then_some(at),
            pages_at,
            extremes: words.or_else(texts),
        })
    }
}

fn write_levels(out: &mut Vec<u8>, numbers: &[u32], most: u32) {
    if most == 0 {
        return;
    }
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    levels::write(out, numbers, levels::width_of(most));
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Packs a page and appends it behind its head; returns the length of both if it were not packed.
fn write_page(
    out: &mut Vec<u8>,
    body: &[u8],
    zstd: &mut Compressor<'_>,
    kind: i32,
    about: impl FnOnce(&mut Struct<'_>),
) -> io::Result<usize> {
    let length = |bytes: &[u8]| {
        i32::try_from(bytes.len()).map_err(|_| io::Error::other("a page has more than 2 GiB"))
    };
    let packed = zstd.compress(body)?;
    let (unpacked, packed_length) = (length(body)?, length(&packed)?);
    let at = out.len();
    Struct::write(out, |head| {
        head.i32(1, kind);
        head.i32(2, unpacked);
        head.i32(3, packed_length);
        about(head);
    });
    let head = out.len() - at;
    out.extend_from_slice(&packed);
    Ok(head + body.len())
}
