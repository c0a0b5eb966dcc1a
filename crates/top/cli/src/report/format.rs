//! Numbers and names as people read them.

use steptime::graph::names::EventName;

/// Milliseconds, to the microsecond; coarser from a second on.
pub fn ms(value: f64) -> String {
    if value.abs() < 1000.0 { format!("{value:.3}") } else { format!("{value:.1}") }
}

/// Microseconds, to the ten nanoseconds.
pub fn us(value: f64) -> String {
    format!("{value:.2}")
}

/// A fraction as a percentage; a dash for that of nothing.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "-".into();
    }
    format!("{:.1} %", 100.0 * share)
}

/// A count with its thousands set apart.
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

/// At most `width` characters; the rest of a longer text goes, and an ellipsis says so.
pub fn shorten(text: &str, width: usize) -> String {
    let text = crate::output::name(text);
    if text.chars().count() <= width {
        return text;
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// An op's name without the words that every backward function has.
pub fn op(name: &str) -> &str {
    match EventName::of(name) {
        EventName::Engine(function) if function != name => op(function),
        EventName::BackwardFunction(function) => function,
        _ => name,
    }
}

/// A kernel's name without the words that most of PyTorch's kernels have.
pub fn kernel(name: &str) -> String {
    let name = name.strip_prefix("void ").unwrap_or(name);
    name.replace("(anonymous namespace)::", "").replace("at::native::", "")
}

/// A kernel's name without its template's and its own arguments.
pub fn kernel_family(name: &str) -> String {
    let name = kernel(name);
    // `Memcpy HtoD (Pageable -> Device)` keeps its brackets.
    let call = name.match_indices('(').find(|(at, _)| !name[..*at].ends_with(' ')).map(|(at, _)| at);
    let end = name.find('<').into_iter().chain(call).min().filter(|&end| end > 0);
    end.map_or(name.clone(), |end| name[..end].to_owned())
}

/// A text broken into lines of at most `width` characters, the later ones indented.
pub fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let is_new = line.trim_start().is_empty();
        if !is_new && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
        } else if !is_new {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
}

/// `1 step`, `2 steps`, `2 launches`, `2 activities`.
pub fn counted(count: usize, what: &str) -> String {
    let number = grouped(count as u64);
    match what.strip_suffix('y') {
        _ if count == 1 => format!("{number} {what}"),
        Some(stem) => format!("{number} {stem}ies"),
        None if what.ends_with("ch") => format!("{number} {what}es"),
        None => format!("{number} {what}s"),
    }
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
    fn long_names_end_in_an_ellipsis() {
        assert_eq!(shorten("aten::mm", 8), "aten::mm");
        assert_eq!(shorten("aten::addmm", 8), "aten::a…");
        assert_eq!(shorten("äöü", 2), "ä…");
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

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("a bb ccc", 4, 1), "a bb\n ccc");
        assert_eq!(wrapped("toolong a", 4, 2), "toolong\n  a");
        assert_eq!(wrapped("", 4, 2), "");
    }
}
