//! Predicts the recorded step without a profiler, and prints the causes of GPU idle time and the longest ops.

fn main() -> Result<(), steptime::Error> {
    let step = steptime::open("examples/dlrm_default_2048")?;
    let p = step.predict().run()?;
    println!("{}: {}, 90 % interval {} to {}", step.name, p.step, p.interval[0], p.interval[1]);
    for (cause, time) in p.idle_by_cause.iter() {
        println!("  idle, {}: {time}", cause.name());
    }
    for op in p.ops.iter().take(3) {
        println!("  {} x {}: {} on the host, {} on the device", op.count, op.name, op.host, op.device);
    }
    Ok(())
}
