//! The names of all known ops, one a line: what the table of schemas is made of.

fn main() {
    for (name, _) in steptime_aten::OpSet::standard().iter() {
        println!("{name}");
    }
}
