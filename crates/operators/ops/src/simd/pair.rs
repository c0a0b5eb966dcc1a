//! Vectors of twice as many lanes, in two vectors.

use super::Simd;
use crate::arch::Code;

/// Two vectors as one: the lower lanes first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<S>(pub(crate) S);

/// One operation on each half.
macro_rules! halves {
    ($($name:ident($($operand:ident),+);)+) => { $(
        #[inline(always)]
        fn $name(self $(, $operand: Self::V)+) -> Self::V {
            [self.0.$name($($operand[0]),+), self.0.$name($($operand[1]),+)]
        }
    )+ };
}

impl<S: Simd> Simd for Pair<S> {
    type V = [S::V; 2];
    const LANES: usize = 2 * S::LANES;

    halves! {
        add(a, b);
        sub(a, b);
        mul(a, b);
        div(a, b);
        mul_add(a, b, sum);
        larger(a, b);
        sqrt(a);
    }

    #[inline(always)]
    fn compile<C: Code>(self, code: C) -> C::Output {
        self.0.compile(code)
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::V {
        [self.0.splat(value); 2]
    }

    #[inline(always)]
    unsafe fn read(self, from: *const f32) -> Self::V {
        // SAFETY: twice as many floats as lanes of a half can be read, by the caller's promise.
        unsafe { [self.0.read(from), self.0.read(from.add(S::LANES))] }
    }

    #[inline(always)]
    unsafe fn read_first(self, from: *const f32, count: usize) -> Self::V {
        // SAFETY: `count` floats can be read, by the caller's promise: those of the lower half first.
        unsafe {
            if count <= S::LANES {
                [self.0.read_first(from, count), self.0.splat(0.0)]
            } else {
                [self.0.read(from), self.0.read_first(from.add(S::LANES), count - S::LANES)]
            }
        }
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut f32, value: Self::V) {
        // SAFETY: twice as many floats as lanes of a half can be written, by the caller's promise.
        unsafe {
            self.0.write(to, value[0]);
            self.0.write(to.add(S::LANES), value[1]);
        }
    }

    #[inline(always)]
    unsafe fn write_first(self, to: *mut f32, value: Self::V, count: usize) {
        // SAFETY: `count` floats can be written, by the caller's promise: those of the lower half first.
        unsafe {
            if count <= S::LANES {
                self.0.write_first(to, value[0], count);
            } else {
                self.0.write(to, value[0]);
                self.0.write_first(to.add(S::LANES), value[1], count - S::LANES);
            }
        }
    }

    #[inline(always)]
    fn sum(self, a: Self::V) -> f32 {
        self.0.sum(self.0.add(a[0], a[1]))
    }
}
