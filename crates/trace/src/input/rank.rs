//! Ranks from file names.

/// The number behind a word that announces a rank: `worker2_step_12`, `rank-3`, `dlrm_eg_5`.
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

/// The number at the end: `kineto_7`.
pub(super) fn trailing(stem: &str) -> Option<u32> {
    let digits = stem.len() - stem.trim_end_matches(|last: char| last.is_ascii_digit()).len();
    leading_number(&stem[stem.len() - digits..])
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
}
