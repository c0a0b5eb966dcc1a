//! Lookups in the device's memory.

use steptime_ops::embedding as ops;
use steptime_ops::embedding::EmbeddingError;

use crate::runtime::StreamUse;
use crate::{Args, Buffer, Error, Slice, Stream};

/// Integers of 32 or 64 bits.
#[derive(Debug, Clone, Copy)]
pub enum Ints<'a> {
    /// 32 bits each.
    I32(Slice<'a, i32>),
    /// 64 bits each.
    I64(Slice<'a, i64>),
}

impl<'a> Ints<'a> {
    /// Number of integers.
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Ints::I32(ints) => ints.len(),
            Ints::I64(ints) => ints.len(),
        }
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Address of the first.
    #[must_use]
    pub fn address(self) -> u64 {
        match self {
            Ints::I32(ints) => ints.address(),
            Ints::I64(ints) => ints.address(),
        }
    }

    /// Streams that may still use them.
    fn stream_use(self) -> Option<&'a StreamUse> {
        match self {
            Ints::I32(ints) => ints.stream_use(),
            Ints::I64(ints) => ints.stream_use(),
        }
    }

    /// Adds them to the arguments as memory that a kernel reads.
    pub(super) fn read_by<'k>(self, args: Args<'k>) -> Args<'k>
    where
        'a: 'k,
    {
        match self {
            Ints::I32(ints) => args.reads(ints),
            Ints::I64(ints) => args.reads(ints),
        }
    }

    /// Bytes of one integer.
    #[must_use]
    pub fn width(self) -> usize {
        match self {
            Ints::I32(_) => 4,
            Ints::I64(_) => 8,
        }
    }

    /// The type's name in device code, for integers of `width` bytes.
    pub(super) fn device_name(width: usize) -> &'static str {
        if width == 4 { "int" } else { "long long" }
    }

    /// Reads some of them to the host, after the preceding work of the stream.
    pub(crate) fn read(self, stream: &Stream, range: std::ops::Range<usize>) -> Result<Vec<i64>, Error> {
        match self {
            Ints::I32(ints) => {
                let mut values = vec![0; range.len()];
                ints.slice(range).read(stream, &mut values)?;
                Ok(values.into_iter().map(i64::from).collect())
            }
            Ints::I64(ints) => {
                let mut values = vec![0; range.len()];
                ints.slice(range).read(stream, &mut values)?;
                Ok(values)
            }
        }
    }
}

/// The rows of B bags of each of T tables: bag `b` of table `t` has the indices from offset `t * B + b` to the next.
#[derive(Debug, Clone, Copy)]
pub struct Lookups<'a> {
    bags: usize,
    indices: Ints<'a>,
    offsets: Ints<'a>,
    weights: Option<Slice<'a, f32>>,
}

impl<'a> Lookups<'a> {
    /// Lookups from indices `[N]`, table by table and bag by bag, and offsets `[T * B + 1]` that increase from 0 to N.
    /// The kernels check the offsets.
    ///
    /// # Errors
    ///
    /// The number of offsets is not T x `bags` + 1 for any T.
    pub fn new(bags: usize, indices: Ints<'a>, offsets: Ints<'a>) -> Result<Lookups<'a>, Error> {
        let found = offsets.len();
        let pairs = found.saturating_sub(1);
        if found == 0 || (bags == 0 && pairs > 0) || (bags > 0 && !pairs.is_multiple_of(bags)) {
            let tables = pairs.checked_div(bags).unwrap_or(0);
            return Err(EmbeddingError::OffsetCount { found, tables, bags, needed: tables * bags + 1 }.into());
        }
        Ok(Lookups { bags, indices, offsets, weights: None })
    }

    /// Adds a weight for each lookup, `[N]`, by which its row is multiplied.
    ///
    /// # Errors
    ///
    /// There are not as many weights as indices.
    pub fn with_weights(self, weights: Slice<'a, f32>) -> Result<Lookups<'a>, Error> {
        let (found, needed) = (weights.len(), self.indices.len());
        if found != needed {
            return Err(EmbeddingError::WeightCount { found, needed }.into());
        }
        Ok(Lookups { weights: Some(weights), ..self })
    }

    /// Number of bags, B.
    #[must_use]
    pub fn bags(&self) -> usize {
        self.bags
    }

    /// Number of lookups of all bags of all tables, N.
    #[must_use]
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// The indices, `[N]`.
    #[must_use]
    pub fn indices(&self) -> Ints<'a> {
        self.indices
    }

    /// The offsets, `[T * B + 1]`.
    #[must_use]
    pub fn offsets(&self) -> Ints<'a> {
        self.offsets
    }

    /// Adds all to the arguments as memory that a kernel reads.
    pub(crate) fn read_by<'k>(&self, args: Args<'k>) -> Args<'k>
    where
        'a: 'k,
    {
        let args = self.offsets.read_by(self.indices.read_by(args));
        self.weights.into_iter().fold(args, Args::reads)
    }

    /// Transfers the use by `from` to `to`, which already waits for the work in `from`: reads of `from` count as reads
    /// of `to`.
    pub(crate) fn hand_over(&self, from: &Stream, to: &Stream) {
        let of_weights = self.weights.and_then(Slice::stream_use);
        for memory in [self.indices.stream_use(), self.offsets.stream_use(), of_weights].into_iter().flatten()
        {
            memory.hand_over(from, to);
        }
    }

    /// The weights, `[N]`.
    #[must_use]
    pub fn weights(&self) -> Option<Slice<'a, f32>> {
        self.weights
    }
}

/// Copies of lookups from the host.
#[derive(Debug)]
pub struct OwnedLookups {
    bags: usize,
    indices: OwnedInts,
    offsets: OwnedInts,
    weights: Option<Buffer<f32>>,
}

#[derive(Debug)]
enum OwnedInts {
    I32(Buffer<i32>),
    I64(Buffer<i64>),
}

impl OwnedInts {
    fn upload(stream: &Stream, ints: ops::Ints<'_>) -> Result<OwnedInts, Error> {
        Ok(match ints {
            ops::Ints::I32(ints) => OwnedInts::I32(Buffer::from_host(stream, ints)?),
            ops::Ints::I64(ints) => OwnedInts::I64(Buffer::from_host(stream, ints)?),
        })
    }

    fn view(&self) -> Ints<'_> {
        match self {
            OwnedInts::I32(ints) => Ints::I32(ints.as_ref()),
            OwnedInts::I64(ints) => Ints::I64(ints.as_ref()),
        }
    }
}

impl OwnedLookups {
    /// Copies lookups to the device.
    ///
    /// # Errors
    ///
    /// Not enough memory.
    pub fn upload(stream: &Stream, lookups: &ops::Lookups<'_>) -> Result<OwnedLookups, Error> {
        Ok(OwnedLookups {
            bags: lookups.bags(),
            indices: OwnedInts::upload(stream, lookups.indices())?,
            offsets: OwnedInts::upload(stream, lookups.offsets())?,
            weights: lookups.weights().map(|weights| Buffer::from_host(stream, weights)).transpose()?,
        })
    }

    /// Converts to the lookups of the operators.
    #[must_use]
    pub fn view(&self) -> Lookups<'_> {
        Lookups {
            bags: self.bags,
            indices: self.indices.view(),
            offsets: self.offsets.view(),
            weights: self.weights.as_ref().map(Buffer::as_ref),
        }
    }
}
