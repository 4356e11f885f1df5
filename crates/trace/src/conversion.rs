//! Converts columns that other tools rewrote in other types: pandas turns all integers into 64-bit ones, and nullable
//! ones into floats. Only values that convert exactly are accepted; nothing is rounded.

use crate::damage::Damage;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray, new_null_array};
use arrow_schema::{DataType, TimeUnit};
use std::sync::Arc;

/// The first float at which neighbouring whole numbers can no longer be told apart.
const EXACT_LIMIT: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// Returns true where values of type `held` may be converted to type `wanted`.
pub(crate) fn is_convertible(held: &DataType, wanted: &DataType) -> bool {
    match (held, wanted) {
        (held, wanted) if held == wanted => true,
        // All values are absent, so the writer could not tell their type.
        (DataType::Null, _) => true,
        (DataType::Float32, DataType::Float64) => true,
        (held, wanted) => is_number(held) && wanted.is_integer(),
    }
}

/// Returns true where statistics of a column of type `held` are valid for its converted values.
pub(crate) fn keeps_statistics(held: &DataType, wanted: &DataType) -> bool {
    held == wanted || held.is_integer() && wanted.is_integer()
}

/// Returns true for integers, floats and times in nanoseconds.
fn is_number(held: &DataType) -> bool {
    use DataType::{Float32, Float64, Timestamp};
    let is_time = matches!(held, Timestamp(TimeUnit::Nanosecond, _));
    held.is_integer() || matches!(held, Float32 | Float64) || is_time
}

/// Converts values to the wanted type.
///
/// # Errors
/// A value has no exact equivalent in that type.
pub(crate) fn convert(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, Damage> {
    match wanted {
        held if held == array.data_type() => Ok(array.clone()),
        wanted if *array.data_type() == DataType::Null => Ok(new_null_array(wanted, array.len())),
        DataType::Int32 => to_integers::<Int32Type>(array),
        DataType::Int64 => to_integers::<Int64Type>(array),
        DataType::UInt32 => to_integers::<UInt32Type>(array),
        DataType::UInt64 => to_integers::<UInt64Type>(array),
        DataType::Float64 if *array.data_type() == DataType::Float32 => {
            let wide = array.as_primitive::<Float32Type>();
            Ok(Arc::new(wide.unary::<_, Float64Type>(f64::from)))
        }
        wanted => Err(other_type(array, wanted)),
    }
}

/// Returns the damage of an array that cannot become the wanted type at all.
fn other_type(array: &ArrayRef, wanted: &DataType) -> Damage {
    Damage::Type {
        held: array.data_type().clone(),
        wanted: wanted.clone(),
    }
}

/// An integer type of a column.
trait IntegerType:
    ArrowPrimitiveType<
    Native: TryFrom<i8>
                + TryFrom<i16>
                + TryFrom<i32>
                + TryFrom<i64>
                + TryFrom<u8>
                + TryFrom<u16>
                + TryFrom<u32>
                + TryFrom<u64>,
>
{
}
impl IntegerType for Int32Type {}
impl IntegerType for Int64Type {}
impl IntegerType for UInt32Type {}
impl IntegerType for UInt64Type {}

/// Converts numbers of any type to the integer type `W`.
fn to_integers<W: IntegerType>(array: &ArrayRef) -> Result<ArrayRef, Damage> {
    match array.data_type() {
        DataType::Int8 => convert_integers::<Int8Type, W>(array),
        DataType::Int16 => convert_integers::<Int16Type, W>(array),
        DataType::Int32 => convert_integers::<Int32Type, W>(array),
        DataType::Int64 => convert_integers::<Int64Type, W>(array),
        DataType::UInt8 => convert_integers::<UInt8Type, W>(array),
        DataType::UInt16 => convert_integers::<UInt16Type, W>(array),
        DataType::UInt32 => convert_integers::<UInt32Type, W>(array),
        DataType::UInt64 => convert_integers::<UInt64Type, W>(array),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            convert_integers::<TimestampNanosecondType, W>(array)
        }
        DataType::Float32 => {
            let floats = array.as_primitive::<Float32Type>().iter();
            // 32-bit floats tell fewer numbers apart.
            let least = f64::from(f32::EPSILON).recip() * 2.0;
            convert_floats::<W>(floats.map(|value| value.map(f64::from)), least)
        }
        DataType::Float64 => {
            convert_floats::<W>(array.as_primitive::<Float64Type>().iter(), EXACT_LIMIT)
        }
        _ => Err(other_type(array, &W::DATA_TYPE)),
    }
}

/// Converts integers of type `H` to type `W`, which must be able to hold each of them.
fn convert_integers<H: ArrowPrimitiveType, W: IntegerType>(
    array: &ArrayRef,
) -> Result<ArrayRef, Damage>
where
    W::Native: TryFrom<H::Native>,
{
    let held = array.as_primitive::<H>();
    let same = |value: H::Native| {
        W::Native::try_from(value).map_err(|_| Damage::Value {
            value: format!("{value:?}"),
            wanted: W::DATA_TYPE,
        })
    };
    Ok(Arc::new(held.try_unary::<_, W, Damage>(same)?))
}

/// Converts floats to the integers that they equal; NaN stands for an absent value. Floats of magnitude `exact` and
/// above are refused, because neighbouring integers may have become the same float.
fn convert_floats<W: IntegerType>(
    floats: impl Iterator<Item = Option<f64>>,
    exact: f64,
) -> Result<ArrayRef, Damage> {
    let whole = floats.map(|float| {
        let Some(float) = float.filter(|float| !float.is_nan()) else {
            return Ok(None);
        };
        let is_exact = float.fract() == 0.0 && float.abs() < exact;
        let number = is_exact.then_some(float as i64);
        let number = number.and_then(|number| W::Native::try_from(number).ok());
        number.map(Some).ok_or_else(|| Damage::Inexact {
            value: float.to_string(),
            wanted: W::DATA_TYPE,
        })
    });
    let whole: PrimitiveArray<W> = whole.collect::<Result<_, Damage>>()?;
    Ok(Arc::new(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        Array, Float32Array, Float64Array, Int8Array, Int64Array, NullArray, StringArray,
        TimestampMicrosecondArray, TimestampNanosecondArray, UInt32Array, UInt64Array,
    };

    /// Converts an array to type `W` and returns its values; where that works, [`is_convertible`] must have said so.
    fn read<W: ArrowPrimitiveType>(
        array: impl Array + 'static,
    ) -> Result<Vec<Option<W::Native>>, Damage> {
        let array: ArrayRef = Arc::new(array);
        let may = is_convertible(array.data_type(), &W::DATA_TYPE);
        let wide = convert(&array, &W::DATA_TYPE)?;
        assert!(may, "{} as {}", array.data_type(), W::DATA_TYPE);
        Ok(wide.as_primitive::<W>().iter().collect())
    }

    #[test]
    fn values_are_the_same_in_every_type_that_has_them() {
        let numbers = Int64Array::from(vec![Some(0), None, Some(u32::MAX.into())]);
        let expected = Ok(vec![Some(0), None, Some(u32::MAX)]);
        assert_eq!(read::<UInt32Type>(numbers), expected);
        assert_eq!(
            read::<Int64Type>(Int8Array::from(vec![-1])),
            Ok(vec![Some(-1)])
        );
        let times = TimestampNanosecondArray::from(vec![7]).with_timezone("UTC");
        assert_eq!(read::<Int64Type>(times), Ok(vec![Some(7)]));
        let floats = Float64Array::from(vec![
            Some(-0.0),
            None,
            Some(f64::NAN),
            Some(EXACT_LIMIT - 1.0),
        ]);
        let expected = Ok(vec![Some(0), None, None, Some((1 << 53) - 1)]);
        assert_eq!(read::<UInt64Type>(floats), expected);
        assert_eq!(read::<Int64Type>(NullArray::new(2)), Ok(vec![None, None]));
        let floats = Float32Array::from(vec![0.5]);
        assert_eq!(read::<Float64Type>(floats), Ok(vec![Some(0.5)]));
    }

    #[test]
    fn nothing_is_rounded_and_nothing_wraps() {
        assert!(read::<UInt32Type>(Int64Array::from(vec![-1])).is_err());
        assert!(read::<UInt32Type>(UInt64Array::from(vec![1 << 32])).is_err());
        assert!(read::<Int64Type>(UInt64Array::from(vec![1 << 63])).is_err());
        assert!(read::<Int32Type>(UInt32Array::from(vec![1 << 31])).is_err());
        for float in [0.5, EXACT_LIMIT, -EXACT_LIMIT, f64::INFINITY] {
            assert!(
                read::<Int64Type>(Float64Array::from(vec![float])).is_err(),
                "{float}"
            );
        }
        // 2^24 + 1 would be written as 2^24.
        let float = Float32Array::from(vec![(1 << 24) as f32]);
        assert!(read::<Int64Type>(float).is_err());
        assert!(read::<Int64Type>(Float32Array::from(vec![((1 << 24) - 1) as f32])).is_ok());
        for other in [
            Arc::new(StringArray::from(vec!["1"])) as ArrayRef,
            // Its nanoseconds are lost.
            Arc::new(TimestampMicrosecondArray::from(vec![1])),
        ] {
            assert!(!is_convertible(other.data_type(), &DataType::Int64));
            assert!(convert(&other, &DataType::Int64).is_err());
        }
    }
}
