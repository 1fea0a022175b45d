//! Pieces of JSON traces that matter to who reads them.

pub const PIECES: [&str; 20] = [
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "-",
    "\n",
    "NaN",
    "1e999",
    "\\ud800",
    "\u{feff}",
    "null",
    "\"ph\": \"E\"",
    "\"ts\": -1e300",
    "{\"ph\":\"X\"},",
    "\"cat\": \"kernel\"",
    "\"id\": \"0xff\"",
];
