//! Device work of which the JSON states no stream, as some of MTIA's transfers.

use kymograph_analysis::compat::hta::{Rules, Version};
use kymograph_analysis::{Model, Reading};
use kymograph_converters::format;

const JSON: &str = r#"{"traceEvents": [
  {"ph":"X","cat":"mtia_ccp_events","name":"add","pid":9,"tid":4,"ts":10,"dur":5,"args":{"stream":1}},
  {"ph":"X","cat":"mtia_ccp_events","name":"dma_request","pid":9,"tid":801,"ts":20,"dur":5,"args":{"size":16}}
]}"#;

fn on_device(reading: Reading) -> Vec<(String, bool)> {
    let trace = format::read(JSON.as_bytes(), None).unwrap();
    let model = Model::new(&trace, None, 0, reading);
    let rows = 0..model.events.len() as u32;
    rows.map(|row| (model.name(row).to_owned(), model.events.on_device(row))).collect()
}

#[test]
fn it_is_device_work_and_hta_sees_none() {
    let hta = Rules { version: Version::Hta, rounding: true, last_step: false };
    let expected = |dma| vec![("add".to_owned(), true), ("dma_request".to_owned(), dma)];
    assert_eq!(on_device(Reading::Exact), expected(true));
    assert_eq!(on_device(Reading::Hta(hta)), expected(false));
}
