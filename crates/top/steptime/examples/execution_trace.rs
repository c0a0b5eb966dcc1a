//! Predicts a step without times, from its execution trace alone, on a given GPU and host.

fn main() -> Result<(), steptime::Error> {
    let step = steptime::open("examples/dlrm_default_2048/et.json.gz")?;
    let typical = step.predict().on("h200")?.run()?;
    let fast = step.predict().on("h200")?.slower(1.0).run()?;
    println!("{} on a typical host, {} on that of the shipped profile", typical.step, fast.step);
    for doubt in &typical.doubts {
        println!("! {}", doubt.text);
    }
    Ok(())
}
