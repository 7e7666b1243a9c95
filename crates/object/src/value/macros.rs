//! JSON written as such.

/// A value, written as JSON. Where a value stands, any expression may, of a type that serializes; where a key stands, a
/// text, a name or an expression in brackets.
#[macro_export]
macro_rules! json {
    (null) => { $crate::Value::Null };
    ([ $($items:tt)* ]) => { $crate::Value::Array($crate::json_items!([] $($items)*)) };
    ({ $($fields:tt)* }) => {{
        #[allow(unused_mut, reason = "an object may have no fields")]
        let mut fields = $crate::Map::new();
        $crate::json_fields!(fields $($fields)*);
        $crate::Value::Object(fields)
    }};
    ($value:expr) => { $crate::to_value(&$value) };
}

/// The items of a list: those that are made, and what is left.
#[doc(hidden)]
#[macro_export]
macro_rules! json_items {
    ([ $($made:expr,)* ]) => { vec![$($made,)*] };
    ([ $($made:expr,)* ] null $(, $($rest:tt)*)?) => {
        $crate::json_items!([ $($made,)* $crate::Value::Null, ] $($($rest)*)?)
    };
    ([ $($made:expr,)* ] [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $crate::json_items!([ $($made,)* $crate::json!([ $($inner)* ]), ] $($($rest)*)?)
    };
    ([ $($made:expr,)* ] { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::json_items!([ $($made,)* $crate::json!({ $($inner)* }), ] $($($rest)*)?)
    };
    ([ $($made:expr,)* ] $value:expr $(, $($rest:tt)*)?) => {
        $crate::json_items!([ $($made,)* $crate::json!($value), ] $($($rest)*)?)
    };
}

/// Puts fields into a map, one after the other.
#[doc(hidden)]
#[macro_export]
macro_rules! json_fields {
    ($map:ident) => {};
    ($map:ident $key:tt : null $(, $($rest:tt)*)?) => {
        $map.insert($key, $crate::Value::Null);
        $crate::json_fields!($map $($($rest)*)?);
    };
    ($map:ident $key:tt : [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $map.insert($key, $crate::json!([ $($inner)* ]));
        $crate::json_fields!($map $($($rest)*)?);
    };
    ($map:ident $key:tt : { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $map.insert($key, $crate::json!({ $($inner)* }));
        $crate::json_fields!($map $($($rest)*)?);
    };
    ($map:ident $key:tt : $value:expr $(, $($rest:tt)*)?) => {
        $map.insert($key, $crate::json!($value));
        $crate::json_fields!($map $($($rest)*)?);
    };
}
