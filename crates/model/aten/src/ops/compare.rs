//! Comparisons and logic: truth values as results.

use crate::ops::pointwise::rows;

rows! {
    "eq" Light 2 [truth]: "aten::eq" "aten::eq_" "aten::ne" "aten::ne_";
    "lt" Light 2 [truth]: "aten::lt" "aten::lt_" "aten::le" "aten::le_" "aten::gt" "aten::gt_" "aten::ge" "aten::ge_";
    "logical_and" Light 2 [truth calls_out]: "aten::logical_and" "aten::logical_or" "aten::logical_xor";
    "isin" Light 1 [truth]: "aten::isposinf" "aten::isneginf";
}
