//! Prints the names of all known ops, one a line.

fn main() {
    for op in steptime_aten::registry::all() {
        for name in op.names {
            println!("{name}");
        }
    }
}
