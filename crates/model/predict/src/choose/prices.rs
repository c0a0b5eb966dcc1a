//! Prices per GPU-hour from a TOML file with one line per GPU: `h100 = 2.50`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Error;
use crate::pricing::{devices, nearest};

/// Size limit of a price file, in bytes.
const LONGEST: u64 = 1 << 20;

/// Prices per GPU-hour by GPU name, all in one currency.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prices(BTreeMap<String, f64>);

impl Prices {
    /// Reads a price file.
    ///
    /// # Errors
    /// Fails where the file cannot be read or is not TOML, where a name is not that of a shipped profile, or a price is not a number above zero.
    pub fn read(path: &Path) -> Result<Prices, Error> {
        let refused = |problem: String| Error::Prices { path: path.into(), problem };
        let text = steptime_trace::read_text(path, LONGEST)
            .map_err(|error| refused(format!("{error}; write a line for each GPU, as h100 = 2.50")))?;
        Prices::parse(&text).map_err(refused)
    }

    fn parse(text: &str) -> Result<Prices, String> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            format!("{}; write a line for each GPU, as h100 = 2.50", error.message())
        })?;
        let mut prices = BTreeMap::new();
        for (name, value) in table {
            let known = devices().find(|known| known.eq_ignore_ascii_case(&name.replace('_', "-")));
            let known = known.ok_or_else(|| {
                let meant = nearest(&name).map_or_else(String::new, |near| format!(" (is {near} meant?)"));
                format!("`{name}` is not a shipped GPU profile{meant}: `steptime device list` has their names, as h100 = 2.50")
            })?;
            let price = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
            let price = price.filter(|price| price.is_finite() && *price > 0.0).ok_or_else(|| {
                format!("{name} = {value}: a price per GPU-hour is a number above zero, as {name} = 2.50")
            })?;
            prices.insert(known.to_owned(), price);
        }
        if prices.is_empty() {
            return Err("it has no price: write a line for each GPU, as h100 = 2.50".to_owned());
        }
        Ok(Prices(prices))
    }

    /// Price per GPU-hour, where there is one.
    #[must_use]
    pub fn per_hour(&self, device: &str) -> Option<f64> {
        self.0.get(&device.to_ascii_lowercase()).copied()
    }

    /// Whether it has no price.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_price_of_a_gpu() {
        let prices = Prices::parse("h100 = 2.5\nH200 = 3\na100_pcie = 1.1").unwrap();
        assert_eq!(
            ["h100", "H200", "a100-pcie"].map(|name| prices.per_hour(name)),
            [Some(2.5), Some(3.0), Some(1.1)]
        );
        assert_eq!(prices.per_hour("t4"), None);
    }

    #[test]
    fn what_is_no_price_is_refused_with_the_remedy() {
        for (text, says) in [
            ("h10 = 2.5", "is h100 meant?"),
            ("h100 = -1", "a number above zero"),
            ("h100 = 0", "a number above zero"),
            ("h100 = nan", "a number above zero"),
            ("h100 = \"2.50\"", "a number above zero"),
            ("", "it has no price"),
            ("h100 2.5", "h100 = 2.50"),
        ] {
            let said = Prices::parse(text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
