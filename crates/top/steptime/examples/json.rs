//! Prints the answer about a step as JSON, like `steptime predict --device h200 --json`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let step = steptime::open("examples/dlrm_default_2048")?;
    let answer = step.predict().on("h200")?.answer()?;
    println!("{}", serde_json::to_string_pretty(&answer)?);
    Ok(())
}
