//! Owners in a compact form, which is how they are stored: as JSON they would be nearly half of a stored pod.
//!
//! ```text
//! owners    entry*
//! entry     flags, text of the version, [set], text of the manager, [text of the subresource], [time]
//! set       element+, the last one marked; behind an element the set below it, if there is one
//! element   two bytes: word << 3 | shape << 1 | whether it is the last; spelled out if the word is 0
//! text      two bytes: word; spelled out if it is 0
//! spelled   length as in protobuf, and the text as it stands between the quotes of JSON
//! time      its fourteen digits, two to a byte
//! ```
//!
//! A word is the number of a line of `facts/words.txt`, so lines are added there and never moved. What follows from
//! this form is written as JSON without a tree in between, since that is done for every object of every list.

use super::element::Element;
use super::managers::{Identity, Managed, Managers, Operation};
use super::set::{Entry, FieldSet, MAX_DEPTH};
use super::wire::{push_escaped, read_element, write_element};
use bytes::{BufMut, BytesMut};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Flags of an entry.
const APPLIED: u8 = 1;
const FIELDS: u8 = 2;
const SUBRESOURCE: u8 = 4;
const TIME: u8 = 8;
/// The time is none that this program writes, and spelled out.
const ODD_TIME: u8 = 16;

/// Shapes of an element.
const LEAF: u16 = 0;
const BRANCH: u16 = 1;
/// Both a member and the beginning of longer paths.
const BOTH: u16 = 2;

const SPELLED: u16 = 0;

/// Where the digits of a time are, and what stands between them.
const TIME_FORM: &[u8; 20] = b"0000-00-00T00:00:00Z";

/// Bytes that are no owners as this program packs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the owners of its fields are damaged")]
pub struct Damaged;

struct Word {
    text: &'static str,
    element: Element,
    /// The name of a field of JSON, with what stands around it: `"f:spec":`.
    json: Box<str>,
}

struct Words {
    /// The first one has the number 1.
    all: Vec<Word>,
    fields: HashMap<&'static str, u16>,
    /// Elements other than fields.
    items: HashMap<&'static str, u16>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let lines = include_str!("../../facts/words.txt").lines().filter(|line| !line.starts_with('#'));
    let mut words = Words { all: Vec::new(), fields: HashMap::new(), items: HashMap::new() };
    for (text, number) in lines.zip(1..) {
        let element = match text.starts_with("k:") || text.starts_with("v:") {
            true => {
                words.items.insert(text, number);
                read_element(text).ok().flatten().expect("it is written as elements are")
            }
            false => {
                words.fields.insert(text, number);
                Element::field(text)
            }
        };
        let mut written = String::new();
        write_element(&element, &mut written);
        let mut json = String::from("\"");
        push_escaped(&written, &mut json);
        json.push_str("\":");
        words.all.push(Word { text, element, json: json.into() });
    }
    words
});

impl Words {
    fn get(&self, number: u16) -> Result<&Word, Damaged> {
        self.all.get(usize::from(number).wrapping_sub(1)).ok_or(Damaged)
    }
}

impl Managers {
    /// Appends the compact form.
    pub fn pack(&self, out: &mut Vec<u8>) {
        self.entries.iter().for_each(|entry| pack_entry(entry, out));
    }

    pub fn unpack(packed: &[u8]) -> Result<Self, Damaged> {
        let mut reader = Reader(packed);
        let mut entries = Vec::new();
        while !reader.0.is_empty() {
            entries.push(reader.entry()?);
        }
        Ok(Managers { entries })
    }
}

fn pack_entry(entry: &Managed, out: &mut Vec<u8>) {
    let time = entry.time.as_deref().map(|time| (time, digits_of(time)));
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.push(
        flag(entry.owner.operation == Operation::Apply, APPLIED)
            | flag(!entry.fields.is_empty(), FIELDS)
            | flag(!entry.owner.subresource.is_empty(), SUBRESOURCE)
            | flag(time.is_some(), TIME)
            | flag(matches!(time, Some((_, None))), ODD_TIME),
    );
    pack_text(&entry.owner.api_version, out);
    pack_set(&entry.fields, out, &mut String::new());
    pack_text(&entry.owner.manager, out);
    if !entry.owner.subresource.is_empty() {
        pack_text(&entry.owner.subresource, out);
    }
    match time {
        Some((_, Some(digits))) => out.extend_from_slice(&digits),
        Some((time, None)) => pack_text(time, out),
        None => {}
    }
}

fn pack_text(text: &str, out: &mut Vec<u8>) {
    match WORDS.fields.get(text) {
        Some(word) => out.extend_from_slice(&word.to_le_bytes()),
        None => {
            out.extend_from_slice(&SPELLED.to_le_bytes());
            spell(&["", text], out);
        }
    }
}

fn pack_set(set: &FieldSet, out: &mut Vec<u8>, scratch: &mut String) {
    for (at, entry) in set.entries.iter().enumerate() {
        let shape = match (entry.member, entry.children.is_empty()) {
            (_, true) => LEAF,
            (false, false) => BRANCH,
            (true, false) => BOTH,
        };
        let rest = shape << 1 | u16::from(at + 1 == set.entries.len());
        let word = match &entry.element {
            Element::Field(name) => WORDS.fields.get(&**name),
            element @ (Element::Key(_) | Element::Value(_) | Element::Index(_)) => {
                scratch.clear();
                write_element(element, scratch);
                WORDS.items.get(scratch.as_str())
            }
        };
        out.extend_from_slice(&(word.unwrap_or(&SPELLED) << 3 | rest).to_le_bytes());
        match (word, &entry.element) {
            (Some(_), _) => {}
            (None, Element::Field(name)) => spell(&["f:", name], out),
            (None, _) => spell(&["", scratch], out),
        }
        pack_set(&entry.children, out, scratch);
    }
}

/// Appends a text, given in two parts.
fn spell(parts: &[&str; 2], out: &mut Vec<u8>) {
    let mut json = String::with_capacity(parts[1].len() + 16);
    parts.iter().for_each(|part| push_escaped(part, &mut json));
    let mut length = json.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(json.as_bytes());
}

/// The digits of a time as this program writes times; none if it is another text.
fn digits_of(time: &str) -> Option<[u8; 7]> {
    let mut digits = [0; 7];
    let mut count = 0;
    let well_formed = time.len() == TIME_FORM.len()
        && time.bytes().zip(TIME_FORM).all(|(byte, form)| {
            if *form != b'0' {
                return byte == *form;
            }
            let digit = byte.wrapping_sub(b'0');
            digits[count / 2] = digits[count / 2] << 4 | digit & 15;
            count += 1;
            digit < 10
        });
    well_formed.then_some(digits)
}

fn time_of(digits: &[u8]) -> [u8; 20] {
    let mut time = *TIME_FORM;
    let places = time.iter_mut().filter(|form| **form == b'0');
    for (count, place) in places.enumerate() {
        let pair = digits[count / 2];
        *place = b'0' + if count % 2 == 0 { pair >> 4 } else { pair & 15 };
    }
    time
}

/// Appends the JSON of `metadata.managedFields`.
pub fn write_json(packed: &[u8], out: &mut BytesMut) -> Result<(), Damaged> {
    let mut reader = Reader(packed);
    let mut before = b'[';
    while !reader.0.is_empty() {
        out.put_u8(before);
        reader.write_entry(out)?;
        before = b',';
    }
    out.put_slice(if before == b'[' { b"[]" } else { b"]" });
    Ok(())
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Damaged> {
        self.take(1).map(|taken| taken[0])
    }

    fn two_bytes(&mut self) -> Result<u16, Damaged> {
        self.take(2).map(|taken| u16::from_le_bytes([taken[0], taken[1]]))
    }

    /// A text as it stands between quotes.
    fn spelled(&mut self) -> Result<&'a str, Damaged> {
        let (mut length, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
            if shift > 28 {
                return Err(Damaged);
            }
        }
        std::str::from_utf8(self.take(length)?).map_err(|_| Damaged)
    }

    fn text(&mut self) -> Result<&'a str, Damaged> {
        match self.two_bytes()? {
            SPELLED => self.spelled(),
            word => Ok(WORDS.get(word)?.text),
        }
    }

    fn time(&mut self, flags: u8) -> Result<Option<String>, Damaged> {
        Ok(match (flags & TIME, flags & ODD_TIME) {
            (0, _) => None,
            (_, 0) => Some(String::from_utf8_lossy(&time_of(self.take(7)?)).into_owned()),
            _ => Some(unescaped(self.text()?)?),
        })
    }

    fn entry(&mut self) -> Result<Managed, Damaged> {
        let flags = self.byte()?;
        let api_version = unescaped(self.text()?)?;
        let fields = if flags & FIELDS == 0 { FieldSet::EMPTY } else { self.set(0)? };
        let manager = unescaped(self.text()?)?;
        let subresource = if flags & SUBRESOURCE == 0 { String::new() } else { unescaped(self.text()?)? };
        let operation = if flags & APPLIED == 0 { Operation::Update } else { Operation::Apply };
        let owner = Identity { manager, operation, api_version, subresource };
        Ok(Managed { owner, time: self.time(flags)?, fields })
    }

    fn set(&mut self, depth: usize) -> Result<FieldSet, Damaged> {
        if depth > MAX_DEPTH {
            return Err(Damaged);
        }
        let mut entries = Vec::new();
        loop {
            let code = self.two_bytes()?;
            let element = match code >> 3 {
                SPELLED => read_element(&unescaped(self.spelled()?)?).ok().flatten().ok_or(Damaged)?,
                word => WORDS.get(word)?.element.clone(),
            };
            let shape = code >> 1 & 3;
            let children = if shape == LEAF { FieldSet::EMPTY } else { self.set(depth + 1)? };
            entries.push(Entry { element, member: shape != BRANCH, children });
            if code & 1 == 1 {
                entries.shrink_to_fit();
                return Ok(FieldSet { entries });
            }
        }
    }

    fn write_entry(&mut self, out: &mut BytesMut) -> Result<(), Damaged> {
        let flags = self.byte()?;
        out.put_slice(b"{\"apiVersion\":\"");
        out.put_slice(self.text()?.as_bytes());
        out.put_slice(b"\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{");
        match flags & FIELDS {
            0 => out.put_u8(b'}'),
            _ => self.write_set(out, 0)?,
        }
        let manager = self.text()?;
        if !manager.is_empty() {
            out.put_slice(b",\"manager\":\"");
            out.put_slice(manager.as_bytes());
            out.put_u8(b'"');
        }
        out.put_slice(if flags & APPLIED == 0 { b",\"operation\":\"Update\"" } else { b",\"operation\":\"Apply\"" });
        if flags & SUBRESOURCE != 0 {
            out.put_slice(b",\"subresource\":\"");
            out.put_slice(self.text()?.as_bytes());
            out.put_u8(b'"');
        }
        if flags & TIME != 0 {
            out.put_slice(b",\"time\":\"");
            match flags & ODD_TIME {
                0 => out.put_slice(&time_of(self.take(7)?)),
                _ => out.put_slice(self.text()?.as_bytes()),
            }
            out.put_u8(b'"');
        }
        out.put_u8(b'}');
        Ok(())
    }

    /// Appends the inside of an object, and its closing brace.
    fn write_set(&mut self, out: &mut BytesMut, depth: usize) -> Result<(), Damaged> {
        if depth > MAX_DEPTH {
            return Err(Damaged);
        }
        loop {
            let code = self.two_bytes()?;
            match code >> 3 {
                SPELLED => {
                    out.put_u8(b'"');
                    out.put_slice(self.spelled()?.as_bytes());
                    out.put_slice(b"\":");
                }
                word => out.put_slice(WORDS.get(word)?.json.as_bytes()),
            }
            match code >> 1 & 3 {
                LEAF => out.put_slice(b"{}"),
                shape => {
                    out.put_slice(if shape == BOTH { b"{\".\":{}," } else { b"{" });
                    self.write_set(out, depth + 1)?;
                }
            }
            if code & 1 == 1 {
                out.put_u8(b'}');
                return Ok(());
            }
            out.put_u8(b',');
        }
    }
}

/// What stands between quotes, as a text.
fn unescaped(json: &str) -> Result<String, Damaged> {
    match json.contains('\\') {
        false => Ok(json.to_owned()),
        true => serde_json::from_str(&format!("\"{json}\"")).map_err(|_| Damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Value, json};
    use proptest::prelude::*;

    fn packed(managers: &Managers) -> Vec<u8> {
        let mut out = Vec::new();
        managers.pack(&mut out);
        out
    }

    fn written(packed: &[u8]) -> Result<String, Damaged> {
        let mut out = BytesMut::new();
        write_json(packed, &mut out)?;
        Ok(String::from_utf8(out.to_vec()).unwrap())
    }

    fn entry(manager: &str, time: &str, subresource: &str, fields: &Value) -> Value {
        let mut entry = json!({
            "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields, "operation": "Update",
        });
        for (name, text) in [("manager", manager), ("subresource", subresource), ("time", time)] {
            if !text.is_empty() {
                entry[name] = text.into();
            }
        }
        entry
    }

    #[test]
    fn owners_are_the_same_after_packing_and_a_fraction_of_their_json() {
        let pod = json!({
            "f:metadata": { "f:labels": { ".": {}, "f:app": {}, "f:example.com/\"quoted\"": {} } },
            "f:spec": { "f:containers": { "k:{\"name\":\"web\"}": {
                ".": {}, "f:image": {}, "f:ports": { ".": {}, "k:{\"containerPort\":8080,\"protocol\":\"TCP\"}": {
                    ".": {}, "f:containerPort": {}, "f:protocol": {},
                } },
            } } },
        });
        let status =
            json!({ "f:status": { "f:conditions": { "k:{\"type\":\"Ready\"}": { ".": {}, "f:status": {} } } } });
        let mut applied = entry("helm", "2026-01-02T03:04:05Z", "", &json!({}));
        applied["operation"] = "Apply".into();
        let list = json!([
            applied,
            entry("", "", "", &json!({ "f:data": {} })),
            entry("a \"strange\" manager", "2026-01-02T03:04:05Z", "", &pod),
            entry("kubelet", "2026-01-02T03:04:06Z", "status", &status),
            entry("odd", "yesterday", "oddities", &status),
        ]);
        let managers = Managers::decode(Some(&list)).unwrap();
        let packed = packed(&managers);
        assert_eq!(Managers::unpack(&packed).unwrap(), managers);
        let json = written(&packed).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), list);
        assert!(packed.len() * 4 < json.len(), "{} of {}", packed.len(), json.len());
    }

    #[test]
    fn items_stand_in_the_order_of_their_keys_and_not_of_their_texts() {
        let ports = json!({ "k:{\"port\":443}": {}, "k:{\"port\":80}": {}, "f:x": {} });
        let managers = Managers::decode(Some(&json!([entry("a", "", "", &ports)]))).unwrap();
        let expected = r#"[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:x":{},"k:{\"port\":80}":{},"k:{\"port\":443}":{}},"manager":"a","operation":"Update"}]"#;
        assert_eq!(written(&packed(&managers)).unwrap(), expected);
        assert_eq!(written(&[]).unwrap(), "[]");
    }

    #[test]
    fn only_times_as_this_program_writes_them_are_kept_as_digits() {
        for time in ["2026-11-18T03:38:25Z", "0000-99-99T99:99:99Z"] {
            assert_eq!(time_of(&digits_of(time).unwrap()), time.as_bytes());
        }
        for time in
            ["", "2026-11-18T03:38:25", "2026-11-18T03:38:25.5Z", "2026-11-18 03:38:25Z", "2026-11-18T03:38:2xZ"]
        {
            assert_eq!(digits_of(time), None, "{time}");
        }
    }

    /// Objects are stored with the places of words. A failure here means that a word was moved, changed or taken out.
    #[test]
    fn words_are_only_added_at_the_end() {
        const COUNT: usize = 1071;
        const DIGEST: u64 = 0xd3bf_26d0_9709_381d;
        let mut digest = 0xcbf2_9ce4_8422_2325_u64;
        for byte in WORDS.all[..COUNT].iter().flat_map(|word| word.text.bytes().chain([b'\n'])) {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        assert_eq!(digest, DIGEST, "{digest:#x}");
        assert!(WORDS.all.len() < 1 << 13);
        assert_eq!(WORDS.fields.len() + WORDS.items.len(), WORDS.all.len(), "a word stands there twice");
        assert!(WORDS.fields.keys().all(|word| !word.contains(['"', '\\'])), "texts are written as they are");
    }

    fn element() -> impl Strategy<Value = Element> {
        prop_oneof![
            prop::sample::select(vec!["spec", "x", "status"]).prop_map(Element::field),
            ".{0,5}".prop_map(|name| Element::field(&name)),
            "(Ready|[a-z<\"]{0,5})".prop_map(|name| Element::key([("type", json!(name))])),
            "(orphan|[a-z<\"]{0,5})".prop_map(|value| Element::Value(json!(value))),
            (0..3i64).prop_map(Element::Index),
        ]
    }

    proptest! {
        #[test]
        fn whatever_is_owned_is_owned_after_packing(
            paths in prop::collection::vec(prop::collection::vec(element(), 1..5), 0..12), name in ".{0,200}",
        ) {
            let mut fields = FieldSet::default();
            paths.iter().for_each(|path| fields.insert(path));
            let owner = Identity {
                manager: name.clone(), operation: Operation::Apply, api_version: format!("v{name}"), subresource: name,
            };
            let managers = Managers { entries: vec![Managed { owner, time: None, fields }] };
            let packed = packed(&managers);
            prop_assert_eq!(&Managers::unpack(&packed).unwrap(), &managers);
            let json: Value = serde_json::from_str(&written(&packed).unwrap()).unwrap();
            prop_assert_eq!(&Managers::decode(Some(&json)).unwrap(), &managers);
            for end in 0..packed.len() {
                let _ = (Managers::unpack(&packed[..end]), written(&packed[..end]));
            }
        }

        #[test]
        fn damage_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = (Managers::unpack(&bytes), write_json(&bytes, &mut BytesMut::new()));
        }
    }
}
