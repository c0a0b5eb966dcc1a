//! Values as Python writes them.

use serde_json::Value;

/// Returns a value as Python writes it.
pub fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        Value::Array(all) => format!("[{}]", all.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(all) => {
            let entries = all.iter().map(|(key, value)| format!("'{key}': {}", literal(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}
