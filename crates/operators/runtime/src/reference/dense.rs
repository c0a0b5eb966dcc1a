//! Plain versions of dense ops.

use steptime_aten::Arg as Argument;
use steptime_step::TensorId;

use super::Operands;
use super::tensor::Plain;
use crate::slices::Access;

fn elementwise(of: &Operands<'_>, function: impl Fn(f64, f64) -> f64) -> Plain {
    let other = matches!(&of.call.expect("a call").inputs.get(1), Some(Argument::Tensor(t)) if of.before.iter().any(|(own, _)| own == t));
    let first = of.at(0).clone();
    if !other {
        let number = if of.call.expect("a call").inputs.len() > 1 { of.number(1) } else { 0.0 };
        return first.map(|x| function(x, number));
    }
    let second = of.at(1);
    let shape = if first.values.len() >= second.values.len() { &first.shape } else { &second.shape };
    Plain::new(shape, |index| function(first.at(index), second.at(index)))
}

fn product(a: &Plain, b: &Plain) -> Plain {
    let (rows, inner, columns) = (a.shape[0], a.shape[1], b.shape[1]);
    Plain::new(&[rows, columns], |at| {
        (0..inner).map(|k| a.values[at[0] * inner + k] * b.values[k * columns + at[1]]).sum()
    })
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `x W^T + bias` for a weight `[out, in]`.
fn linear(x: &Plain, weight: &Plain, bias: Option<&Plain>) -> Plain {
    let (inner, outputs) = (x.shape[1], weight.shape[0]);
    Plain::new(&[x.shape[0], outputs], |at| {
        let sum: f64 =
            (0..inner).map(|k| x.values[at[0] * inner + k] * weight.values[at[1] * inner + k]).sum();
        sum + bias.map_or(0.0, |bias| bias.values[at[1]])
    })
}

fn biased(of: &Operands<'_>) -> Plain {
    let product = product(of.at(1), of.at(2));
    let bias = of.at(0).clone();
    Plain::new(&product.shape.clone(), |at| product.at(at) + bias.values[at[1]])
}

fn sums(x: &Plain, dims: &[i64], shape: &[usize], before: impl Fn(f64) -> f64) -> Plain {
    let kept: Vec<usize> = (0..x.shape.len()).filter(|&at| !dims.contains(&(at as i64))).collect();
    let sizes: Vec<usize> = kept.iter().map(|&at| x.shape[at]).collect();
    let mut sums = Plain::new(&sizes, |_| 0.0);
    let each = Plain::new(&x.shape, |_| 0.0);
    for at in 0..each.values.len() {
        let mut rest = at;
        let mut index = vec![0; x.shape.len()];
        for dim in (0..x.shape.len()).rev() {
            index[dim] = rest % x.shape[dim];
            rest /= x.shape[dim];
        }
        let place = kept.iter().fold(0, |place, &dim| place * x.shape[dim] + index[dim]);
        sums.values[place] += before(x.values[at]);
    }
    Plain { shape: shape.to_vec(), values: sums.values }
}

fn dims(of: &Operands<'_>, at: usize) -> Vec<i64> {
    match &of.call.expect("a call").inputs[at] {
        Argument::Ints(list) => list.to_vec(),
        Argument::Int(dim) => vec![*dim],
        other => panic!("{other:?}"),
    }
}

fn shape_of(of: &Operands<'_>, tensor: TensorId) -> Vec<usize> {
    of.step.tensors[tensor].value.shape.iter().map(|&size| size as usize).collect()
}

/// Results of ops without tables.
pub(super) fn results(of: &Operands<'_>) -> Option<Vec<(TensorId, Plain)>> {
    let alpha =
        |at: usize| if of.call.is_some_and(|call| call.inputs.len() > at) { of.number(at) } else { 1.0 };
    let name = of.name.strip_prefix("aten::").or(of.name.strip_prefix("steptime::"))?;
    let one = |plain: Plain| Some(vec![(of.out(0), plain)]);
    match name {
        "relu" | "relu_" => one(of.at(0).map(|x| x.max(0.0))),
        "threshold_backward" => one(elementwise(of, |grad, result| if result > 0.0 { grad } else { 0.0 })),
        "sigmoid" => one(of.at(0).map(sigmoid)),
        "sigmoid_backward" => one(elementwise(of, |grad, result| grad * (1.0 - result) * result)),
        "add" | "add_" => one(elementwise(of, |a, b| a + alpha(2) * b)),
        "sub" | "sub_" => one(elementwise(of, |a, b| a - alpha(2) * b)),
        "mul" | "mul_" => one(elementwise(of, |a, b| a * b)),
        "div" | "div_" => one(elementwise(of, |a, b| a / b)),
        "neg" => one(of.at(0).map(|x| -x)),
        "mm" => one(product(of.at(0), of.at(1))),
        "bmm" => {
            let (a, b) = (of.at(0), of.at(1));
            one(Plain::new(&[a.shape[0], a.shape[1], b.shape[2]], |at| {
                (0..a.shape[2]).map(|k| a.at(&[at[0], at[1], k]) * b.at(&[at[0], k, at[2]])).sum()
            }))
        }
        "linear" => {
            let bias = matches!(of.call?.inputs.get(2), Some(Argument::Tensor(_)));
            one(linear(of.at(0), of.at(1), bias.then(|| of.at(2))))
        }
        "addmm" => one(biased(of)),
        "_addmm_activation" => one(biased(of).map(|x| x.max(0.0))),
        "sum" => one(sums(of.at(0), &dims(of, 1), &shape_of(of, of.out(0)), |x| x)),
        "linalg_vector_norm" => {
            one(sums(of.at(0), &dims(of, 2), &shape_of(of, of.out(0)), |x| x * x).map(f64::sqrt))
        }
        "clamp_min" => one(elementwise(of, f64::max)),
        "eq" => one(elementwise(of, |a, b| f64::from(u8::from(a == b)))),
        "ge" => one(elementwise(of, |a, b| f64::from(u8::from(a >= b)))),
        "masked_fill_" => {
            let (x, mask, value) = (of.at(0), of.at(1), of.number(2));
            one(Plain::new(&x.shape, |at| if mask.at(at) != 0.0 { value } else { x.at(at) }))
        }
        "where" => {
            let (mask, a, b) = (of.at(0), of.at(1), of.at(2));
            one(Plain::new(
                &shape_of(of, of.out(0)),
                |at| if mask.at(at) != 0.0 { a.at(at) } else { b.at(at) },
            ))
        }
        "cat" => {
            let dim = of.number(1) as usize;
            let parts: Vec<&Plain> =
                of.call?.inputs[0].tensors().iter().map(|&part| of.value(part)).collect();
            one(Plain::new(&shape_of(of, of.out(0)), |at| {
                let mut at = at.to_vec();
                for part in &parts {
                    if at[dim] < part.shape[dim] {
                        return part.at(&at);
                    }
                    at[dim] -= part.shape[dim];
                }
                f64::NAN
            }))
        }
        "clone" => one(of.at(0).clone()),
        "copy_" => Some(vec![(of.id(0), of.at(1).clone())]),
        "zeros" | "zeros_like" | "new_zeros" => one(Plain::new(&shape_of(of, of.out(0)), |_| 0.0)),
        "ones_like" => one(Plain::new(&shape_of(of, of.out(0)), |_| 1.0)),
        "scalar_tensor" => one(Plain::new(&[], |_| of.number(0))),
        "fill_" => one(of.at(0).map(|_| of.number(1))),
        "zero_" => one(of.at(0).map(|_| 0.0)),
        "arange" => one(Plain::new(&shape_of(of, of.out(0)), |at| at[0] as f64)),
        "mse_loss" => {
            let each = elementwise(of, |x, target| (x - target).powi(2));
            one(Plain::new(&[], |_| each.values.iter().sum::<f64>() / each.values.len() as f64))
        }
        "mse_loss_backward" => {
            let (grad, x, target) = (of.at(0).values[0], of.at(1), of.at(2));
            one(Plain::new(&x.shape, |at| 2.0 * (x.at(at) - target.at(at)) * grad / x.values.len() as f64))
        }
        "binary_cross_entropy_with_logits" => {
            let each = elementwise(of, |x, z| -z * sigmoid(x).ln() - (1.0 - z) * sigmoid(-x).ln());
            one(Plain::new(&[], |_| each.values.iter().sum::<f64>() / each.values.len() as f64))
        }
        "_log_softmax" => {
            let x = of.at(0);
            let row = |at: usize| (0..x.shape[1]).map(|k| x.at(&[at, k]).exp()).sum::<f64>().ln();
            let all: Vec<f64> = (0..x.shape[0]).map(row).collect();
            one(Plain::new(&x.shape, |at| x.at(at) - all[at[0]]))
        }
        "_log_softmax_backward_data" => {
            let (grad, output) = (of.at(0), of.at(1));
            let row = |at: usize| (0..grad.shape[1]).map(|k| grad.at(&[at, k])).sum::<f64>();
            let all: Vec<f64> = (0..grad.shape[0]).map(row).collect();
            one(Plain::new(&grad.shape, |at| grad.at(at) - output.at(at).exp() * all[at[0]]))
        }
        "nll_loss_forward" => {
            let (log, classes) = (of.at(0), of.at(1));
            let count = classes.values.len();
            let sum: f64 = (0..count).map(|at| -log.at(&[at, classes.values[at] as usize])).sum();
            Some(vec![
                (of.out(0), Plain::new(&[], |_| sum / count as f64)),
                (of.out(1), Plain::new(&[], |_| count as f64)),
            ])
        }
        "nll_loss_backward" => {
            let (grad, classes, total) = (of.at(0).values[0], of.at(2), of.at(6).values[0]);
            one(Plain::new(&shape_of(of, of.out(0)), |at| {
                if classes.values[at[0]] as usize == at[1] { -grad / total } else { 0.0 }
            }))
        }
        "index" => {
            let &[_, rows, columns] = of.call?.inputs[1].tensors() else { return None };
            let (x, rows, columns) = (of.at(0), of.value(rows), of.value(columns));
            one(Plain::new(&shape_of(of, of.out(0)), |at| {
                x.at(&[at[0], rows.values[at[1]] as usize, columns.values[at[1]] as usize])
            }))
        }
        "_index_put_impl_" => {
            let &[_, rows, columns] = of.call?.inputs[1].tensors() else { return None };
            let (rows, columns, values) = (of.value(rows), of.value(columns), of.at(2));
            let mut x = of.at(0).clone();
            for sample in 0..values.shape[0] {
                for at in 0..values.shape[1] {
                    let place = (sample * x.shape[1] + rows.values[at] as usize) * x.shape[2]
                        + columns.values[at] as usize;
                    x.values[place] += values.at(&[sample, at]);
                }
            }
            Some(vec![(of.id(0), x)])
        }
        "linear_backward" => {
            let tensor = |at: usize| of.value(of.uses[at].0);
            let reads: Vec<&Plain> =
                (0..of.uses.len()).filter(|&at| of.uses[at].1 == Access::Read).map(tensor).collect();
            let writes: Vec<TensorId> =
                of.uses.iter().filter(|one| one.1 != Access::Read).map(|one| one.0).collect();
            // The gradient, the output behind a ReLU, the weight where the input has a gradient, and the input.
            let (dy, x) = (reads[0], reads[reads.len() - 1]);
            let gated = reads.len() > 2 && reads[1].shape == dy.shape && of.gated;
            let dz =
                Plain::new(&dy.shape, |at| if gated && reads[1].at(at) <= 0.0 { 0.0 } else { dy.at(at) });
            let turned = |x: &Plain| Plain::new(&[x.shape[1], x.shape[0]], |at| x.at(&[at[1], at[0]]));
            let mut results = Vec::new();
            for to in writes {
                let shape = shape_of(of, to);
                let dw = product(&turned(&dz), x);
                let weight = reads.len() > 2 + usize::from(gated);
                let plain = if weight && results.is_empty() {
                    product(&dz, reads[1 + usize::from(gated)])
                } else if results.len() == usize::from(weight) {
                    if shape == dw.shape { dw } else { turned(&dw) }
                } else {
                    sums(&dz, &[0], &shape, |x| x)
                };
                results.push((to, plain));
            }
            Some(results)
        }
        "interaction" => {
            let x = of.at(0);
            let (features, width) = (x.shape[1], x.shape[2]);
            let pairs: Vec<(usize, usize)> =
                (0..features).flat_map(|row| (0..row).map(move |column| (row, column))).collect();
            one(Plain::new(&shape_of(of, of.out(0)), |at| match at[1].checked_sub(width) {
                None => x.at(&[at[0], 0, at[1]]),
                Some(pair) => {
                    let (row, column) = pairs[pair];
                    (0..width).map(|k| x.at(&[at[0], row, k]) * x.at(&[at[0], column, k])).sum()
                }
            }))
        }
        "interaction_backward" => {
            let (grad, x) = (of.at(0), of.at(1));
            let width = x.shape[2];
            let pair = |row: usize, column: usize| {
                let (row, column) = (row.max(column), row.min(column));
                width + row * (row - 1) / 2 + column
            };
            one(Plain::new(&x.shape, |at| {
                let own = if at[1] == 0 { grad.at(&[at[0], at[2]]) } else { 0.0 };
                let others = (0..x.shape[1]).filter(|&other| other != at[1]);
                own + others
                    .map(|other| grad.at(&[at[0], pair(at[1], other)]) * x.at(&[at[0], other, at[2]]))
                    .sum::<f64>()
            }))
        }
        _ => None,
    }
}
