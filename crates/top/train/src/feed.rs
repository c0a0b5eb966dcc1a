//! Batches of data as the inputs of a step.

use steptime_dataset::Batch;
use steptime_eager::TableSize;
use steptime_runtime::{Program, Session, input_round};

use crate::Failure;
use crate::error::Error;

/// Contents of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Labels,
    Dense,
    /// Indices of a table.
    Indices(usize),
    /// Offsets of a table's bags.
    Offsets(usize),
}

/// An input of a round.
#[derive(Debug)]
struct Input {
    name: String,
    /// Number of elements.
    len: usize,
    content: Content,
    /// Round whose rows it takes.
    round: usize,
}

/// The inputs of a program, and buffers for them.
#[derive(Debug)]
pub struct Feed {
    inputs: Vec<Input>,
    tables: Vec<TableSize>,
    /// Samples of a round, of all ranks.
    batch: usize,
    /// Number of rounds of a step.
    rounds: usize,
    /// Number of the rank, and of all ranks.
    rank: [usize; 2],
    floats: Vec<f32>,
    ints: Vec<i64>,
}

impl Feed {
    /// The inputs of a program of a rank, by its number and that of all ranks, whose rounds have `batch` samples.
    ///
    /// # Errors
    /// Where it takes an input that no data has.
    pub fn new(
        program: &Program,
        tables: &[TableSize],
        batch: usize,
        rank: [usize; 2],
    ) -> Result<Feed, Error> {
        let input = |name: &str| {
            let (first, round) = input_round(name);
            let content = content(first).filter(|content| match content {
                Content::Indices(table) | Content::Offsets(table) => *table < tables.len(),
                Content::Labels | Content::Dense => true,
            });
            let content = content.ok_or_else(|| Error::Input { name: name.to_owned() })?;
            Ok(Input { name: name.to_owned(), len: program.input_len(name), content, round })
        };
        let inputs = program.inputs().map(input).collect::<Result<_, Error>>()?;
        let (tables, rounds) = (tables.to_vec(), program.rounds());
        Ok(Feed { inputs, tables, batch, rounds, rank, floats: Vec::new(), ints: Vec::new() })
    }

    /// Number of rounds of a step: batches whose gradients are accumulated.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// Samples of a step of all ranks: those of all rounds.
    pub fn samples(&self) -> usize {
        self.batch * self.rounds
    }

    /// Samples of a round of all ranks, which is the batch of a forward pass.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Samples of a step of this rank: the first one, and their number.
    pub fn share(&self) -> [usize; 2] {
        let [rank, ranks] = self.rank;
        let share = self.batch / ranks;
        [rank * share, share]
    }

    /// Dense values of a sample.
    pub fn dense(&self) -> usize {
        let dense = self.inputs.iter().find(|input| input.content == Content::Dense);
        dense.map_or(0, |input| input.len / self.share()[1].max(1))
    }

    /// Whether samples have labels.
    pub fn has_labels(&self) -> bool {
        self.inputs.iter().any(|input| input.content == Content::Labels)
    }

    /// Feeds the offsets of all bags, which are the same in each step.
    pub fn offsets(&mut self, session: &mut Session) -> Result<(), Failure> {
        for Input { name, len, content, .. } in &self.inputs {
            let Content::Offsets(table) = content else { continue };
            let lookups = self.tables[*table].lookups;
            self.ints.clear();
            self.ints.extend((0..*len as i64).map(|bag| bag * lookups));
            session.feed_ints(name, &self.ints)?;
        }
        Ok(())
    }

    /// Feeds a batch of all ranks: to each round the rows after those of the rounds before, of these the own samples, and of the own tables the
    /// lookups of all samples. Samples that it does not have are zero, with index 0.
    pub fn batch_to(&mut self, session: &mut Session, batch: &Batch) -> Result<(), Failure> {
        let [first, share] = self.share();
        for Input { name, len, content, round } in &self.inputs {
            let begin = round * self.batch;
            let floats = match content {
                Content::Labels => batch.label(),
                Content::Dense => batch.dense(),
                Content::Offsets(_) => continue,
                Content::Indices(table) => {
                    let values = batch.categorical(*table).values;
                    let each = usize::try_from(self.tables[*table].lookups).unwrap_or(0);
                    // A table that every rank has takes the own samples.
                    let own = if *len == share * each { first } else { 0 };
                    self.ints.clear();
                    let values = part(values, each * (begin + own), *len);
                    self.ints.extend(values.iter().map(|&index| i64::from(index)));
                    self.ints.resize(*len, 0);
                    session.feed_ints(name, &self.ints)?;
                    continue;
                }
            };
            let floats = part(floats, *len / share.max(1) * (begin + first), *len);
            if floats.len() == *len {
                session.feed_floats(name, floats)?;
                continue;
            }
            self.floats.clear();
            self.floats.extend_from_slice(floats);
            self.floats.resize(*len, 0.0);
            session.feed_floats(name, &self.floats)?;
        }
        Ok(())
    }
}

/// At most `len` elements from a position on.
fn part<T>(all: &[T], start: usize, len: usize) -> &[T] {
    let rest = all.get(start..).unwrap_or(&[]);
    &rest[..rest.len().min(len)]
}

/// Contents of an input, by its name: `labels`, `dense`, `tables.3.indices`, `tables.3.offsets`.
fn content(name: &str) -> Option<Content> {
    match name {
        "labels" => return Some(Content::Labels),
        "dense" => return Some(Content::Dense),
        _ => {}
    }
    let (_, rest) = name.split_once("tables.")?;
    let (table, kind) = rest.split_once('.')?;
    let table = table.parse().ok()?;
    match kind {
        "indices" => Some(Content::Indices(table)),
        "offsets" => Some(Content::Offsets(table)),
        _ => None,
    }
}
