use super::{Form, Wrong};
use serde_json::{Map, Value};

/// Characters of a wrong value that a message shows.
const SHOWN_MAX: usize = 40;

/// Writes a text in quotes.
pub(crate) fn text(out: &mut String, text: &str) {
    out.push_str(&serde_json::to_string(text).expect("every text can be JSON"));
}

/// Writes an object, its fields in this order.
pub(crate) fn object(out: &mut String, fields: &[(&str, &dyn Form)]) {
    out.push('{');
    for (index, (name, value)) in fields.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        text(out, name);
        out.push(':');
        value.write(out);
    }
    out.push('}');
}

/// The word of an enum's variant, and what it holds, if anything.
pub(crate) fn tagged(value: &Value) -> Result<(&str, Option<&Value>), Wrong> {
    match value {
        Value::String(word) => Ok((word, None)),
        Value::Object(map) => {
            let mut fields = map.iter();
            match (fields.next(), fields.next()) {
                (Some((word, content)), None) => Ok((word, Some(content))),
                _ => Err(Wrong::new(format!("{} fields instead of one", map.len()))),
            }
        }
        other => Err(Wrong::new(format!(
            "{} is neither a word nor an object",
            shown(other)
        ))),
    }
}

/// No variant has this word, or none with such a content.
pub(crate) fn unknown(word: &str, words: &[&str]) -> Wrong {
    let word = shown_text(word);
    Wrong::new(format!(
        "\"{word}\" is unknown here, or has the wrong content; it may be {}",
        words.join(", ")
    ))
}

/// A value for a message, cut.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => format!("\"{}\"", shown_text(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn shown_text(text: &str) -> String {
    text.chars()
        .take(SHOWN_MAX)
        .flat_map(char::escape_debug)
        .collect()
}

/// The fields of an object, each to be taken once, and none left.
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    taken: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(value: &'a Value) -> Result<Self, Wrong> {
        match value {
            Value::Object(map) => Ok(Self {
                map,
                taken: Vec::new(),
            }),
            other => Err(Wrong::new(format!("{} is no object", shown(other)))),
        }
    }

    pub(crate) fn take<T: Form>(&mut self, name: &'static str) -> Result<T, Wrong> {
        let value = self
            .map
            .get(name)
            .ok_or_else(|| Wrong::new(format!("the field \"{name}\" is missing")))?;
        self.taken.push(name);
        T::read(value).map_err(|wrong| wrong.within(name))
    }

    pub(crate) fn done(self) -> Result<(), Wrong> {
        let unknown = self.map.keys().find(|key| !self.taken.contains(&key.as_str()));
        unknown.map_or(Ok(()), |key| {
            Err(Wrong::new(format!(
                "the field \"{}\" is unknown",
                shown_text(key)
            )))
        })
    }
}
