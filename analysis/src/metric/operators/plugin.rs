//! Operators as the TensorBoard plugin has them.

use hashbrown::HashMap;
use kymograph_converters::order::Order as _;

use crate::compat::tensorboard::{Plugin, Sum, Tree};
use crate::model::Model;

/// Name and, if those tell operators apart, shapes; calls; what they did.
pub(super) type Row = ((String, Option<String>), u64, Sum);

/// Rows in the plugin's order: by name, and by shapes if those tell operators apart.
pub(super) fn operators(model: &Model<'_>, plugin: Plugin, shapes: bool) -> Vec<Row> {
    let tree = Tree::of(model, plugin);
    let mut places: HashMap<(u32, Option<String>), usize> = HashMap::new();
    let mut sums: Vec<Row> = Vec::new();
    let dims = model.trace.strings.find("Input Dims");
    for node in tree.nodes.iter().filter(|node| node.is_operator(model)) {
        let name = model.name(node.row);
        let shape = shapes.then(|| {
            model.arg(node.row, dims).map_or("[]".to_owned(), |dims| model.trace.json(dims))
        });
        let key = (model.events.names[node.row as usize].0, shape.clone());
        let place = *places.entry(key).or_insert_with(|| {
            // The first call of a name says whether all of them can use tensor cores.
            let sum = Sum { eligible: node.sum.eligible, ..Sum::default() };
            sums.push(((name.to_owned(), shape), 0, sum));
            sums.len() - 1
        });
        let (_, calls, sum) = &mut sums[place];
        let own = &node.sum;
        *calls += 1;
        sum.host += own.host;
        sum.self_host += own.self_host;
        sum.device += own.device;
        sum.self_device += own.self_device;
        sum.tensor += own.tensor;
        sum.self_tensor += own.self_tensor;
    }
    let on_device = sums.iter().any(|(.., sum)| sum.device > 0);
    sums.order_by_key(|(.., s)| -if on_device { s.self_device } else { s.self_host });
    sums
}
