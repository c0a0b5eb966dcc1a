//! Plots as SVG: one style for all of them, for light and dark pages.

pub mod scale;

use kuva::backend::svg::SvgBackend;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::render_multiple;
use kuva::render::theme::Theme;

/// Colours of lines and families: those of Okabe and Ito (2008), which colour-blind readers can distinguish, with brown and
/// violet instead of black and yellow, which are hard to see on some pages.
pub const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d4f", "#7a6fd0"];
/// Colour of lines for comparison.
pub const QUIET: &str = "#8a949e";

/// Colours of background, text and grid, each on a light and on a dark page.
const INKS: [[&str; 2]; 3] = [["#ffffff", "#14171b"], ["#1b1f24", "#e8ebee"], ["#dfe3e8", "#30373f"]];

/// Draws plots, which have a dark background in a viewer that prefers dark pages.
pub fn svg(plots: Vec<Plot>, layout: Layout) -> String {
    let [[ground, _], [text, _], [grid, _]] = INKS.map(|pair| pair.map(str::to_owned));
    let theme = Theme {
        background: ground.clone(),
        axis_color: text.clone(),
        grid_color: grid.clone(),
        tick_color: text.clone(),
        text_color: text,
        legend_bg: ground,
        legend_border: grid,
        ..Theme::light()
    };
    adaptive(&SvgBackend.render_scene(&render_multiple(plots, layout.with_theme(theme))))
}

/// Adds rules to a drawing that exchange its colours on a dark page.
fn adaptive(drawn: &str) -> String {
    let mut rules = String::new();
    for [light, dark] in INKS {
        for property in ["fill", "stroke"] {
            rules += &format!("[{property}=\"{light}\"]{{{property}:{dark}}}");
        }
    }
    let style = format!("<style>@media (prefers-color-scheme: dark){{{rules}}}</style>");
    match drawn.find("<svg").and_then(|at| Some(at + drawn[at..].find('>')? + 1)) {
        Some(at) => format!("{}{style}{}", &drawn[..at], &drawn[at..]),
        None => drawn.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::adaptive;

    #[test]
    fn a_dark_page_has_inks_of_its_own() {
        let drawn = adaptive("<svg width=\"9\"><rect fill=\"#ffffff\"/></svg>");
        assert!(
            drawn.starts_with("<svg width=\"9\"><style>")
                && drawn.contains("[fill=\"#ffffff\"]{fill:#14171b}")
        );
    }
}
