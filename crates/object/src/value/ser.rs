//! Trees from what serializes itself, and texts from trees.

use super::map::Entries;
use super::{FieldName, Map, Value};
use serde::ser::{
    Error as _, Impossible, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple, SerializeTupleStruct,
};
use serde::{Serialize, Serializer};

type Error = serde_json::Error;

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Number(number) => number.serialize(serializer),
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(items) => items.serialize(serializer),
            Value::Object(fields) => fields.serialize(serializer),
        }
    }
}

impl Serialize for Map {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

/// Builds a value.
pub(super) struct Builder;

macro_rules! from_numbers {
    ($($method:ident $number:ty),*) => {
        $(fn $method(self, number: $number) -> Result<Value, Error> {
            Ok(Value::from(number))
        })*
    };
}

impl Serializer for Builder {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Impossible<Value, Error>;
    type SerializeMap = Fields;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Impossible<Value, Error>;

    from_numbers!(serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64);
    from_numbers!(serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64, serialize_f64 f64);

    fn serialize_bool(self, value: bool) -> Result<Value, Error> {
        Ok(Value::Bool(value))
    }

    fn serialize_f32(self, number: f32) -> Result<Value, Error> {
        Ok(Value::from(f64::from(number)))
    }

    fn serialize_char(self, character: char) -> Result<Value, Error> {
        Ok(Value::String(character.to_string()))
    }

    fn serialize_str(self, text: &str) -> Result<Value, Error> {
        Ok(Value::from(text))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value, Error> {
        Ok(bytes.iter().copied().collect())
    }

    fn serialize_none(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value, Error> {
        Ok(Value::from(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<Value, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, Error> {
        let mut fields = Map::new();
        fields.insert(variant, value.serialize(Builder)?);
        Ok(Value::Object(fields))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Items, Error> {
        Ok(Items(Vec::with_capacity(length.unwrap_or(0))))
    }

    fn serialize_tuple(self, length: usize) -> Result<Items, Error> {
        Ok(Items(Vec::with_capacity(length)))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Items, Error> {
        Ok(Items(Vec::with_capacity(length)))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        Err(Error::custom("an enumeration with several values is no JSON of ours"))
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Fields, Error> {
        Ok(Fields { fields: Entries::with_capacity(length.unwrap_or(0)), key: None })
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Fields, Error> {
        Ok(Fields { fields: Entries::with_capacity(length), key: None })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        Err(Error::custom("an enumeration with fields is no JSON of ours"))
    }
}

pub(super) struct Items(Vec<Value>);

impl SerializeSeq for Items {
    type Ok = Value;
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.0.push(value.serialize(Builder)?);
        Ok(())
    }

    fn end(self) -> Result<Value, Error> {
        Ok(Value::Array(self.0))
    }
}

impl SerializeTuple for Items {
    type Ok = Value;
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<Value, Error> {
        SerializeSeq::end(self)
    }
}

impl SerializeTupleStruct for Items {
    type Ok = Value;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<Value, Error> {
        SerializeSeq::end(self)
    }
}

pub(super) struct Fields {
    fields: Entries,
    key: Option<FieldName>,
}

impl SerializeMap for Fields {
    type Ok = Value;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key = Some(match key.serialize(Builder)? {
            Value::String(text) => text.into(),
            other => other.to_string().into(),
        });
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = self.key.take().ok_or_else(|| Error::custom("a value without a key"))?;
        self.fields.insert(key, value.serialize(Builder)?);
        Ok(())
    }

    fn end(self) -> Result<Value, Error> {
        Ok(Value::Object(self.fields.into()))
    }
}

impl SerializeStruct for Fields {
    type Ok = Value;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        self.fields.insert(key, value.serialize(Builder)?);
        Ok(())
    }

    fn end(self) -> Result<Value, Error> {
        Ok(Value::Object(self.fields.into()))
    }
}
