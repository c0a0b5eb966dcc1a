//! Ranks from file names.

/// Returns the number after a word that denotes a rank: `worker2_step_12`, `rank-3`, `dlrm_eg_5`.
pub(super) fn announced(name: &str) -> Option<u32> {
    const WORDS: [&str; 6] = ["rank", "worker", "eg", "gpu", "device", "trainer"];
    let lower = name.to_ascii_lowercase();
    WORDS.iter().find_map(|word| {
        lower.match_indices(word).find_map(|(at, _)| {
            let starts_word = !lower[..at].ends_with(|before: char| before.is_ascii_alphabetic());
            let rest = lower[at + word.len()..].trim_start_matches(['_', '-', '.', ' ']);
            leading_number(rest).filter(|_| starts_word)
        })
    })
}

/// Returns the number at the end: `kineto_7`.
pub(super) fn trailing(stem: &str) -> Option<u32> {
    let digits = stem.len() - stem.trim_end_matches(|last: char| last.is_ascii_digit()).len();
    leading_number(&stem[stem.len() - digits..])
}

/// Whether names differ only in trailing numbers, and these are consecutive from 0 or 1.
pub(super) fn numbered<'n>(stems: impl Iterator<Item = &'n str> + Clone) -> bool {
    let mut heads = stems.clone().map(|stem| stem.trim_end_matches(|last: char| last.is_ascii_digit()));
    let first = heads.next();
    let alike = heads.all(|head| Some(head) == first);
    let Some(mut numbers) = stems.map(trailing).collect::<Option<Vec<u32>>>() else { return false };
    numbers.sort_unstable();
    let follow = numbers.windows(2).all(|pair| pair[1] - pair[0] == 1);
    alike && follow && numbers.first().is_some_and(|&least| least <= 1)
}

fn leading_number(text: &str) -> Option<u32> {
    let end = text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let check = |name, expect| assert_eq!(announced(name), expect, "{name}");
        check("worker2_step_12.1694128201554.pt.trace", Some(2));
        check("dlrm_eg_5", Some(5));
        check("trace_rank-3", Some(3));
        check("Rank 11", Some(11));
        check("resnet_2gpu", None);
        check("leg_4", None);
        check("linear_et_2080Ti", None);
        check("frank7", None);
        assert_eq!(trailing("kineto_7"), Some(7));
        assert_eq!(trailing("kineto"), None);
        assert_eq!(trailing("x99999999999999"), None);
    }

    #[test]
    fn numbers_are_ranks_where_they_count() {
        let numbered = |names: &[&str]| numbered(names.iter().copied());
        assert!(numbered(&["kineto_0", "kineto_1", "kineto_2"]));
        assert!(numbered(&["k2", "k1"]));
        assert!(!numbered(&["mlp_64", "mlp_128"]));
        assert!(!numbered(&["mlp_0", "cnn_1"]));
        assert!(!numbered(&["kineto_0", "kineto_0"]));
        assert!(!numbered(&["kineto_0", "kineto"]));
        assert!(!numbered(&["kineto_4294967295", "kineto_0"]));
    }
}
