//! Checks of descriptions.

use super::file::{Architecture, Description, Interaction, Tower};
use super::table_placement;
use crate::error::Problem;
use crate::optimizer::{Form, Rule};

/// Maximum number of tables, layers and features of a model.
const MANY: i64 = 10_000;
/// Maximum of other numbers: a product of two fits in a 128-bit integer.
const MOST: i64 = 1 << 40;
/// Message for numbers above [`MOST`].
const TOO_MANY: &str = "the maximum is 1099511627776";
/// Maximum number of elements of a tensor.
const LARGEST: i128 = 1 << 44;

pub(super) fn check(of: &Description) -> Result<(), Problem> {
    numbers(of)?;
    optimizer(of)?;
    match of.model {
        Architecture::TwoTowers => two_towers(of),
        _ => one_output(of),
    }?;
    sizes(of)?;
    table_placement::check(of)
}

fn between(key: &str, found: i64, least: i64, most: i64, wanted: &'static str) -> Result<(), Problem> {
    if (least..=most).contains(&found) {
        Ok(())
    } else {
        let wanted = if found > MOST { TOO_MANY } else { wanted };
        Err(Problem::Number { key: key.into(), found, wanted })
    }
}

fn numbers(of: &Description) -> Result<(), Problem> {
    between("batch", of.batch, 1, MOST, "a step takes one sample or more")?;
    between("dense", of.dense, 0, MOST, "a sample has no, one or more dense features")?;
    for (key, widths) in [("bottom_mlp", &of.bottom_mlp), ("top_mlp", &of.top_mlp)] {
        for (at, &width) in widths.iter().enumerate() {
            between(&format!("{key}[{at}]"), width, 1, MOST, "a layer is one unit wide or wider")?;
        }
        between(
            &format!("{key} (its length)"),
            widths.len() as i64,
            0,
            MANY,
            "an MLP has up to 10,000 layers",
        )?;
    }
    if of.tables.is_empty() {
        let wanted = "one embedding table or more, `tables = [{ rows = 1000, columns = 16, lookups = 1 }]`";
        return Err(Problem::Missing { model: of.model.name(), key: "tables", wanted });
    }
    let mut count = 0_i64;
    for (at, table) in of.tables.iter().enumerate() {
        let key = |name: &str| format!("tables[{at}].{name}");
        between(&key("rows"), table.rows, 1, MOST, "a table has one row or more")?;
        between(&key("columns"), table.columns, 1, MOST, "a table has one column or more")?;
        between(&key("lookups"), table.lookups, 1, MOST, "a sample looks up one row or more")?;
        between(&key("count"), table.count, 1, MANY, "from 1 to 10,000 equal tables")?;
        count = count.saturating_add(table.count);
    }
    between("tables (all together)", count, 1, MANY, "up to 10,000 tables")?;
    for (key, value) in [("cross_layers", of.cross_layers), ("cross_rank", of.cross_rank)] {
        between(key, value.unwrap_or(1), 1, MANY, "from 1 to 10,000")?;
    }
    Ok(())
}

fn optimizer(of: &Description) -> Result<(), Problem> {
    let updates = of.updates();
    if of.sparse != Some(true) {
        return Ok(());
    }
    let why = match (updates.name, updates.form) {
        (Rule::Adam | Rule::AdamW | Rule::Adagrad, _) => "updates all rows of a table here",
        (Rule::Sgd, Form::Fused) => "has no fused form for them",
        (Rule::Sgd, _) => return Ok(()),
    };
    let name = format!("{:?}", updates.name).to_lowercase();
    Err(Problem::Conflict(format!(
        "`sparse = true` and optimizer {name}: it {why}; set sparse = false, or name = \"sgd\""
    )))
}

/// Checks a model with one output per sample.
fn one_output(of: &Description) -> Result<(), Problem> {
    let model = of.model.name();
    let foreign =
        |key: &'static str, there: bool| if there { Err(Problem::Foreign { model, key }) } else { Ok(()) };
    if of.top_mlp.last() != Some(&1) {
        let wanted = "widths of its layers, of which the last is 1";
        return Err(Problem::Missing { model, key: "top_mlp", wanted });
    }
    foreign("tables.tower", of.tables.iter().any(|table| table.tower.is_some()))?;
    let has_bottom = matches!(of.model, Architecture::Dlrm | Architecture::DcnV2);
    foreign("bottom_mlp", !has_bottom && !of.bottom_mlp.is_empty())?;
    foreign("interaction", of.model != Architecture::Dlrm && of.interaction.is_some())?;
    let crosses = of.model == Architecture::DcnV2 || of.interaction == Some(Interaction::Cross);
    foreign("cross_layers", !crosses && of.cross_layers.is_some())?;
    foreign("cross_rank", !crosses && of.cross_rank.is_some())?;
    if !of.bottom_mlp.is_empty() && of.dense == 0 {
        let wanted = "the number of dense features for its bottom MLP";
        return Err(Problem::Missing { model, key: "dense", wanted });
    }
    if of.model == Architecture::Dlrm {
        dlrm(of)?;
    }
    if of.model == Architecture::DeepFm {
        equal_columns(of)?;
    }
    Ok(())
}

/// Checks the vectors of a DLRM: multiplied vectors need one width.
fn dlrm(of: &Description) -> Result<(), Problem> {
    let meets = matches!(of.interaction, None | Some(Interaction::Dot | Interaction::Fm));
    if meets && of.dense > 0 && of.bottom_mlp.is_empty() {
        let wanted = "widths of the layers for dense features, the last as wide as the tables";
        return Err(Problem::Missing { model: "dlrm", key: "bottom_mlp", wanted });
    }
    let features = of.each_table().count() + usize::from(of.dense > 0);
    if meets && features < 2 {
        return Err(Problem::Conflict(
            "a single feature has no other to interact with: add tables, or dense features".into(),
        ));
    }
    Ok(())
}

fn equal_columns(of: &Description) -> Result<(), Problem> {
    let first = of.tables[0].columns;
    match of.tables.iter().position(|table| table.columns != first) {
        None => Ok(()),
        Some(at) => Err(Problem::Conflict(format!(
            "a factorization machine multiplies vectors of one width: tables[{at}].columns is {}, tables[0].columns is {first}",
            of.tables[at].columns
        ))),
    }
}

fn two_towers(of: &Description) -> Result<(), Problem> {
    let model = of.model.name();
    let has = |tower: Tower| of.tables.iter().any(|table| table.tower == Some(tower));
    if !has(Tower::Query) || !has(Tower::Item) || of.tables.iter().any(|table| table.tower.is_none()) {
        let wanted = "\"query\" or \"item\" of every table, and one of each at least";
        return Err(Problem::Missing { model, key: "tables.tower", wanted });
    }
    if of.top_mlp.is_empty() {
        return Err(Problem::Missing { model, key: "top_mlp", wanted: "widths of the layers of each tower" });
    }
    let there = [
        ("dense", of.dense > 0),
        ("bottom_mlp", !of.bottom_mlp.is_empty()),
        ("interaction", of.interaction.is_some()),
        ("cross_layers", of.cross_layers.is_some()),
        ("cross_rank", of.cross_rank.is_some()),
        ("loss", of.loss.is_some()),
    ];
    match there.into_iter().find(|(_, there)| *there) {
        Some((key, _)) => Err(Problem::Foreign { model, key }),
        None => Ok(()),
    }
}

/// Checks that the largest tensors are not too large: weights of layers, tables, and activations.
fn sizes(of: &Description) -> Result<(), Problem> {
    let wide = |a: i64, b: i64| i128::from(a) * i128::from(b);
    let columns: i128 = of.each_table().map(|table| i128::from(table.columns)).sum();
    let layer = of.bottom_mlp.iter().chain(&of.top_mlp).chain([&of.dense]).max().copied().unwrap_or(1);
    let layer = i128::from(layer);
    let features = of.each_table().count() as i128 + 1;
    let multiplies =
        of.model == Architecture::Dlrm && matches!(of.interaction, None | Some(Interaction::Dot));
    // The width of all features together, the input of the layers after them.
    let features = if multiplies { features * features } else { columns + i128::from(of.dense) };
    let widest = layer.max(features);
    let crosses = of.model == Architecture::DcnV2 || of.interaction == Some(Interaction::Cross);
    let weights = if crosses { features * of.cross_rank.map_or(features, i128::from) } else { 0 };
    let mut largest = weights.max(layer * widest).max(i128::from(of.batch) * widest);
    if of.model == Architecture::TwoTowers {
        largest = largest.max(wide(of.batch, of.batch));
    }
    for table in of.each_table() {
        largest = largest.max(wide(table.rows, table.columns));
        largest = largest.max(wide(of.batch, table.lookups) * i128::from(table.columns));
    }
    if largest > LARGEST {
        return Err(Problem::Conflict(
            "a tensor of the step would have more than 10^13 elements: check `batch` and the sizes of layers and tables".into(),
        ));
    }
    Ok(())
}
