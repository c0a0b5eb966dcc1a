//! Formatting of numbers and names.

use steptime_graph::names::EventName;

/// A fraction as a percentage; a dash where it is not finite.
#[must_use]
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "-".into();
    }
    format!("{:.1} %", 100.0 * share)
}

/// A factor by which a value may be off, up or down: `x/÷ 1.82`.
#[must_use]
pub fn times(factor: f64) -> String {
    format!("x/÷ {}", digits(factor))
}

/// A factor with two decimals, or one from 10 on.
#[must_use]
pub fn digits(factor: f64) -> String {
    if factor < 10.0 { format!("{factor:.2}") } else { format!("{factor:.1}") }
}

/// A count with thousands separators.
#[must_use]
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 step`, `2 steps`, `2 launches`, `2 activities`.
#[must_use]
pub fn counted(count: usize, what: &str) -> String {
    let number = grouped(count as u64);
    match what.strip_suffix('y') {
        _ if count == 1 => format!("{number} {what}"),
        Some(stem) => format!("{number} {stem}ies"),
        None if what.ends_with("ch") => format!("{number} {what}es"),
        None => format!("{number} {what}s"),
    }
}

/// An op's name without the prefixes that every backward function has.
#[must_use]
pub fn op(name: &str) -> &str {
    match EventName::parse(name) {
        EventName::Engine(function) if function != name => op(function),
        EventName::BackwardFunction(function) => function,
        _ => name,
    }
}

/// A kernel's name without the prefixes that most of PyTorch's kernels have.
#[must_use]
pub fn kernel(name: &str) -> String {
    let name = name.strip_prefix("void ").unwrap_or(name);
    name.replace("(anonymous namespace)::", "").replace("at::native::", "")
}

/// A kernel's name without its template's and its own arguments.
#[must_use]
pub fn kernel_family(name: &str) -> String {
    let name = kernel(name);
    // `Memcpy HtoD (Pageable -> Device)` keeps its parentheses.
    let call = name.match_indices('(').find(|(at, _)| !name[..*at].ends_with(' ')).map(|(at, _)| at);
    let end = name.find('<').into_iter().chain(call).min().filter(|&end| end > 0);
    end.map_or(name.clone(), |end| name[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(123_456), "123,456");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn names_lose_what_says_nothing() {
        assert_eq!(
            op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"),
            "AccumulateGrad"
        );
        assert_eq!(op("aten::mm"), "aten::mm");
        assert_eq!(kernel_family("void a::b<float, c(d)>(int)"), "a::b");
        assert_eq!(kernel_family("Memcpy HtoD (Pageable -> Device)"), "Memcpy HtoD (Pageable -> Device)");
        assert_eq!(kernel("void at::native::(anonymous namespace)::bag<float>(int)"), "bag<float>(int)");
    }
}
