//! The backward pass of a linear layer on a GPU: slope of the ReLU and gradient of the bias in one pass, then one product each for the gradients
//! of weight and input.

use steptime_cuda::gemm::Epilogue;
use steptime_cuda::linear::{Operands, Results, Slope};

use super::operand::{RowsOf, aligned};
use super::product::{GpuGemm, GpuProduct};
use super::work::{Gpu, GpuWork};
use crate::arg::Arg;
use crate::error::Failure;

/// A layer `y = activation(x W^T + b)` with its gradients.
#[derive(Debug)]
pub(crate) struct GpuLayer {
    dy: Arg,
    /// The output, and the gradient with the slope, where a ReLU computed the output.
    relu: Option<[Arg; 2]>,
    /// Input, and gradient of the weight.
    weight: [Arg; 2],
    /// Weight, and gradient of the input.
    input: Option<[Arg; 2]>,
    bias: Option<Arg>,
    of_weight: GpuProduct,
    of_input: Option<GpuProduct>,
    prepared: Option<Prepared>,
}

#[derive(Debug)]
struct Prepared {
    slope: Option<Slope>,
    weight: GpuGemm,
    input: Option<GpuGemm>,
}

impl GpuLayer {
    /// A layer with these operands; `None` where a product of them is not possible.
    pub(crate) fn new(
        dy: &Arg,
        y: Option<&Arg>,
        dz: Option<&Arg>,
        weight: Option<&[Arg; 2]>,
        input: Option<&[Arg; 2]>,
        bias: Option<&Arg>,
    ) -> Option<GpuLayer> {
        let [x, dw] = weight?;
        let sloped = dz.unwrap_or(dy);
        let turned = Arg { layout: sloped.layout.transpose(0, 1).ok()?, ..sloped.clone() };
        let of_weight = GpuProduct::new(&turned, x, dw).ok()?;
        let of_input = input.map(|[w, dx]| GpuProduct::new(sloped, w, dx)).transpose().ok()?;
        Some(GpuLayer {
            dy: dy.clone(),
            relu: y.zip(dz).map(|(y, dz)| [y.clone(), dz.clone()]),
            weight: [x.clone(), dw.clone()],
            input: input.cloned(),
            bias: bias.cloned(),
            of_weight,
            of_input,
            prepared: None,
        })
    }
}

/// The rows of an operand.
fn rows(arg: &Arg) -> Result<RowsOf, Failure> {
    let rows = RowsOf::new(arg).filter(|rows| !rows.transposed);
    rows.ok_or_else(|| "the gradient of a layer's output is stored by columns".into())
}

impl GpuWork for GpuLayer {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let results = Results { slope: self.relu.is_some(), sums: self.bias.is_some() };
        let needed = results.slope || results.sums;
        let slope = needed.then(|| {
            let dy = rows(&self.dy)?;
            let mut all = vec![dy];
            for arg in self.relu.iter().flatten() {
                all.push(rows(arg)?);
            }
            let device = gpu.stream.device();
            Ok::<_, Failure>(Slope::new(device, [dy.rows, dy.columns], results, aligned(&all))?)
        });
        let slope = slope.transpose()?;
        let compile =
            |product: &GpuProduct| product.compile(gpu.blas, gpu.stream, gpu.math, Epilogue::default());
        let (weight, input) = (compile(&self.of_weight)?, self.of_input.as_ref().map(compile).transpose()?);
        self.prepared = Some(Prepared { slope, weight, input });
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let Some(prepared) = &mut self.prepared else { return Ok(()) };
        let dy = self.dy.device(&gpu.memory)?;
        let mut dz = self.relu.as_ref().map(|[_, dz]| dz.device_mut(&mut gpu.memory)).transpose()?;
        if let Some(slope) = &mut prepared.slope {
            let y =
                self.relu.as_ref().map(|[y, _]| Ok::<_, Failure>((y.device(&gpu.memory)?, rows(y)?.place())));
            let sums = self.bias.as_ref().map(|bias| bias.device_row_mut(&mut gpu.memory));
            let place = self.relu.as_ref().map(|[_, dz]| rows(dz)).transpose()?;
            let to = dz.as_mut().zip(place).map(|(dz, rows)| {
                let len = dz.len();
                (dz.slice(0..len), rows.place())
            });
            let operands = Operands {
                dy: (dy, rows(&self.dy)?.place()),
                y: y.transpose()?,
                dz: to,
                sums: sums.transpose()?,
            };
            slope.run(gpu.stream, operands)?;
            let relu = self.relu.as_ref().map_or([None, None], |[y, dz]| [Some(y), Some(dz)]);
            let reads: Vec<&Arg> = [Some(&self.dy), relu[0]].into_iter().flatten().collect();
            let writes: Vec<&Arg> = [relu[1], self.bias.as_ref()].into_iter().flatten().collect();
            gpu.end_part(&reads, &writes, None)?;
        }
        let sloped = dz.map_or(dy, |dz| dz.into_ref());
        let [x, dw] = &self.weight;
        let (x, dw) = (x.device(&gpu.memory)?, dw.device_mut(&mut gpu.memory)?);
        self.of_weight.run(&mut prepared.weight, gpu, sloped, x, dw, None)?;
        let parts = self.input.as_ref().zip(self.of_input.as_ref()).zip(prepared.input.as_mut());
        if let Some((([w, dx], product), gemm)) = parts {
            let (w, dx) = (w.device(&gpu.memory)?, dx.device_mut(&mut gpu.memory)?);
            product.run(gemm, gpu, sloped, w, dx, None)?;
        }
        Ok(())
    }
}
