//! Functions of elements on a GPU: one, or a chain of them as one kernel.

use steptime_aten::Dtype;
use steptime_cuda::pointwise::{Chain, Function, Input, Pointwise, Type};

use super::element_function::ElementFunction;
use super::work::{Gpu, GpuWork};
use crate::arg::Arg;
use crate::error::Failure;

/// Type of elements in a kernel.
///
/// # Errors
/// Where no kernel has the type.
pub(crate) fn element_type(dtype: Dtype) -> Result<Type, String> {
    match dtype {
        Dtype::F32 => Ok(Type::F32),
        Dtype::Bf16 => Ok(Type::Bf16),
        Dtype::I64 => Ok(Type::I64),
        Dtype::Bool => Ok(Type::Bool),
        other => Err(format!("it takes {} on a GPU", other.name())),
    }
}

/// A chain of functions over operands.
#[derive(Debug)]
pub(crate) struct GpuPointwise {
    chain: Chain,
    inputs: Vec<Arg>,
    outputs: Vec<Arg>,
    /// For each input the output whose memory it is.
    in_place: Vec<Option<usize>>,
    /// The function, where the chain is one.
    single: Option<ElementFunction>,
    work: Option<Pointwise>,
}

impl GpuPointwise {
    /// A chain over operands. An input in the memory of an output must be that output.
    ///
    /// # Errors
    /// Where an input overlaps an output.
    pub(crate) fn new(chain: Chain, inputs: Vec<Arg>, outputs: Vec<Arg>) -> Result<GpuPointwise, String> {
        let mut in_place = Vec::with_capacity(inputs.len());
        for input in &inputs {
            let output = outputs.iter().position(|to| to.slot == input.slot);
            let same = |to: &Arg| to.layout == input.layout && to.dtype == input.dtype;
            if output.is_some_and(|output| !same(&outputs[output])) {
                return Err("an operand overlaps the result".to_owned());
            }
            in_place.push(output);
        }
        Ok(GpuPointwise { chain, inputs, outputs, in_place, single: None, work: None })
    }

    /// One function.
    ///
    /// # Errors
    /// Where it does not take the types of the operands, or an input overlaps an output.
    pub(crate) fn from_function(single: ElementFunction) -> Result<GpuPointwise, String> {
        let types =
            |all: &[Arg]| all.iter().map(|arg| element_type(arg.dtype)).collect::<Result<Vec<_>, _>>();
        let (inputs, outputs) = (types(&single.inputs)?, types(&single.outputs)?);
        let chain = Chain::from_function(single.function.clone(), &inputs, &outputs);
        let chain = chain.map_err(|source| source.to_string())?;
        let whole = GpuPointwise::new(chain, single.inputs.clone(), single.outputs.clone())?;
        Ok(GpuPointwise { single: Some(single), ..whole })
    }
}

impl GpuWork for GpuPointwise {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let layouts = |all: &[Arg]| all.iter().map(|arg| arg.layout.clone()).collect::<Vec<_>>();
        let [inputs, outputs] = [layouts(&self.inputs), layouts(&self.outputs)];
        self.work = Some(Pointwise::new(gpu.stream.device(), &self.chain, &inputs, &outputs)?);
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let Some(work) = &self.work else { return Ok(()) };
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (input, output) in self.inputs.iter().zip(&self.in_place) {
            inputs.push(match output {
                Some(output) => Input::InPlace(*output),
                None => Input::Slice(input.device(&gpu.memory)?),
            });
        }
        let outputs = self.outputs.iter().map(|to| to.device_mut(&mut gpu.memory));
        let mut outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        Ok(work.run(gpu.stream, &inputs, &mut outputs)?)
    }

    fn function(&self) -> Option<&ElementFunction> {
        self.single.as_ref()
    }
}

/// Other work that computes a function of elements.
pub(crate) struct SameFunction {
    pub(crate) work: Box<dyn GpuWork>,
    pub(crate) function: ElementFunction,
}

impl GpuWork for SameFunction {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        self.work.prepare(gpu)
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        self.work.launch(gpu)
    }

    fn function(&self) -> Option<&ElementFunction> {
        Some(&self.function)
    }

    fn copies(&self) -> Option<Vec<(Arg, Arg)>> {
        let ElementFunction { function: Function::Convert, inputs, outputs } = &self.function else {
            return None;
        };
        let ([from], [to]) = (&inputs[..], &outputs[..]) else { return None };
        (from.dtype == to.dtype).then(|| vec![(from.clone(), to.clone())])
    }
}
