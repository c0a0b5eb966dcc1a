//! Order of exchanges with other ranks, and of other work beside them: that of a runtime, and of its prediction.
//!
//! Each exchange starts as soon as its operands are complete, and is waited for where its results are used. Exchanges keep their order, so that all
//! ranks have the same one.

use rustc_hash::FxHashSet;

/// A part of a step, in the order of launches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Runs these instructions.
    Run(Vec<usize>),
    /// Starts the exchange of an instruction.
    Start(usize),
    /// Waits for the exchange of an instruction.
    Await(usize),
}

/// The order of instructions of which some send vectors: each send directly behind those that it waits for, and the forward pass up to the instruction
/// `forward`, and work that waits for a send behind other work. Instructions that `conflict` keep their order.
#[must_use]
pub fn early(sends: &[bool], forward: Option<usize>, conflict: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut placed = vec![false; sends.len()];
    let mut order = Vec::with_capacity(sends.len());
    let mut open: Vec<usize> = Vec::new();
    for send in (0..sends.len()).filter(|&at| sends[at]) {
        let mut needed = vec![false; send + 1];
        needed[send] = true;
        for before in (0..send).rev() {
            needed[before] = forward.is_some_and(|last| before <= last && last < send)
                || (before + 1..=send).any(|after| needed[after] && conflict(before, after));
        }
        let list: Vec<usize> = (0..send).filter(|&at| needed[at] && !placed[at]).collect();
        // Instructions that wait for an earlier send, directly or not, come last: the others run beside it.
        let mut late: Vec<usize> = Vec::new();
        for at in list {
            let waits = open.iter().chain(&late).any(|&before| conflict(before, at));
            if waits {
                late.push(at);
            } else {
                order.push(at);
            }
            placed[at] = true;
        }
        order.extend(late.into_iter().chain([send]));
        placed[send] = true;
        open.push(send);
    }
    order.extend((0..sends.len()).filter(|&at| !placed[at]));
    order
}

/// The actions of instructions, of which some are exchanges. Two instructions that conflict keep their order. Before an exchange only those run that it waits for,
/// directly or not; all others run beside it.
#[must_use]
pub fn actions(exchanges: &[bool], conflict: impl Fn(usize, usize) -> bool) -> Vec<Action> {
    let conflict = &conflict;
    let mut order = Order::default();
    for exchange in (0..exchanges.len()).filter(|&at| exchanges[at]) {
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
    (0..exchanges.len()).filter(|&at| !exchanges[at]).for_each(|at| order.run(at, conflict));
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

    /// Uses of places, each with whether it writes.
    type Uses = Vec<(u64, bool)>;

    /// An instruction that reads one place and writes another.
    fn uses(reads: u64, writes: u64) -> Uses {
        vec![(reads, false), (writes, true)]
    }

    fn conflicts(one: &Uses, other: &Uses) -> bool {
        one.iter().any(|own| other.iter().any(|use_| own.0 == use_.0 && (own.1 || use_.1)))
    }

    fn ordered(all: &[Uses], exchanges: &[bool]) -> Vec<Action> {
        actions(exchanges, |one, other| conflicts(&all[one], &all[other]))
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
                let conflict = conflicts(&all[earlier], &all[later]);
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
        // The last one writes the operand of the exchange again.
        let all = [uses(0, 1), uses(1, 2), uses(0, 1)];
        assert_eq!(ordered(&all, &[false, true, false]), [Run(vec![0]), Start(1), Await(1), Run(vec![2])]);
        assert_eq!(ordered(&all[..2], &[false, true]), [Run(vec![0]), Start(1), Await(1)]);
        assert_eq!(ordered(&all[..1], &[false]), [Run(vec![0])]);
    }

    #[test]
    fn a_send_comes_before_work_that_it_does_not_need() {
        // 3 sends the result of 0; 1 and 2 are independent of both, 4 reads what came.
        let pairs = [[0, 3], [1, 2], [3, 4]];
        let conflict = |one: usize, other: usize| pairs.contains(&[one.min(other), one.max(other)]);
        assert_eq!(early(&[false, false, false, true, false], None, conflict), [0, 3, 1, 2, 4]);
        assert_eq!(early(&[false, false, false, true, false], Some(1), conflict), [0, 1, 3, 2, 4]);
        // 1 makes the operand of 0's reader, too.
        let pairs = [[0, 3], [1, 3], [2, 4]];
        let conflict = |one: usize, other: usize| pairs.contains(&[one.min(other), one.max(other)]);
        assert_eq!(early(&[false, false, false, true, false], None, conflict), [0, 1, 3, 2, 4]);
        assert_eq!(early(&[false; 3], None, |_, _| true), [0, 1, 2]);
    }

    #[test]
    fn work_that_waits_for_a_send_comes_behind_other_work() {
        // 1 sends the result of 0; 2 takes what came, 3 is independent, 4 takes the results of both, 5 sends that of 4.
        let pairs = [[0, 1], [1, 2], [2, 4], [3, 4], [4, 5]];
        let conflict = |one: usize, other: usize| pairs.contains(&[one.min(other), one.max(other)]);
        let sends = [false, true, false, false, false, true];
        assert_eq!(early(&sends, None, conflict), [0, 1, 3, 2, 4, 5]);
    }
}
