//! Prints the names of all known ops, one per line: the input of the table of schemas.

fn main() {
    for (name, _) in steptime_aten::OpSet::standard().iter() {
        println!("{name}");
    }
}
