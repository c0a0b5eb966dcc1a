//! Losses on a GPU against the definitions in double precision. Without a GPU the tests are skipped with a message.

use crate::support;
use crate::support::number::Number;
use crate::support::random::Random;

use half::bf16;
use steptime_cuda::loss::{CrossEntropy, MeanLoss, NllLoss};
use steptime_cuda::softmax::LogSoftmax;
use steptime_cuda::{Buffer, Error, Graph, Stream};
use steptime_ops::Cpu;
use steptime_ops::loss::{Loss, LossError, Reduction};

fn gpu() -> Option<Stream> {
    support::device().map(|device| device.stream().unwrap())
}

/// Relative difference.
fn off(found: f32, expected: f64) -> f64 {
    (f64::from(found) - expected).abs() / expected.abs().max(f64::MIN_POSITIVE)
}

/// Logits in -20..20, and probabilities.
fn batch(random: &mut Random, len: usize) -> (Vec<f32>, Vec<f32>) {
    (
        (0..len).map(|_| 20.0 * random.value()).collect(),
        (0..len).map(|_| 0.5 + 0.5 * random.value()).collect(),
    )
}

/// The mean loss in double precision.
fn mean(loss: Loss, x: &[f32], target: &[f32]) -> f64 {
    let one = |(&x, &z): (&f32, &f32)| {
        let (x, z) = (f64::from(x), f64::from(z));
        match loss {
            Loss::Mse => (x - z).powi(2),
            Loss::BceWithLogits => x.max(0.0) - x * z + (-x.abs()).exp().ln_1p(),
        }
    };
    x.iter().zip(target).map(one).sum::<f64>() / x.len() as f64
}

/// Batches of one part and of several, with and without full blocks.
const LENGTHS: [usize; 8] = [1, 7, 1024, 8192, 8193, 100_003, 1 << 20, 3_000_001];

#[test]
fn mean_losses_are_right_and_have_the_same_bits_in_each_run() {
    let Some(stream) = gpu() else { return };
    let (cpu, mut random) = (Cpu::new(1).unwrap(), Random(1));
    for len in LENGTHS {
        let (x, target) = batch(&mut random, len);
        let on_gpu = [&x, &target].map(|values| Buffer::from_host(&stream, values).unwrap());
        for loss in [Loss::Mse, Loss::BceWithLogits] {
            let mut op = MeanLoss::new(stream.device(), loss, len).unwrap();
            let mut to = Buffer::from_host(&stream, &[f32::NAN, 7.0]).unwrap();
            let mut run = || {
                op.run(&stream, on_gpu[0].as_ref(), on_gpu[1].as_ref(), &mut to.as_mut()).unwrap();
                to.to_host(&stream).unwrap()
            };
            let first = run();
            assert!(off(first[0], mean(loss, &x, &target)) < 1e-6, "{loss:?} {len}: {}", first[0]);
            let on_cpu = loss.value(&cpu, &x, &target, Reduction::Mean).unwrap();
            assert!(off(first[0], on_cpu.into()) < 1e-6, "{loss:?} {len}: {} for {on_cpu}", first[0]);
            assert_eq!(first[1], 7.0);
            for _ in 0..5 {
                assert_eq!(run()[0].to_bits(), first[0].to_bits(), "{loss:?} {len}");
            }
        }
    }
}

#[test]
fn large_logits_neither_overflow_nor_vanish() {
    let Some(stream) = gpu() else { return };
    for (x, z, expected) in
        [(1000.0_f32, 0.0_f32, 1000.0), (-1000.0, 1.0, 1000.0), (1000.0, 1.0, 0.0), (0.0, 0.5, 2.0_f64.ln())]
    {
        let [from, target] = [x, z].map(|value| Buffer::from_host(&stream, &[value]).unwrap());
        let mut op = MeanLoss::new(stream.device(), Loss::BceWithLogits, 1).unwrap();
        let mut to = Buffer::zeros(&stream, 1).unwrap();
        op.run(&stream, from.as_ref(), target.as_ref(), &mut to.as_mut()).unwrap();
        let found = f64::from(to.to_host(&stream).unwrap()[0]);
        assert!((found - expected).abs() <= 1e-6 * expected, "{x} {z}: {found}");
    }
}

#[test]
fn a_captured_loss_reads_what_is_there_when_it_is_replayed() {
    let Some(stream) = gpu() else { return };
    let (len, mut random) = (50_000, Random(2));
    let mut op = MeanLoss::new(stream.device(), Loss::Mse, len).unwrap();
    let mut from = Buffer::<f32>::zeros(&stream, len).unwrap();
    let target = Buffer::<f32>::zeros(&stream, len).unwrap();
    let mut to = Buffer::<f32>::zeros(&stream, 1).unwrap();
    let graph =
        Graph::capture(&stream, |stream| op.run(stream, from.as_ref(), target.as_ref(), &mut to.as_mut()))
            .unwrap();
    for _ in 0..2 {
        let (x, _) = batch(&mut random, len);
        from.as_mut().write(&stream, &x).unwrap();
        // SAFETY: all buffers and the loss live, and the stream is waited for.
        unsafe { graph.replay() }.unwrap();
        let expected = mean(Loss::Mse, &x, &vec![0.0; len]);
        assert!(off(to.to_host(&stream).unwrap()[0], expected) < 1e-6);
    }
    drop(op);
}

#[test]
fn mean_losses_of_other_sizes_are_refused() {
    let Some(stream) = gpu() else { return };
    let empty = MeanLoss::new(stream.device(), Loss::Mse, 0).unwrap_err();
    assert!(matches!(empty, Error::Loss(LossError::Empty)), "{empty}");
    let mut op = MeanLoss::new(stream.device(), Loss::Mse, 4).unwrap();
    let [four, five] = [4, 5].map(|len| Buffer::<f32>::zeros(&stream, len).unwrap());
    let mut to = Buffer::zeros(&stream, 1).unwrap();
    let error = op.run(&stream, four.as_ref(), five.as_ref(), &mut to.as_mut()).unwrap_err().to_string();
    assert_eq!(error, "targets of a loss: 5 elements, but 4 are needed");
    let mut none = to.as_mut();
    let error = op.run(&stream, four.as_ref(), four.as_ref(), &mut none.slice(0..0)).unwrap_err();
    assert!(matches!(error, Error::Size { found: 0, needed: 1, .. }), "{error}");
}

/// Logarithms and classes of samples on the GPU, and room for the results.
struct Samples {
    log: Vec<f32>,
    classes: Vec<i64>,
    width: usize,
}

impl Samples {
    fn new(random: &mut Random, rows: usize, width: usize) -> Samples {
        let log = (0..rows * width).map(|_| 4.0 * random.value() - 4.0).collect();
        Samples { log, classes: (0..rows).map(|_| random.below(width) as i64).collect(), width }
    }

    /// The loss and the number of samples.
    fn forward(&self, stream: &Stream, op: &mut NllLoss) -> [f32; 2] {
        let log = Buffer::from_host(stream, &self.log).unwrap();
        let classes = Buffer::from_host(stream, &self.classes).unwrap();
        let [mut loss, mut total] = [f32::NAN; 2].map(|nan| Buffer::from_host(stream, &[nan]).unwrap());
        op.forward(stream, log.as_ref(), classes.as_ref(), &mut loss.as_mut(), &mut total.as_mut()).unwrap();
        [loss, total].map(|result| result.to_host(stream).unwrap()[0])
    }

    /// The mean over all samples of those whose class exists.
    fn mean(&self) -> f64 {
        let one = |(row, &class): (&[f32], &i64)| {
            -usize::try_from(class).ok().and_then(|class| row.get(class)).map_or(0.0, |&log| f64::from(log))
        };
        self.log.chunks(self.width).zip(&self.classes).map(one).sum::<f64>() / self.classes.len() as f64
    }
}

#[test]
fn losses_of_classes_and_their_gradients_are_right() {
    let Some(stream) = gpu() else { return };
    let mut random = Random(3);
    for (rows, width) in [(1, 1), (100, 10), (257, 1000), (20_000, 7), (150_001, 3)] {
        let samples = Samples::new(&mut random, rows, width);
        let mut op = NllLoss::new(stream.device(), rows, width).unwrap();
        let [loss, total] = samples.forward(&stream, &mut op);
        assert!(off(loss, samples.mean()) < 1e-6, "{rows} {width}: {loss}");
        assert_eq!(total, rows as f32);
        assert_eq!(samples.forward(&stream, &mut op)[0].to_bits(), loss.to_bits());
        op.check(&stream).unwrap();
        let [grad, total] = [0.7, total].map(|value| Buffer::from_host(&stream, &[value]).unwrap());
        let classes = Buffer::from_host(&stream, &samples.classes).unwrap();
        let mut to = Buffer::from_host(&stream, &vec![f32::NAN; rows * width]).unwrap();
        op.backward(&stream, grad.as_ref(), classes.as_ref(), total.as_ref(), &mut to.as_mut()).unwrap();
        let mut expected = vec![0.0_f32; rows * width];
        for (sample, &class) in samples.classes.iter().enumerate() {
            expected[sample * width + class as usize] = -0.7 / rows as f32;
        }
        assert_eq!(to.to_host(&stream).unwrap(), expected, "{rows} {width}");
    }
}

#[test]
fn classes_that_do_not_exist_are_named_once_and_add_nothing() {
    let Some(stream) = gpu() else { return };
    let mut random = Random(4);
    for (rows, at) in [(50, 17), (90_000, 70_017)] {
        for class in [-1, 9, i64::MIN] {
            let mut samples = Samples::new(&mut random, rows, 9);
            samples.classes[at] = class;
            samples.classes[rows - 1] = 100;
            let mut op = NllLoss::new(stream.device(), rows, 9).unwrap();
            let [loss, total] = samples.forward(&stream, &mut op);
            assert!(off(loss, samples.mean()) < 1e-6 && total == rows as f32, "{loss} {total}");
            // A later batch without errors does not hide those of the first.
            Samples::new(&mut random, rows, 9).forward(&stream, &mut op);
            let error = op.check(&stream).unwrap_err().to_string();
            assert_eq!(error, format!("sample {at} has class {class}: classes are 0 to 8"));
            op.check(&stream).unwrap();
            let [grad, total] = [1.0, total].map(|value| Buffer::from_host(&stream, &[value]).unwrap());
            let classes = Buffer::from_host(&stream, &samples.classes).unwrap();
            let mut to = Buffer::from_host(&stream, &vec![f32::NAN; rows * 9]).unwrap();
            op.backward(&stream, grad.as_ref(), classes.as_ref(), total.as_ref(), &mut to.as_mut()).unwrap();
            let found = to.to_host(&stream).unwrap();
            assert!(found[at * 9..][..9].iter().all(|&value| value == 0.0));
            assert_eq!(found.iter().filter(|&&value| value == -1.0 / rows as f32).count(), rows - 2);
        }
    }
}

#[test]
fn operands_of_losses_of_classes_are_checked() {
    let Some(stream) = gpu() else { return };
    let mut op = NllLoss::new(stream.device(), 3, 4).unwrap();
    let log = Buffer::<f32>::zeros(&stream, 12).unwrap();
    let classes = Buffer::<i64>::zeros(&stream, 2).unwrap();
    let [mut loss, mut total] = [1, 1].map(|len| Buffer::zeros(&stream, len).unwrap());
    let (mut loss, mut total) = (loss.as_mut(), total.as_mut());
    let error =
        op.forward(&stream, log.as_ref(), classes.as_ref(), &mut loss, &mut total).unwrap_err().to_string();
    assert_eq!(error, "classes of samples: 2 elements, but 3 are needed");
}

/// Scores and classes of samples.
struct Scores<T> {
    scores: Vec<T>,
    classes: Vec<i64>,
    width: usize,
    divisor: f32,
}

impl<T: Number> Scores<T> {
    fn new(random: &mut Random, rows: usize, width: usize, divisor: f32) -> Scores<T> {
        let scores = (0..rows * width).map(|_| T::rounded(20.0 * divisor * random.value())).collect();
        Scores { scores, classes: (0..rows).map(|_| random.below(width) as i64).collect(), width, divisor }
    }

    /// The loss, and the gradient of the scores for a gradient of the loss, in double precision.
    fn expected(&self, grad: f64) -> (f64, Vec<f64>) {
        let count = self.classes.len() as f64;
        let (mut loss, mut gradients) = (0.0, Vec::with_capacity(self.scores.len()));
        for (row, &class) in self.scores.chunks(self.width).zip(&self.classes) {
            // Scores of 16 bits are rounded after their division.
            let x: Vec<f64> =
                row.iter().map(|x| T::rounded(x.value() / self.divisor).value().into()).collect();
            let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let all = most + x.iter().map(|x| (x - most).exp()).sum::<f64>().ln();
            let class = usize::try_from(class).ok().filter(|&class| class < self.width);
            loss -= class.map_or(0.0, |class| x[class] - all);
            let factor = if class.is_some() { grad / count / f64::from(self.divisor) } else { 0.0 };
            let one = |at: usize| if class == Some(at) { 1.0 } else { 0.0 };
            gradients.extend(x.iter().enumerate().map(|(at, x)| factor * ((x - all).exp() - one(at))));
        }
        (loss / count, gradients)
    }

    /// The loss, the number of samples, and the gradient of the scores.
    fn run(&self, stream: &Stream, op: &mut CrossEntropy<T>, grad: f32) -> ([f32; 2], Vec<T>) {
        let scores = Buffer::from_host(stream, &self.scores).unwrap();
        let classes = Buffer::from_host(stream, &self.classes).unwrap();
        let mut sums = Buffer::from_host(stream, &vec![f64::NAN; self.classes.len()]).unwrap();
        let [mut loss, mut total] = [f32::NAN; 2].map(|nan| Buffer::from_host(stream, &[nan]).unwrap());
        let (from, of) = (scores.as_ref(), classes.as_ref());
        let mut results = [loss.as_mut(), total.as_mut()];
        let [first, second] = &mut results;
        op.forward(stream, from, of, &mut sums.as_mut(), [first, second]).unwrap();
        let grad = Buffer::from_host(stream, &[grad]).unwrap();
        let mut to = Buffer::from_host(stream, &vec![T::rounded(f32::NAN); self.scores.len()]).unwrap();
        let scalars = [grad.as_ref(), total.as_ref()];
        op.backward(stream, scalars, from, of, sums.as_ref(), &mut to.as_mut()).unwrap();
        let results = [&loss, &total].map(|result| result.to_host(stream).unwrap()[0]);
        (results, to.to_host(stream).unwrap())
    }
}

/// Rows of a warp and of a block, in registers and not, with and without vectors and full turns.
const SHAPES: [(usize, usize); 9] = [
    (1, 1),
    (100, 10),
    (257, 1000),
    (33, 1024),
    (70, 1030),
    (40, 8192),
    (9000, 64),
    (3, 16_388),
    (2, 50_257),
];

fn cross_entropy_is_right<T: Number>(stream: &Stream, near: f64) {
    let mut random = Random(11);
    for (rows, width) in SHAPES {
        for divisor in [1.0, 0.07, -3.0] {
            let samples = Scores::<T>::new(&mut random, rows, width, divisor);
            let mut op = CrossEntropy::new(stream.device(), rows, width, divisor).unwrap();
            let ([loss, total], gradients) = samples.run(stream, &mut op, 0.7);
            let what = format!("{rows} x {width} / {divisor}");
            let (expected, slopes) = samples.expected(0.7);
            assert!((f64::from(loss) - expected).abs() <= 1e-6 * expected.abs().max(1e-3), "{what}: {loss}");
            assert_eq!(total, rows as f32);
            let largest = 0.7 / rows as f64 / f64::from(divisor.abs());
            for (at, (found, slope)) in gradients.iter().zip(slopes).enumerate() {
                let off = (f64::from(found.value()) - slope).abs();
                assert!(off <= near * largest, "{what}, {at}: {found:?} for {slope}");
            }
            let again = samples.run(stream, &mut op, 0.7);
            assert_eq!(again.0[0].to_bits(), loss.to_bits(), "{what}");
            assert!(again.1.iter().zip(&gradients).all(|(one, other)| one.bits() == other.bits()), "{what}");
            op.check(stream).unwrap();
        }
    }
}

#[test]
fn cross_entropy_of_scores_and_its_gradient_are_right() {
    let Some(stream) = gpu() else { return };
    cross_entropy_is_right::<f32>(&stream, 1e-6);
    // Two roundings to 8 bits.
    cross_entropy_is_right::<bf16>(&stream, 0.01);
}

#[test]
fn scores_of_a_class_that_does_not_exist_have_no_gradient() {
    let Some(stream) = gpu() else { return };
    let mut random = Random(12);
    for class in [-1, 9, i64::MIN] {
        let mut samples = Scores::<f32>::new(&mut random, 50, 9, 0.5);
        samples.classes[17] = class;
        let mut op = CrossEntropy::new(stream.device(), 50, 9, 0.5).unwrap();
        let ([loss, _], gradients) = samples.run(&stream, &mut op, 1.0);
        assert!(off(loss, samples.expected(1.0).0) < 1e-6, "{loss}");
        assert!(gradients[17 * 9..][..9].iter().all(|&value| value == 0.0));
        let error = op.check(&stream).unwrap_err().to_string();
        assert_eq!(error, format!("sample 17 has class {class}: classes are 0 to 8"));
        op.check(&stream).unwrap();
    }
}

#[test]
fn one_pass_has_the_numbers_of_separate_operators() {
    let Some(stream) = gpu() else { return };
    let mut random = Random(13);
    let (rows, width) = (64, 8192);
    let samples = Scores::<f32>::new(&mut random, rows, width, 1.0);
    let mut op = CrossEntropy::new(stream.device(), rows, width, 1.0).unwrap();
    let ([loss, total], gradients) = samples.run(&stream, &mut op, 1.0);
    let softmax = LogSoftmax::new(stream.device(), rows, width).unwrap();
    let mut nll = NllLoss::new(stream.device(), rows, width).unwrap();
    let scores = Buffer::from_host(&stream, &samples.scores).unwrap();
    let classes = Buffer::from_host(&stream, &samples.classes).unwrap();
    let [mut log, mut of_log, mut to] =
        [(); 3].map(|()| Buffer::<f32>::zeros(&stream, rows * width).unwrap());
    let [mut mean, mut count] = [(); 2].map(|()| Buffer::<f32>::zeros(&stream, 1).unwrap());
    softmax.forward(&stream, scores.as_ref(), &mut log.as_mut()).unwrap();
    nll.forward(&stream, log.as_ref(), classes.as_ref(), &mut mean.as_mut(), &mut count.as_mut()).unwrap();
    let one = Buffer::from_host(&stream, &[1.0]).unwrap();
    nll.backward(&stream, one.as_ref(), classes.as_ref(), count.as_ref(), &mut of_log.as_mut()).unwrap();
    softmax.backward(&stream, of_log.as_ref(), log.as_ref(), &mut to.as_mut()).unwrap();
    assert_eq!(count.to_host(&stream).unwrap(), [total]);
    assert!(off(loss, mean.to_host(&stream).unwrap()[0].into()) < 1e-7);
    let separate = to.to_host(&stream).unwrap();
    let largest = 1.0 / rows as f32;
    assert!(gradients.iter().zip(&separate).all(|(one, other)| (one - other).abs() <= 1e-7 * largest));
}
