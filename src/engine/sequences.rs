//! Numbers of packet sequences: one for the process and one for each recording thread.

use std::sync::Arc;

use crate::page::Page;

/// Hands out ids that no other sequence of the file uses at the same time. Ids of threads
/// that ended are used again, so that ids stay small and packets short.
#[derive(Debug)]
pub struct Sequences {
    /// Where ids come from when several processes write one file.
    page: Option<Arc<Page>>,
    next: u32,
    free: Vec<u32>,
}

impl Sequences {
    pub fn new(page: Option<Arc<Page>>) -> Sequences {
        Sequences { page, next: 1, free: Vec::new() }
    }

    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| match &self.page {
            Some(page) => page.take_sequences(1),
            None => {
                self.next += 1;
                self.next - 1
            }
        })
    }

    pub fn give(&mut self, id: u32) {
        self.free.push(id);
    }
}
