//! A server that speaks S3, one in front of it that fails, and tasks that ask them.

use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, OnceLock};

/// The server of all tests of this process. It ends when its standard input does.
struct Server {
    _child: Child,
    port: u16,
}

/// Where the server listens.
pub fn port() -> u16 {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let start = || {
        let mut child = Command::new(oracle::s3_python())
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/s3.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().expect("the server of S3 says its port");
        Server { _child: child, port }
    };
    SERVER.get_or_init(start).port
}

/// `kymo-scale`, which knows the server at a port and nothing else of this machine's credentials.
pub fn kymo(port: u16, words: &[&str]) -> Command {
    let mut task = Command::new(env!("CARGO_BIN_EXE_kymo-scale"));
    for (name, _) in std::env::vars() {
        if ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|start| name.starts_with(start)) {
            task.env_remove(name);
        }
    }
    task.args(words)
        .env("AWS_ENDPOINT", format!("http://127.0.0.1:{port}"))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret");
    task
}

/// The exit status, and what was written.
pub fn ended(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

pub fn run(port: u16, words: &[&str]) -> (i32, String, String) {
    ended(&kymo(port, words).output().unwrap())
}

/// What must work, and its standard output.
#[track_caller]
pub fn done(words: &[&str]) -> String {
    let (status, out, said) = run(port(), words);
    assert_eq!(status, 0, "{words:?}: {said}");
    out
}

/// The bucket, past the program that is tested.
#[derive(Debug)]
pub struct Bucket {
    store: AmazonS3,
    runtime: tokio::runtime::Runtime,
}

impl Bucket {
    pub fn new() -> Bucket {
        let store = AmazonS3Builder::new()
            .with_endpoint(format!("http://127.0.0.1:{}", port()))
            .with_allow_http(true)
            .with_access_key_id("key")
            .with_secret_access_key("secret")
            .with_bucket_name("bucket");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        Bucket { store: store.build().unwrap(), runtime }
    }

    pub fn put(&self, key: &str, bytes: Vec<u8>) {
        let key = Key::parse(key).unwrap();
        self.runtime.block_on(self.store.put(&key, bytes.into())).unwrap();
    }

    pub fn get(&self, key: &str) -> Vec<u8> {
        let key = Key::parse(key).unwrap();
        let read = async { self.store.get(&key).await?.bytes().await };
        self.runtime.block_on(read).unwrap().into()
    }

    pub fn delete(&self, key: &str) {
        let key = Key::parse(key).unwrap();
        self.runtime.block_on(self.store.delete(&key)).unwrap();
    }

    /// What is below a prefix: keys from there, and what tells versions apart.
    pub fn below(&self, prefix: &str) -> BTreeMap<String, String> {
        use futures::TryStreamExt;
        let folder = Key::parse(prefix).unwrap();
        let listed = self.store.list(Some(&folder)).try_collect::<Vec<_>>();
        let listed = self.runtime.block_on(listed).unwrap();
        let named = listed.into_iter().map(|meta| {
            let key = meta.location.as_ref().strip_prefix(prefix).unwrap().to_owned();
            (key, format!("{:?} {}", meta.e_tag, meta.last_modified))
        });
        named.collect()
    }

    /// Whether there is nothing but what manifests name, the manifests, and the header.
    #[track_caller]
    pub fn assert_tidy(&self, set: &str) {
        let mut expected = vec!["/kymograph-dataset.json".to_owned()];
        let there: Vec<String> = self.below(set).into_keys().collect();
        for manifest in there.iter().filter(|key| key.starts_with("/ranks/")) {
            let text = self.get(&format!("{set}{manifest}"));
            let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
            let files = json["files"].as_array().unwrap().iter();
            expected.extend(files.map(|file| format!("/{}", file["path"].as_str().unwrap())));
            expected.push(manifest.clone());
        }
        expected.sort();
        assert_eq!(there, expected);
    }
}

/// What is done with a request.
pub enum What {
    Pass,
    /// An answer of one's own.
    Answer(&'static str, &'static str),
    /// A file, and half of one.
    File(Vec<u8>),
    CutFile(Vec<u8>),
    /// Passed on without its conditions.
    Unconditional,
    /// The connection ends in the middle of the request.
    CutRequest,
    /// It ends behind the head of the answer and some bytes.
    CutAnswer,
    /// Nothing is answered, until the client goes.
    Silence,
}

/// Starts a server in front of the other, and says its port. `of` sees the first line of each
/// request, such as `PUT /bucket/key HTTP/1.1`, and may wait.
pub fn in_front(of: impl Fn(&str) -> What + Send + Sync + 'static) -> u16 {
    let upstream = port();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let of = Arc::new(of);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let of = of.clone();
            std::thread::spawn(move || drop(pass(client, upstream, &*of)));
        }
    });
    own
}

fn pass(
    mut client: TcpStream,
    upstream: u16,
    of: &(impl Fn(&str) -> What + ?Sized),
) -> std::io::Result<()> {
    let mut from = BufReader::new(client.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
        if !lower.starts_with("connection:") {
            head += &line;
        }
    }
    let what = of(head.lines().next().unwrap());
    if matches!(what, What::CutRequest) {
        let mut some = vec![0; length / 2];
        from.read_exact(&mut some)?;
        return client.shutdown(std::net::Shutdown::Both);
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    match what {
        What::Answer(status, text) => {
            let length = text.len();
            return write!(
                client,
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
            );
        }
        What::File(ref bytes) | What::CutFile(ref bytes) => {
            let (whole, length) = (matches!(what, What::File(_)), bytes.len());
            let sent = if whole { length } else { length / 2 };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n");
            client.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
            return client.write_all(&bytes[..sent]);
        }
        What::Silence => {
            let mut gone = Vec::new();
            from.read_to_end(&mut gone)?;
            return Ok(());
        }
        _ => {}
    }
    let mut server = TcpStream::connect(("127.0.0.1", upstream))?;
    if matches!(what, What::Unconditional) {
        let is_condition = |line: &&str| line.to_ascii_lowercase().starts_with("if-");
        head = head.split_inclusive('\n').filter(|line| !is_condition(line)).collect();
    }
    server.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
    server.write_all(&body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    if matches!(what, What::CutAnswer) {
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        answer.truncate(end + (answer.len() - end) / 2);
    }
    client.write_all(&answer)
}
