//! Exchanges beside other work: each starts as soon as its operands are complete, and is waited for where its results are used.
//!
//! Exchanges keep their order, so that all ranks have the same one.

use rustc_hash::FxHashSet;

use crate::bytes::Bytes;
use crate::program::Instruction;

/// A part of a step, in the order of launches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Runs these instructions.
    Run(Vec<usize>),
    /// Starts the exchange of an instruction.
    Start(usize),
    /// Waits for the exchange of an instruction.
    Await(usize),
}

/// The actions of a step.
pub(super) fn actions(instructions: &[Instruction]) -> Vec<Action> {
    let bytes: Vec<Vec<Bytes>> = instructions.iter().map(|one| Bytes::of_slots(one).concat()).collect();
    let exchanges: Vec<bool> = instructions.iter().map(|one| one.kernel.is_exchange()).collect();
    ordered(&bytes, &exchanges)
}

/// The actions of instructions with these bytes. Two instructions that conflict keep their order. Before an exchange only those run that it waits for,
/// directly or not; all others run beside it.
fn ordered(bytes: &[Vec<Bytes>], exchanges: &[bool]) -> Vec<Action> {
    let conflict = |one: usize, other: usize| {
        bytes[one].iter().any(|own| bytes[other].iter().any(|bytes| own.conflicts(bytes)))
    };
    let mut order = Order::default();
    for exchange in (0..bytes.len()).filter(|&at| exchanges[at]) {
        let mut needed = vec![false; exchange + 1];
        needed[exchange] = true;
        for before in (0..exchange).rev() {
            needed[before] = (before + 1..=exchange).any(|after| needed[after] && conflict(before, after));
        }
        // Instructions that wait for an exchange in progress, directly or not, come last.
        let mut late: Vec<usize> = Vec::new();
        for at in (0..exchange).filter(|&at| needed[at] && !exchanges[at]) {
            if order.done.contains(&at) {
                continue;
            }
            let waits = order.open.iter().chain(&late).any(|&before| conflict(before, at));
            if waits {
                late.push(at);
            } else {
                order.run(at, conflict);
            }
        }
        late.into_iter().for_each(|at| order.run(at, conflict));
        order.start(exchange);
    }
    (0..bytes.len()).filter(|&at| !exchanges[at]).for_each(|at| order.run(at, conflict));
    order.finish()
}

/// Actions so far.
#[derive(Debug, Default)]
struct Order {
    actions: Vec<Action>,
    /// Instructions since the last action.
    run: Vec<usize>,
    done: FxHashSet<usize>,
    /// Exchanges that are in progress.
    open: Vec<usize>,
}

impl Order {
    /// Runs an instruction, unless it has run, after the exchanges that it waits for.
    fn run(&mut self, at: usize, conflict: impl Fn(usize, usize) -> bool) {
        if self.done.insert(at) {
            let ended: Vec<usize> = self.open.iter().copied().filter(|&open| conflict(open, at)).collect();
            for exchange in ended {
                self.end(exchange);
            }
            self.run.push(at);
        }
    }

    fn flush(&mut self) {
        if !self.run.is_empty() {
            self.actions.push(Action::Run(std::mem::take(&mut self.run)));
        }
    }

    fn start(&mut self, exchange: usize) {
        self.flush();
        self.open.push(exchange);
        self.actions.push(Action::Start(exchange));
    }

    fn end(&mut self, exchange: usize) {
        self.flush();
        self.open.retain(|&open| open != exchange);
        self.actions.push(Action::Await(exchange));
    }

    fn finish(mut self) -> Vec<Action> {
        self.flush();
        std::mem::take(&mut self.open).into_iter().for_each(|exchange| self.end(exchange));
        self.actions
    }
}

#[cfg(test)]
mod tests {
    use super::Action::{Await, Run, Start};
    use super::*;
    use crate::bytes::tests::bytes;

    /// An instruction that reads and writes bytes of one region.
    fn uses(reads: u64, writes: u64) -> Vec<Bytes> {
        let at = |place: u64, writes| bytes(8 * place..8 * place + 8, writes);
        vec![at(reads, false), at(writes, true)]
    }

    #[test]
    fn an_exchange_starts_early_and_is_awaited_late() {
        // 0 makes the operand, 1 and 4 do something else, 2 exchanges, 3 and 5 something else, 6 reads the result.
        let all = [uses(0, 1), uses(0, 7), uses(1, 2), uses(0, 8), uses(2, 3)];
        let exchanges = [false, false, true, false, false];
        assert_eq!(
            ordered(&all, &exchanges),
            [Run(vec![0]), Start(2), Run(vec![1, 3]), Await(2), Run(vec![4])]
        );
    }

    #[test]
    fn exchanges_keep_their_order() {
        // The operand of the second exchange is complete before that of the first one.
        let all = [uses(0, 1), uses(0, 2), uses(2, 3), uses(1, 4), uses(3, 5), uses(4, 6)];
        let exchanges = [false, false, true, true, false, false];
        assert_eq!(
            ordered(&all, &exchanges),
            [Run(vec![1]), Start(2), Run(vec![0]), Start(3), Await(2), Run(vec![4]), Await(3), Run(vec![5])]
        );
    }

    #[test]
    fn work_that_an_exchange_does_not_need_runs_beside_it() {
        // 0 makes the operand of 1, which makes that of exchange 3; 2 needs the result of 0 alone.
        let all = [uses(9, 0), uses(0, 1), uses(0, 2), uses(1, 3), uses(2, 4), uses(3, 5)];
        let exchanges = [false, false, false, true, false, false];
        assert_eq!(
            ordered(&all, &exchanges),
            [Run(vec![0, 1]), Start(3), Run(vec![2, 4]), Await(3), Run(vec![5])]
        );
        // 2 takes the result of exchange 1, 3 is independent of both, and exchange 5 needs the results of both.
        let all =
            [uses(9, 0), uses(0, 1), uses(1, 2), uses(9, 3), [uses(2, 4), uses(3, 4)].concat(), uses(4, 5)];
        let exchanges = [false, true, false, false, false, true];
        assert_eq!(
            ordered(&all, &exchanges),
            [Run(vec![0]), Start(1), Run(vec![3]), Await(1), Run(vec![2, 4]), Start(5), Await(5)]
        );
    }

    #[test]
    fn instructions_that_conflict_keep_their_order() {
        let mut random = 7_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for _ in 0..200 {
            let all: Vec<_> = (0..24).map(|_| uses(next(6), next(6))).collect();
            let exchanges: Vec<bool> = (0..24).map(|_| next(4) == 0).collect();
            // Begin and end of each instruction.
            let mut times = [[0, 0]; 24];
            for (time, action) in ordered(&all, &exchanges).into_iter().enumerate() {
                match action {
                    Run(list) => {
                        list.iter().enumerate().for_each(|(at, &own)| times[own] = [100 * time + at; 2]);
                    }
                    Start(own) => times[own] = [100 * time; 2],
                    Await(own) => times[own][1] = 100 * time,
                }
            }
            for (later, earlier) in (0..24).flat_map(|later| (0..later).map(move |earlier| (later, earlier)))
            {
                let conflict = all[later].iter().any(|one| all[earlier].iter().any(|two| one.conflicts(two)));
                let both = exchanges[later] && exchanges[earlier];
                if conflict && !both {
                    assert!(times[earlier][1] < times[later][0], "{earlier} {later} {all:?} {exchanges:?}");
                }
                assert!(!both || times[earlier][0] < times[later][0]);
            }
        }
    }

    #[test]
    fn an_exchange_whose_memory_is_used_again_ends_before() {
        // The last one writes the operand of the exchange anew.
        let all = [uses(0, 1), uses(1, 2), uses(0, 1)];
        assert_eq!(ordered(&all, &[false, true, false]), [Run(vec![0]), Start(1), Await(1), Run(vec![2])]);
        assert_eq!(ordered(&all[..2], &[false, true]), [Run(vec![0]), Start(1), Await(1)]);
        assert_eq!(ordered(&all[..1], &[false]), [Run(vec![0])]);
    }
}
