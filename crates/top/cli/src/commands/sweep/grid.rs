//! A grid of changes from a file: keys of a plan, each with a list of values.

use std::path::Path;

use toml::{Table, Value};

use crate::cli::{Changes, Shard};
use crate::commands::Failure;
use crate::commands::what_if::plan;

/// Maximum size of a grid file, in bytes.
const LONGEST: u64 = 1 << 20;
/// Maximum number of points in one output file.
const MOST: u128 = 1_000_000;
/// The value that leaves its key out.
const AS_IS: &str = "as-is";
/// Key of the GPUs, the only one that is not a key of a plan.
const DEVICE: &str = "device";

/// A grid: the product of the values of its keys. Keys are sorted by name; the last changes fastest.
#[derive(Debug)]
pub struct Grid {
    /// Its keys, with the values of each; `None` is `as-is`.
    pub keys: Vec<(String, Vec<Option<Value>>)>,
    /// Number of points.
    pub points: u64,
}

impl Grid {
    /// Reads a grid; a shard is limited to the points of one output file.
    pub fn read(path: &Path, shard: Option<Shard>) -> Result<Grid, Failure> {
        let place = path.display();
        let text = steptime_trace::read_text(path, LONGEST).map_err(|error| format!("{place}: {error}"))?;
        let table: Table = text.parse().map_err(|error| format!("{place}: {error}"))?;
        Grid::from_table(&table, shard).map_err(|error| format!("{place}: {error}").into())
    }

    fn from_table(table: &Table, shard: Option<Shard>) -> Result<Grid, String> {
        let mut keys = Vec::new();
        for (key, values) in table {
            let key = key.replace('_', "-");
            plan::check_key(&key, &[DEVICE])?;
            let Some(values) = values.as_array() else {
                return Err(format!("`{key}` is a list of values in a grid: {key} = [{values}]"));
            };
            if values.is_empty() {
                return Err(format!("`{key}` has no value: give it some, or leave it out"));
            }
            let as_is = |value: &Value| value.as_str() == Some(AS_IS);
            let values: Vec<Option<Value>> =
                values.iter().map(|value| (!as_is(value)).then(|| value.clone())).collect();
            for value in values.iter().flatten() {
                checked(&key, value)?;
            }
            keys.push((key, values));
        }
        if keys.is_empty() {
            return Err("it has no key: give it lists, as batch = [1024, 2048]".to_owned());
        }
        let points = keys.iter().fold(1u128, |all, (_, values)| all.saturating_mul(values.len() as u128));
        let each = points.div_ceil(shard.map_or(1, |shard| u128::from(shard.of)));
        if each > MOST {
            return Err(format!(
                "it has {points} points, and {MOST} are the most of one file: shorten its lists, or take a part with \
                 --shard I/N"
            ));
        }
        let points =
            u64::try_from(points).map_err(|_| format!("it has {points} points: shorten its lists"))?;
        Ok(Grid { keys, points })
    }

    /// Returns the GPUs in the grid: names, or folders of profiles.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        let values = self.keys.iter().filter(|(key, _)| key == DEVICE).flat_map(|(_, values)| values);
        values.flatten().filter_map(Value::as_str)
    }

    /// Returns the points of a shard, in order.
    pub fn shard(&self, shard: Option<Shard>) -> Vec<u64> {
        let (first, every) = shard.map_or((0, 1), |shard| (shard.part - 1, shard.of));
        (first..self.points).step_by(usize::try_from(every).unwrap_or(usize::MAX)).collect()
    }

    /// Returns the index of each key's value at a point.
    pub fn places(&self, point: u64) -> Vec<usize> {
        let mut left = point;
        let mut places: Vec<usize> = (self.keys.iter().rev())
            .map(|(_, values)| {
                let len = values.len() as u64;
                let at = left % len;
                left /= len;
                at as usize
            })
            .collect();
        places.reverse();
        places
    }

    /// Returns the value of a key at a point.
    pub fn value(&self, key: usize, point: u64) -> Option<&Value> {
        self.keys[key].1[self.places(point)[key]].as_ref()
    }

    /// Returns the GPU of a point, if the grid names one.
    pub fn device(&self, point: u64) -> Option<&str> {
        let key = self.keys.iter().position(|(key, _)| key == DEVICE)?;
        self.value(key, point)?.as_str()
    }

    /// Returns the changes at a point, as of a plan.
    pub fn changes(&self, point: u64) -> Result<Changes, String> {
        let places = self.places(point);
        let of_plan = self.keys.iter().zip(places).filter(|((key, _), _)| key != DEVICE);
        let table: Table =
            of_plan.filter_map(|((key, values), at)| Some((key.clone(), values[at].clone()?))).collect();
        plan::parse(&table)
    }

    /// Returns the keys and values as one text, which identifies the grid.
    pub fn text(&self) -> String {
        let each = self.keys.iter().map(|(key, values)| {
            let values: Vec<String> = values
                .iter()
                .map(|value| value.as_ref().map_or_else(|| format!("\"{AS_IS}\""), Value::to_string))
                .collect();
            format!("{key} = [{}]", values.join(", "))
        });
        each.collect::<Vec<_>>().join("\n")
    }

    /// Returns the keys of a point with their values, as text.
    pub fn words(&self, point: u64) -> Vec<(String, String)> {
        let places = self.places(point);
        let each = self.keys.iter().zip(places);
        each.map(|((key, values), at)| (key.clone(), value_text(values[at].as_ref()))).collect()
    }
}

/// Returns a value as text: names of a list are joined by `+`.
pub fn value_text(value: Option<&Value>) -> String {
    match value {
        None => AS_IS.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(all)) => all.iter().map(|one| value_text(Some(one))).collect::<Vec<_>>().join("+"),
        Some(other) => other.to_string(),
    }
}

/// Checks that a key can have a value.
fn checked(key: &str, value: &Value) -> Result<(), String> {
    if key != DEVICE {
        let table: Table = [(key.to_owned(), value.clone())].into_iter().collect();
        return plan::parse(&table).map(|_| ());
    }
    match value.as_str() {
        Some(_) => Ok(()),
        None => Err(format!("`{DEVICE}` is a list of names, and {value} is none")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(text: &str, shard: Option<Shard>) -> Result<Grid, String> {
        Grid::from_table(&text.parse().expect("TOML"), shard)
    }

    #[test]
    fn points_are_the_product_of_the_lists() {
        let grid = grid("batch = [64, 128, \"as-is\"]\ncuda-graph = [false, true]", None).expect("a grid");
        assert_eq!(grid.points, 6);
        let batches: Vec<_> = (0..6)
            .map(|point| grid.changes(point).expect("changes"))
            .map(|c| (c.batch, c.cuda_graph))
            .collect();
        let expected = [(Some(64), false), (Some(64), true), (Some(128), false), (Some(128), true)];
        assert_eq!(batches[..4], expected);
        assert_eq!(batches[4..], [(None, false), (None, true)]);
    }

    #[test]
    fn shards_share_the_points() {
        let grid = grid("batch = [1, 2, 3, 4, 5, 6, 7]", None).expect("a grid");
        let mut all: Vec<u64> = (1..=3).flat_map(|part| grid.shard(Some(Shard { part, of: 3 }))).collect();
        assert_eq!(grid.shard(Some(Shard { part: 2, of: 3 })), [1, 4]);
        all.sort_unstable();
        assert_eq!(all, grid.shard(None));
    }

    #[test]
    fn what_is_no_grid_is_refused() {
        let refused = |text: &str| grid(text, None).expect_err("refused");
        assert!(refused("bacth = [1]").contains("batch"), "{}", refused("bacth = [1]"));
        assert!(refused("batch = 1").contains("list"));
        assert!(refused("batch = []").contains("no value"));
        assert!(refused("batch = [\"many\"]").contains("whole number"));
        assert!(refused("").contains("no key"));
        let wide = |key: &str| {
            format!("{key} = [{}]\n", (1..=1000).map(|n| n.to_string()).collect::<Vec<_>>().join(","))
        };
        let billion = wide("batch") + &wide("batch-dim") + &wide("host-speed");
        assert!(refused(&billion).contains("1000000000 points"), "{}", refused(&billion));
    }
}
