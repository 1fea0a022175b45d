//! Functions that SQL does not have.
//!
//! | function | gives |
//! |---|---|
//! | `kernel_class(name)` | `computation` or `communication`, by the name of a kernel |
//! | `busbw(collective, bytes, ns, ranks)` | the bus bandwidth, as NCCL's tests count it, in GB/s |
//! | `interval_union(ts, dur)` | an aggregate: how long at least one of the intervals lasts |
//! | `interval_intersection(ts, dur, side)` | an aggregate: how long intervals of both sides last at once |

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, ListArray, StringArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{Accumulator, ColumnarValue, Volatility, create_udaf, create_udf};
use datafusion::prelude::SessionContext;
use kymograph_analysis::interval::{self, Interval};
use kymograph_analysis::metric::collectives::links;
use kymograph_analysis::model::{Class, kernel_class};
use std::sync::Arc;

/// Registers all of them.
pub(super) fn register(context: &SessionContext) {
    let arrays = |values: &[ColumnarValue]| ColumnarValue::values_to_arrays(values);
    let class = move |values: &[ColumnarValue]| classes(&arrays(values)?);
    let bandwidth = move |values: &[ColumnarValue]| bandwidths(&arrays(values)?);
    let (text, int, pure) = (DataType::Utf8, DataType::Int64, Volatility::Immutable);
    context.register_udf(create_udf(
        "kernel_class",
        vec![text.clone()],
        text.clone(),
        pure,
        Arc::new(class),
    ));
    context.register_udf(create_udf(
        "busbw",
        vec![text, int.clone(), int.clone(), int.clone()],
        DataType::Float64,
        pure,
        Arc::new(bandwidth),
    ));
    context.register_udaf(create_udaf(
        "interval_union",
        vec![int.clone(), int.clone()],
        Arc::new(int.clone()),
        pure,
        Arc::new(|_| Ok(Box::new(Intervals::new(1)))),
        Arc::new(vec![list()]),
    ));
    context.register_udaf(create_udaf(
        "interval_intersection",
        vec![int.clone(), int.clone(), DataType::Boolean],
        Arc::new(int),
        pure,
        Arc::new(|_| Ok(Box::new(Intervals::new(2)))),
        Arc::new(vec![list(), list()]),
    ));
}

fn classes(values: &[ArrayRef]) -> Result<ColumnarValue> {
    let [names] = values else { return exec_err!("kernel_class takes a name") };
    let class = |name: Option<&str>| {
        Some(match kernel_class(name?) {
            Class::Communication => "communication",
            _ => "computation",
        })
    };
    let names = names.as_string::<i32>();
    Ok(ColumnarValue::Array(Arc::new(names.iter().map(class).collect::<StringArray>())))
}

fn bandwidths(values: &[ArrayRef]) -> Result<ColumnarValue> {
    let [collectives, bytes, times, ranks] = values else {
        return exec_err!("busbw takes a collective, bytes, nanoseconds and how many ranks");
    };
    let collectives = collectives.as_string::<i32>();
    let [bytes, times, ranks] = [bytes, times, ranks].map(|a| a.as_primitive::<Int64Type>());
    let of = |row: usize| {
        let int = |of: &Int64Array| of.is_valid(row).then(|| of.value(row));
        let collective = collectives.is_valid(row).then(|| collectives.value(row))?;
        let (bytes, time, ranks) = (int(bytes)?, int(times)?, int(ranks)?);
        // Bytes per nanosecond are gigabytes per second.
        (time > 0).then(|| bytes as f64 / time as f64 * links(collective, ranks as f64))
    };
    let given: Float64Array = (0..collectives.len()).map(of).collect();
    Ok(ColumnarValue::Array(Arc::new(given)))
}

/// The type of a state: beginnings and ends in turn.
fn list() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)))
}

/// Intervals of one side or two. They are merged whenever as many have come as there were after
/// the last time, so that what is kept is about as much as the union needs.
#[derive(Debug)]
struct Intervals {
    sides: Vec<Side>,
}

#[derive(Debug, Default)]
struct Side {
    all: Vec<Interval>,
    merged: usize,
}

impl Side {
    fn push(&mut self, interval: Interval) {
        if interval.1 > interval.0 {
            self.all.push(interval);
            if self.all.len() > 1024 && self.all.len() > 2 * self.merged {
                self.merge();
            }
        }
    }

    fn merge(&mut self) {
        self.all.sort_unstable();
        self.all = interval::merge(std::mem::take(&mut self.all));
        self.merged = self.all.len();
    }
}

impl Intervals {
    fn new(sides: usize) -> Intervals {
        Intervals { sides: (0..sides).map(|_| Side::default()).collect() }
    }
}

impl Accumulator for Intervals {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [starts, durs, rest @ ..] = values else {
            return exec_err!("intervals have two numbers");
        };
        let (starts, durs) = (starts.as_primitive::<Int64Type>(), durs.as_primitive::<Int64Type>());
        let second: Option<&BooleanArray> = rest.first().map(|side| side.as_boolean());
        for row in 0..starts.len() {
            // What is null, or of neither side, is no interval.
            if starts.is_null(row) || durs.is_null(row) || second.is_some_and(|s| s.is_null(row)) {
                continue;
            }
            let side = usize::from(second.is_some_and(|second| second.value(row)));
            let start = starts.value(row);
            if let Some(side) = self.sides.get_mut(side) {
                side.push((start, start.saturating_add(durs.value(row))));
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for (side, state) in self.sides.iter_mut().zip(states) {
            for ends in state.as_list::<i32>().iter().flatten() {
                let ends = ends.as_primitive::<Int64Type>().values();
                ends.chunks_exact(2).for_each(|pair| side.push((pair[0], pair[1])));
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = |side: &mut Side| {
            side.merge();
            let ends = side.all.iter().flat_map(|(start, end)| [*start, *end]);
            let ends = Int64Array::from_iter_values(ends);
            let offsets = OffsetBuffer::from_lengths([ends.len()]);
            let field = Arc::new(Field::new_list_field(DataType::Int64, true));
            let list = ListArray::try_new(field, offsets, Arc::new(ends), None)?;
            Ok(ScalarValue::List(Arc::new(list)))
        };
        self.sides.iter_mut().map(state).collect()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.sides.iter_mut().for_each(Side::merge);
        let length = match self.sides.as_slice() {
            [one, other] => interval::length(&interval::intersection(&one.all, &other.all)),
            [one] => interval::length(&one.all),
            _ => 0,
        };
        Ok(ScalarValue::Int64(Some(length)))
    }

    fn size(&self) -> usize {
        let sides = self.sides.iter().map(|side| side.all.capacity() * size_of::<Interval>());
        size_of_val(self) + sides.sum::<usize>()
    }
}
