//! A trace processor that is sent its trace over HTTP.

use serde_json::Value;

use crate::node::Node;

/// A server on 127.0.0.1 that answers as `trace_processor_shell server http` does to
/// `POST /parse` and `POST /notify_eof`. Killed when dropped.
#[derive(Debug)]
pub struct Server {
    node: Node,
    port: u16,
}

impl Server {
    /// Starts one on `port`, or on a free one if that is 0.
    ///
    /// # Panics
    ///
    /// When it does not start, with what it said.
    #[track_caller]
    pub fn start(port: u16) -> Server {
        let (node, port) = Node::serve(port).unwrap_or_else(|error| panic!("{error}"));
        Server { node, port }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What `kymo record --to-trace-processor` is to be told.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Bytes that it received since a trace last ended, and how many have ended.
    ///
    /// # Panics
    ///
    /// When it is dead.
    #[track_caller]
    pub fn served(&mut self) -> (u64, u64) {
        self.node.served().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The rows of a query about the trace that ended last.
    ///
    /// # Panics
    ///
    /// When the query fails.
    #[track_caller]
    pub fn rows(&mut self, sql: &str) -> Vec<Vec<Value>> {
        self.node.ask(sql).unwrap_or_else(|error| panic!("{error}\nasked: {sql}")).rows
    }
}
