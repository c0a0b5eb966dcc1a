//! An optimizer's state for a list of tensors, and its step.

use super::{OptimizerError, Rule};
use crate::Cpu;
use crate::shared::Shared;
use crate::simd::{Kernel, Simd, dispatch};

/// Number of parameters that one part of the work updates: 64 KiB of them.
const BLOCK: usize = 16 << 10;

/// A rule, and its state for a list of tensors.
#[derive(Debug, Clone)]
pub struct Optimizer<R> {
    rule: R,
    step: u64,
    sizes: Vec<usize>,
    states: Vec<[Vec<f32>; 2]>,
}

impl<R: Rule> Optimizer<R> {
    /// An optimizer for tensors of these numbers of elements.
    ///
    /// # Errors
    ///
    /// A setting of the rule is out of range.
    pub fn new(rule: R, sizes: &[usize]) -> Result<Optimizer<R>, OptimizerError> {
        rule.check()?;
        let state =
            |size: usize, which: usize| vec![rule.initial(); if which < rule.states() { size } else { 0 }];
        let states = sizes.iter().map(|&size| [state(size, 0), state(size, 1)]).collect();
        Ok(Optimizer { rule, step: 0, sizes: sizes.to_vec(), states })
    }

    /// The rule, with its settings.
    #[must_use]
    pub fn rule(&self) -> &R {
        &self.rule
    }

    /// Sets other settings, for example from a schedule of learning rates.
    ///
    /// # Errors
    ///
    /// A setting is out of range, or needs more or less state.
    pub fn set_rule(&mut self, rule: R) -> Result<(), OptimizerError> {
        rule.check()?;
        if rule.states() != self.rule.states() {
            let needed = "momentum cannot be switched on or off between steps: make a new optimizer";
            let (rule, name, value) = (R::NAME, "states", rule.states() as f64);
            return Err(OptimizerError::Setting { rule, name, value, needed });
        }
        self.rule = rule;
        Ok(())
    }

    /// Number of steps taken.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// State of each tensor, as many slices as the rule keeps: momentum, sum of squares, or both moments.
    #[must_use]
    pub fn state(&self, tensor: usize) -> Option<&[Vec<f32>]> {
        self.states.get(tensor).map(|state| &state[..self.rule.states()])
    }

    /// Takes one step of all tensors, each a slice with its gradient.
    ///
    /// # Errors
    ///
    /// The slices do not match the optimizer's sizes. Nothing has changed.
    pub fn step(
        &mut self,
        cpu: &Cpu,
        parameters: &mut [&mut [f32]],
        gradients: &[&[f32]],
    ) -> Result<(), OptimizerError> {
        self.check(parameters, gradients)?;
        self.step += 1;
        let numbers = self.rule.step(self.step);
        let mut blocks = Vec::new();
        let mut tensors = Vec::with_capacity(parameters.len());
        for (tensor, (parameter, state)) in parameters.iter_mut().zip(&mut self.states).enumerate() {
            blocks.extend((0..parameter.len()).step_by(BLOCK).map(|at| (tensor, at)));
            tensors.push((Shared::new(parameter), state.each_mut().map(|state| Shared::new(state))));
        }
        cpu.run(blocks.len(), |part| {
            let (tensor, at) = blocks[part];
            let gradient = gradients[tensor];
            let gradient = &gradient[at..gradient.len().min(at + BLOCK)];
            let (parameter, state) = &tensors[tensor];
            let kept = |which: usize| if which < self.rule.states() { gradient.len() } else { 0 };
            // SAFETY: blocks of a parameter begin `BLOCK` apart and have at most this length; each belongs to one part,
            // which is done once; parameters are separate slices.
            let parameters = unsafe { parameter.range(at, gradient.len()) };
            let part = |which: usize| {
                let at = if kept(which) == 0 { 0 } else { at };
                // SAFETY: as above.
                unsafe { state[which].range(at, kept(which)) }
            };
            let state = [part(0), part(1)];
            dispatch(cpu.arch(), Block::<R> { step: &numbers, parameters, gradient, state });
        });
        Ok(())
    }

    /// Takes one step in plain loops, one parameter after the other.
    ///
    /// # Errors
    ///
    /// As for [`step`](Optimizer::step).
    pub fn step_reference(
        &mut self,
        parameters: &mut [&mut [f32]],
        gradients: &[&[f32]],
    ) -> Result<(), OptimizerError> {
        self.check(parameters, gradients)?;
        self.step += 1;
        for ((parameter, gradient), states) in parameters.iter_mut().zip(gradients).zip(&mut self.states) {
            for (at, (parameter, &gradient)) in parameter.iter_mut().zip(*gradient).enumerate() {
                let mut state: Vec<f64> =
                    states.iter().filter_map(|state| state.get(at)).map(|&x| x.into()).collect();
                let mut value = f64::from(*parameter);
                self.rule.reference(self.step, &mut value, gradient.into(), &mut state);
                *parameter = value as f32;
                states.iter_mut().zip(state).for_each(|(states, state)| states[at] = state as f32);
            }
        }
        Ok(())
    }

    fn check(&self, parameters: &[&mut [f32]], gradients: &[&[f32]]) -> Result<(), OptimizerError> {
        let tensors = self.sizes.len();
        if parameters.len() != tensors || gradients.len() != tensors {
            let (parameters, gradients) = (parameters.len(), gradients.len());
            return Err(OptimizerError::Count { tensors, parameters, gradients });
        }
        for (tensor, &state) in self.sizes.iter().enumerate() {
            let (parameters, gradients) = (parameters[tensor].len(), gradients[tensor].len());
            if parameters != state || gradients != state {
                return Err(OptimizerError::Length { tensor, state, parameters, gradients });
            }
        }
        Ok(())
    }
}

/// A block of consecutive parameters.
struct Block<'a, R: Rule> {
    step: &'a R::Step,
    parameters: &'a mut [f32],
    gradient: &'a [f32],
    state: [&'a mut [f32]; 2],
}

impl<R: Rule> Kernel for Block<'_, R> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        R::update(simd, self.step, self.parameters, self.gradient, self.state);
    }
}
