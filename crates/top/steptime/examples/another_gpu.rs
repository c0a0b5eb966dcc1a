//! Predicts the same step on every GPU with a shipped profile.

fn main() -> Result<(), steptime::Error> {
    let step = steptime::open("examples/resnet50_32")?;
    for name in steptime::devices() {
        let p = step.predict().on(name)?.run()?;
        println!("{name:<10} {}, of which the GPU works {}", p.step, p.active);
    }
    Ok(())
}
