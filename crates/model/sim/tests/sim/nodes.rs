//! Independent chains of nodes of one CUDA graph that share the device.

use proptest::prelude::*;
use steptime_cost::Demand;
use steptime_sim::sharing::RunningKernels;
use steptime_trace::Nanos;

/// A chain: the times of its nodes alone, and their demands.
type Chain = Vec<(Nanos, Demand)>;

/// Time of chains that begin together.
fn together(chains: &[Chain], multiprocessors: u32) -> Nanos {
    let mut running = RunningKernels::on(multiprocessors).of_nodes();
    let mut next = vec![0; chains.len()];
    let begin = |chain: usize, next: &mut [usize], running: &mut RunningKernels<usize>| {
        if let Some(&(alone, demand)) = chains[chain].get(next[chain]) {
            let now = running.now().max(Nanos::ZERO);
            running.begin(chain, now, alone, demand);
            next[chain] += 1;
        }
    };
    (0..chains.len()).for_each(|chain| begin(chain, &mut next, &mut running));
    while running.next_change().is_some() {
        for chain in running.change() {
            begin(chain, &mut next, &mut running);
        }
    }
    running.now().max(Nanos::ZERO)
}

fn sum(chain: &Chain) -> f64 {
    chain.iter().map(|(alone, _)| alone.as_micros()).sum()
}

fn chain() -> impl Strategy<Value = Chain> {
    let node = (1_000_i64..100_000, 1_u32..600, 1_u32..9, 0.0..1.0_f64, 0.1..1.0_f64);
    let node = node.prop_map(|(alone, blocks, resident, memory, busy)| {
        let block = [1.0 / f64::from(resident); 4];
        (Nanos(alone), Demand { blocks: f64::from(blocks), warps: 4.0, block, memory, busy })
    });
    proptest::collection::vec(node, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_chain_is_a_sequence(chain in chain()) {
        let time = together(std::slice::from_ref(&chain), 100).as_micros();
        prop_assert!((time - sum(&chain)).abs() < 0.01, "{time}");
    }

    #[test]
    fn chains_take_as_long_as_the_longest_and_no_longer_than_all(chains in proptest::collection::vec(chain(), 2..5)) {
        let time = together(&chains, 100).as_micros();
        let longest = chains.iter().map(sum).fold(0.0, f64::max);
        let all: f64 = chains.iter().map(sum).sum();
        prop_assert!(longest - 0.1 <= time, "{time} {longest}");
        prop_assert!(time <= 1.01 * all + 0.1, "{time} {all}");
    }

    #[test]
    fn chains_on_a_faster_device_are_not_slower(chains in proptest::collection::vec(chain(), 2..5), factor in 1.0..3.0_f64) {
        let faster = |chain: &Chain| chain.iter().map(|&(alone, demand)| (Nanos((alone.0 as f64 / factor) as i64), demand)).collect();
        let faster: Vec<Chain> = chains.iter().map(faster).collect();
        prop_assert!(together(&faster, 100) <= together(&chains, 100) + Nanos(100));
    }
}
