//! Layout of rows by element type, for launches and device code.

use steptime_launch::RowLayout;
use steptime_ops::embedding::{Element, Scale};

/// Rows of `dim` columns, whose starts are multiples of `align` bytes.
pub(super) fn layout(dim: usize, element: Element, align: usize) -> RowLayout {
    let header = header(element);
    RowLayout { dim, bits: bits(element), header, payload: element.row_bytes(dim) - header, align }
}

/// Bytes before the values of a row.
pub(super) fn header(element: Element) -> usize {
    match element {
        Element::F32 | Element::F16 | Element::Bf16 => 0,
        Element::Int8(scale) | Element::Int4(scale) => scale.bytes(),
    }
}

fn bits(element: Element) -> usize {
    match element {
        Element::F32 => 32,
        Element::F16 | Element::Bf16 => 16,
        Element::Int8(_) => 8,
        Element::Int4(_) => 4,
    }
}

/// The element's name in device code.
pub(super) fn device_name(element: Element) -> &'static str {
    match element {
        Element::F32 => "F32",
        Element::F16 => "F16",
        Element::Bf16 => "BF16",
        Element::Int8(Scale::F16) => "INT8_F16",
        Element::Int8(Scale::F32) => "INT8_F32",
        Element::Int4(Scale::F16) => "INT4_F16",
        Element::Int4(Scale::F32) => "INT4_F32",
    }
}

#[cfg(test)]
mod tests {
    use steptime_launch::Lanes;

    use super::*;

    #[test]
    fn rows_of_all_elements_are_held_whole() {
        for element in Element::ALL {
            for dim in 1..700 {
                for align in [1, 2, 4, 8, 16, element.pitch(dim)] {
                    let align = align.max(element.align());
                    let shape = Lanes::aligned(&layout(dim, element, align));
                    assert!(shape.lanes * shape.passes * shape.ranges >= shape.vectors, "{shape:?}");
                    assert!(shape.vectors * shape.values >= dim, "{shape:?}");
                    assert!(shape.busy() >= 0.65, "{element} {dim}: {shape:?} {}", shape.busy());
                    // No load extends past the row by more than its padding to the load's size.
                    assert!(align.is_multiple_of(shape.bytes) && header(element).is_multiple_of(shape.bytes));
                }
            }
        }
    }
}
