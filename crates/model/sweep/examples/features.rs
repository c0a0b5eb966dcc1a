//! Prints the rows of sweeps with formula and features, as CSV: to explore a sweep with other tools.
//!
//! ```sh
//! cargo run --release -p steptime-sweep --example features -- sweep.parquet gemm > gemm.csv
//! ```

use std::io::{BufWriter, Write};

use steptime_aten::OpSet;
use steptime_cost::device::families;
use steptime_cost::device::variant::variant;
use steptime_sweep::{observe, read_all, spec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (paths, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.ends_with(".parquet"));
    let sweeps = read_all(&paths)?;
    let first = sweeps.first().ok_or("give at least one sweep")?;
    let observed = observe(&sweeps, &OpSet::standard());
    let spec = spec(first, &observed)?;
    eprintln!(
        "{spec:#?}\nunknown: {:?}\nunexpected: {:?}\nunread: {:?}",
        observed.unknown, observed.unexpected, observed.unread
    );
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut last = "";
    for (row, &(sweep, at)) in observed.observations.iter().zip(&observed.rows) {
        let family = families::find(&row.call.kernel);
        if !wanted.is_empty() && !wanted.iter().any(|name| name == family.name()) {
            continue;
        }
        if last != family.name() && wanted.len() == 1 {
            last = family.name();
            let names = family.feature_names().join(",");
            writeln!(
                out,
                "family,op,variant,case,state,us,us_min,us_max,analytic,paper,{names},dims,kernels"
            )?;
        }
        let source = &sweeps[sweep].rows[at];
        let mut features = Vec::new();
        family.features(&row.call, &row.ctx, &spec, &mut features);
        let analytic = family.analytic(&row.call, &row.ctx, &spec);
        let paper = family.paper(&row.call, &row.ctx, &spec).map_or(String::new(), |us| us.to_string());
        let features: Vec<String> = features.iter().map(f32::to_string).collect();
        let (name, state, kind) = (family.name(), source.state, variant(&row.call));
        let times = format!("{},{},{}", source.us, source.us_min, source.us_max);
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "'"));
        let (dims, kernels) = (quoted(&source.dims), quoted(&source.kernels));
        let features = features.join(",");
        writeln!(
            out,
            "{name},{},{kind},{},{state:?},{times},{analytic},{paper},{features},{dims},{kernels}",
            row.op, row.case
        )?;
    }
    Ok(())
}
