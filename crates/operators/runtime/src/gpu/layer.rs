//! The backward pass of a linear layer on a GPU: slope of the ReLU and gradient of the bias in one pass, then one product each for the gradients
//! of weight and input.

use steptime_ops::gemm::Activation;

use super::product::{GpuGemm, GpuProduct};
use super::slope::GpuSlope;
use super::work::{Gpu, GpuWork};
use crate::arg::Arg;
use crate::error::Failure;

/// A layer `y = activation(x W^T + b)` with its gradients.
#[derive(Debug)]
pub(crate) struct GpuLayer {
    slope: GpuSlope,
    weight: Option<Gradient>,
    input: Option<Gradient>,
}

/// The gradient of a factor.
#[derive(Debug)]
struct Gradient {
    /// The other factor, and the result.
    args: [Arg; 2],
    product: GpuProduct,
    gemm: Option<GpuGemm>,
}

impl Gradient {
    /// The gradient of a factor from that of the product.
    fn new(of_product: &Arg, args: &[Arg; 2]) -> Option<Gradient> {
        let product = GpuProduct::new(of_product, &args[0], None, &args[1]).ok()?;
        Some(Gradient { args: args.clone(), product, gemm: None })
    }

    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        self.gemm = Some(self.product.compile(gpu.blas, gpu.stream, gpu.math, Activation::Identity)?);
        Ok(())
    }
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
        let sloped = dz.unwrap_or(dy);
        let turned = Arg { layout: sloped.layout.transpose(0, 1).ok()?, ..sloped.clone() };
        let slope = GpuSlope::new(dy, y.zip(dz).map(|(y, dz)| [y.clone(), dz.clone()]), bias);
        let gradient = |of: &Arg, args: Option<&[Arg; 2]>| match args {
            Some(args) => Gradient::new(of, args).map(Some),
            None => Some(None),
        };
        let (weight, input) = (gradient(&turned, weight)?, gradient(sloped, input)?);
        slope.fits().then_some(GpuLayer { slope, weight, input })
    }
}

impl GpuWork for GpuLayer {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        self.slope.compile(gpu)?;
        [self.weight.as_mut(), self.input.as_mut()].into_iter().flatten().try_for_each(|one| one.prepare(gpu))
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let sloped = self.slope.run(gpu)?;
        for one in [self.weight.as_mut(), self.input.as_mut()].into_iter().flatten() {
            let Some(gemm) = &mut one.gemm else { continue };
            let [factor, to] = &one.args;
            let (factor, to) = (factor.device(&gpu.memory)?, to.device_mut(&mut gpu.memory)?);
            one.product.run(gemm, gpu, sloped, factor, to)?;
        }
        Ok(())
    }
}
