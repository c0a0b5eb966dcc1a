//! Plain versions of ops on tables.

use steptime_aten::Arg as Argument;
use steptime_step::TensorId;

use super::Operands;
use super::tensor::Plain;

/// The bag of each lookup; `offsets` of a table may be followed by those of others.
fn bags(offsets: &[f64], bags: usize, base: usize, count: usize) -> Vec<usize> {
    let ends = |bag: usize| if bag + 1 < bags { offsets[bag + 1] as usize } else { base + count };
    (0..bags).flat_map(|bag| (offsets[bag] as usize..ends(bag)).map(move |_| bag)).collect()
}

/// Pooled rows.
fn pooled(table: &Plain, indices: &[f64], bag_of: &[usize], bags: usize, mean: bool) -> Plain {
    let width = table.shape[1];
    let mut sums = Plain::new(&[bags, width], |_| 0.0);
    let mut counts = vec![0.0; bags];
    for (&index, &bag) in indices.iter().zip(bag_of) {
        counts[bag] += 1.0;
        for at in 0..width {
            sums.values[bag * width + at] += table.values[index as usize * width + at];
        }
    }
    let factor = |bag: usize| if mean && counts[bag] > 0.0 { 1.0 / counts[bag] } else { 1.0 };
    Plain::new(&[bags, width], |at| sums.at(at) * factor(at[0]))
}

/// Results of lookups and of their gradients.
pub(super) fn results(of: &Operands<'_>) -> Option<Vec<(TensorId, Plain)>> {
    match of.name {
        "aten::embedding_bag" | "aten::_embedding_bag" => {
            let (table, indices, offsets, mean) = (of.at(0), of.at(1), of.at(2), of.number(4) == 1.0);
            let (count, size) = (indices.values.len(), offsets.values.len());
            let bag_of = bags(&offsets.values, size, 0, count);
            let sizes = Plain::new(&[size], |at| bag_of.iter().filter(|&&bag| bag == at[0]).count() as f64);
            Some(vec![
                (of.out(0), pooled(table, &indices.values, &bag_of, size, mean)),
                (of.out(1), Plain::new(&[count], |at| bag_of[at[0]] as f64)),
                (of.out(2), sizes),
            ])
        }
        "steptime::embedding_bag" => {
            let (tables, mean) = (of.call?.inputs[0].tensors(), of.number(4) == 1.0);
            let parts = split(of, tables, of.at(1), of.at(2));
            let parts: Vec<Plain> = parts
                .iter()
                .zip(tables)
                .map(|((indices, bag_of, size), &table)| {
                    pooled(of.value(table), indices, bag_of, *size, mean)
                })
                .collect();
            let size = parts[0].shape[0];
            let width = parts.iter().map(|part| part.shape[1]).sum();
            let all = Plain::new(&[size, width], |at| {
                let mut column = at[1];
                for part in &parts {
                    if column < part.shape[1] {
                        return part.at(&[at[0], column]);
                    }
                    column -= part.shape[1];
                }
                f64::NAN
            });
            Some(vec![(of.out(0), all)])
        }
        "aten::index_select" => {
            let (x, index) = (of.at(0), of.at(2));
            let shape: Vec<usize> =
                std::iter::once(index.values.len()).chain(x.shape[1..].iter().copied()).collect();
            let plain = Plain::new(&shape, |at| {
                let mut at = at.to_vec();
                at[0] = index.values[at[0]] as usize;
                x.at(&at)
            });
            Some(vec![(of.out(0), plain)])
        }
        "aten::_embedding_bag_dense_backward" => {
            let (grad, indices, sizes, mean) = (of.at(0), of.at(1), of.at(3), of.number(7) == 1.0);
            let bag_of: Vec<usize> =
                sizes.values.iter().enumerate().flat_map(|(bag, &size)| vec![bag; size as usize]).collect();
            let Argument::Int(rows) = of.call?.inputs[5] else { return None };
            Some(vec![(
                of.out(0),
                gradient(
                    grad,
                    0,
                    rows as usize,
                    grad.shape[1],
                    &indices.values,
                    &bag_of,
                    &sizes.values,
                    mean,
                ),
            )])
        }
        "steptime::embedding_bag_dense_backward" => {
            let (grad, mean, made) = (of.at(0), of.number(5) == 1.0, of.call?.outputs[0].tensors());
            let Argument::Ints(rows) = &of.call?.inputs[3] else { return None };
            let Argument::Ints(columns) = &of.call?.inputs[4] else { return None };
            let (mut column, mut all) = (0, Vec::new());
            for (at, (indices, bag_of, size)) in split(of, made, of.at(1), of.at(2)).iter().enumerate() {
                let sizes: Vec<f64> =
                    (0..*size).map(|bag| bag_of.iter().filter(|&&own| own == bag).count() as f64).collect();
                let (rows, width) = (rows[at] as usize, columns[at] as usize);
                all.push((made[at], gradient(grad, column, rows, width, indices, bag_of, &sizes, mean)));
                column += width;
            }
            Some(all)
        }
        _ => None,
    }
}

/// Indices and bags of each table of a call, and the number of bags.
pub(super) fn split(
    of: &Operands<'_>,
    tables: &[TensorId],
    indices: &Plain,
    offsets: &Plain,
) -> Vec<(Vec<f64>, Vec<usize>, usize)> {
    let size = (offsets.values.len() - 1) / tables.len();
    assert!(of.call.is_some());
    (0..tables.len())
        .map(|table| {
            let own = &offsets.values[table * size..=(table + 1) * size];
            let (start, end) = (own[0] as usize, own[size] as usize);
            let bag_of = bags(&own[..size], size, start, end - start);
            (indices.values[start..end].to_vec(), bag_of, size)
        })
        .collect()
}

/// The dense gradient of a table whose results begin at a column.
#[expect(clippy::too_many_arguments, reason = "a plain formula")]
pub(super) fn gradient(
    grad: &Plain,
    column: usize,
    rows: usize,
    width: usize,
    indices: &[f64],
    bag_of: &[usize],
    sizes: &[f64],
    mean: bool,
) -> Plain {
    let mut sums = Plain::new(&[rows, width], |_| 0.0);
    for (&index, &bag) in indices.iter().zip(bag_of) {
        let factor = if mean { 1.0 / sizes[bag] } else { 1.0 };
        for at in 0..width {
            sums.values[index as usize * width + at] += grad.at(&[bag, column + at]) * factor;
        }
    }
    sums
}
