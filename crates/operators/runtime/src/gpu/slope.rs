//! The slope of a layer's ReLU and the sums of its bias gradient on a GPU, of 16 or 32 bits.

use half::bf16;
use steptime_aten::Dtype;
use steptime_cuda::linear::{Operands, Results, Slope};
use steptime_cuda::{Float, Slice};

use super::operand::{RowsOf, aligned};
use super::work::Gpu;
use crate::arg::Arg;
use crate::error::Failure;

/// A pass over the gradient of a layer's output.
#[derive(Debug)]
pub(crate) struct GpuSlope {
    dy: Arg,
    /// The output, and the gradient with the slope, where a ReLU computed the output.
    relu: Option<[Arg; 2]>,
    /// Sums of the columns of the gradient with the slope.
    sums: Option<Arg>,
    work: Option<TypedSlope>,
}

#[derive(Debug)]
enum TypedSlope {
    Floats(Slope),
    Halves(Slope<bf16>),
}

impl GpuSlope {
    /// A pass over operands of one type; sums have 32 bits.
    pub(crate) fn new(dy: &Arg, relu: Option<[Arg; 2]>, sums: Option<&Arg>) -> GpuSlope {
        GpuSlope { dy: dy.clone(), relu, sums: sums.cloned(), work: None }
    }

    /// Whether there are operands that the pass takes.
    pub(crate) fn fits(&self) -> bool {
        let by_rows =
            |arg: &Arg| arg.dtype == self.dy.dtype && RowsOf::new(arg).is_some_and(|rows| !rows.transposed);
        let sums = self.sums.as_ref();
        self.dy.shape().len() == 2
            && [&self.dy].into_iter().chain(self.relu.iter().flatten()).all(by_rows)
            && sums.is_none_or(|sums| sums.dtype == Dtype::F32 && sums.layout.is_contiguous())
    }

    /// Compiles the pass, where there is work.
    pub(crate) fn compile(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let results = Results { slope: self.relu.is_some(), sums: self.sums.is_some() };
        if !results.slope && !results.sums {
            return Ok(());
        }
        let mut all = vec![rows(&self.dy)?];
        for arg in self.relu.iter().flatten() {
            all.push(rows(arg)?);
        }
        let (device, shape) = (gpu.stream.device(), [all[0].rows, all[0].columns]);
        let is_aligned = aligned(&all, self.dy.dtype.size() as usize);
        self.work = Some(match self.dy.dtype {
            Dtype::Bf16 => TypedSlope::Halves(Slope::new(device, shape, results, is_aligned)?),
            _ => TypedSlope::Floats(Slope::new(device, shape, results, is_aligned)?),
        });
        Ok(())
    }

    /// Runs the pass as a part of the instruction. Returns the memory of the gradient with the slope.
    pub(crate) fn run<'m>(&mut self, gpu: &mut Gpu<'_, 'm>) -> Result<Slice<'m, u8>, Failure> {
        let GpuSlope { dy, relu, sums, work } = self;
        let operands = (&*dy, relu.as_ref(), sums.as_ref());
        match work {
            Some(TypedSlope::Floats(slope)) => run(slope, operands, gpu),
            Some(TypedSlope::Halves(slope)) => run(slope, operands, gpu),
            None => dy.device(&gpu.memory),
        }
    }
}

/// The rows of an operand.
fn rows(arg: &Arg) -> Result<RowsOf, Failure> {
    let rows = RowsOf::new(arg).filter(|rows| !rows.transposed);
    rows.ok_or_else(|| "the gradient of a layer's output is stored by columns".into())
}

fn run<'m, T: Float>(
    slope: &mut Slope<T>,
    (dy, relu, sums): (&Arg, Option<&[Arg; 2]>, Option<&Arg>),
    gpu: &mut Gpu<'_, 'm>,
) -> Result<Slice<'m, u8>, Failure> {
    let from = dy.device::<T>(&gpu.memory)?;
    let mut sloped = relu.map(|[_, dz]| dz.device_mut::<T>(&mut gpu.memory)).transpose()?;
    let y = relu.map(|[y, _]| Ok::<_, Failure>((y.device(&gpu.memory)?, rows(y)?.place())));
    let place = relu.map(|[_, dz]| rows(dz)).transpose()?;
    let dz = sloped.as_mut().zip(place).map(|(dz, rows)| {
        let len = dz.len();
        (dz.slice(0..len), rows.place())
    });
    let operands = Operands {
        dy: (from, rows(dy)?.place()),
        y: y.transpose()?,
        dz,
        sums: sums.map(|sums| sums.device_row_mut(&mut gpu.memory)).transpose()?,
    };
    slope.run(gpu.stream, operands)?;
    let [output, result] = relu.map_or([None, None], |[y, dz]| [Some(y), Some(dz)]);
    let reads: Vec<&Arg> = [Some(dy), output].into_iter().flatten().collect();
    let writes: Vec<&Arg> = [result, sums].into_iter().flatten().collect();
    gpu.end_part(&reads, &writes, None)?;
    Ok(sloped.map_or(from, |dz| dz.into_ref()).cast())
}
