//! Prints the answer about a step as JSON, like `steptime predict --device h200 --json`.

use steptime::answers::PredictionReport;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let step = steptime::open("examples/dlrm_default_2048")?;
    let answer = PredictionReport::from_query(&step.predict().on("h200")?)?;
    println!("{}", serde_json::to_string_pretty(&answer)?);
    Ok(())
}
