//! A daemon that behaves as dynolog's, and the command that talks to it.
//!
//! Made from the protocol: one datagram at a time with a pause of 10 ms, a registry of
//! processes by job and ancestors, requests that wait until they are fetched and are then
//! forgotten, JSON over TCP. What a stock daemon would not survive is not survived here
//! either: the daemon stops, and [`Daemon::fault`] says what it was.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(10);
/// For a loaded machine; nothing waits that long where all goes well.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A process that asked.
#[derive(Clone, Debug)]
pub struct Process {
    /// The process, then its ancestors.
    pub pids: Vec<i32>,
    /// What it was ready for when it asked last.
    pub ready: i32,
    /// How often it asked.
    pub questions: u64,
    /// What waits for it.
    config: String,
}

type Jobs = BTreeMap<i64, BTreeMap<BTreeSet<i32>, Process>>;

#[derive(Default)]
struct State {
    jobs: Mutex<Jobs>,
    fault: Mutex<Option<String>>,
    /// Answers are made, but not sent before this is gone.
    silent: AtomicBool,
    stop: AtomicBool,
}

/// See the module. Ends when it is dropped.
pub struct Daemon {
    state: Arc<State>,
    pub port: u16,
    threads: Vec<JoinHandle<()>>,
    path: Option<PathBuf>,
}

impl Daemon {
    /// In a folder (`KINETO_IPC_SOCKET_DIR`).
    pub fn in_folder(folder: &Path) -> Daemon {
        let path = folder.join("dynolog");
        let _ = std::fs::remove_file(&path);
        let socket = UnixDatagram::bind(&path).unwrap();
        let folder = folder.as_os_str().as_bytes().to_vec();
        Daemon::serve(socket, Some(path), move |from| {
            let path = from.as_pathname().ok_or("a socket without a name")?;
            let path = path.as_os_str().as_bytes();
            let name = path.strip_prefix(&folder[..]).and_then(|rest| rest.strip_prefix(b"/"));
            let name = name.ok_or_else(|| format!("{from:?} is not in the daemon's folder"))?;
            let back = [&folder[..], b"/", name].concat();
            SocketAddr::from_pathname(OsStr::from_bytes(&back)).map_err(|error| error.to_string())
        })
    }

    /// With an abstract name, which is the whole machine's: a name for every test.
    pub fn named(name: &str) -> Daemon {
        let with_nul = [name.as_bytes(), b"\0"].concat();
        let address = SocketAddr::from_abstract_name(with_nul).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        Daemon::serve(socket, None, |from| {
            let name = from.as_abstract_name().ok_or("a socket without an abstract name")?;
            // Read as a C string, and sent back to with the NUL.
            let end = name.iter().position(|byte| *byte == 0).ok_or("a name without its NUL")?;
            SocketAddr::from_abstract_name(&name[..=end]).map_err(|error| error.to_string())
        })
    }

    fn serve(
        socket: UnixDatagram,
        path: Option<PathBuf>,
        back: impl Fn(&SocketAddr) -> Result<SocketAddr, String> + Send + 'static,
    ) -> Daemon {
        socket.set_nonblocking(true).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let (for_processes, for_commands) = (state.clone(), state.clone());
        let threads = vec![
            std::thread::spawn(move || for_processes.answer_processes(&socket, back)),
            std::thread::spawn(move || for_commands.answer_commands(&listener)),
        ];
        Daemon { state, port, threads, path }
    }

    /// What a client did that a stock daemon does not survive.
    pub fn fault(&self) -> Option<String> {
        self.state.fault.lock().unwrap().clone()
    }

    /// A registered process.
    pub fn process(&self, job: i64, pid: u32) -> Option<Process> {
        let jobs = self.state.jobs.lock().unwrap();
        jobs.get(&job)?.values().find(|process| process.pids[0] == pid as i32).cloned()
    }

    /// Waits until a process has asked, and for `enough`.
    pub fn await_process(&self, job: i64, pid: u32, enough: impl Fn(&Process) -> bool) -> Process {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            assert_eq!(self.fault(), None);
            match self.process(job, pid) {
                Some(process) if enough(&process) => return process,
                process => assert!(Instant::now() < deadline, "{pid}: {process:?}"),
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether answers are held back.
    pub fn be_silent(&self, silent: bool) {
        self.state.silent.store(silent, Ordering::SeqCst);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::SeqCst);
        // Wakes the one that waits for commands.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl State {
    fn answer_processes(
        &self,
        socket: &UnixDatagram,
        back: impl Fn(&SocketAddr) -> Result<SocketAddr, String>,
    ) {
        let mut late: Vec<(SocketAddr, Vec<u8>)> = Vec::new();
        while !self.stop.load(Ordering::SeqCst) {
            std::thread::sleep(PAUSE);
            if !self.silent.load(Ordering::SeqCst) {
                for (to, answer) in late.drain(..) {
                    let _ = socket.send_to_addr(&answer, &to);
                }
            }
            let mut datagram = [0; 4096];
            let (length, from) = match socket.recv_from(&mut datagram) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => panic!("{error}"),
            };
            let answered = back(&from).and_then(|to| Ok((to, self.answer(&datagram[..length])?)));
            match answered {
                Ok((_, None)) => {}
                Ok((to, Some(text))) => {
                    late.push((to, message("req", text.as_bytes())));
                }
                Err(fault) => {
                    *self.fault.lock().unwrap() = Some(fault);
                    return;
                }
            }
        }
    }

    /// What a question gets, if it gets an answer.
    fn answer(&self, datagram: &[u8]) -> Result<Option<String>, String> {
        let (head, payload) = datagram.split_at_checked(40).ok_or("shorter than its head")?;
        let size = u64::from_ne_bytes(head[..8].try_into().unwrap());
        if size != payload.len() as u64 {
            return Err(format!("says {size} bytes and has {}", payload.len()));
        }
        let end = head[8..].iter().position(|byte| *byte == 0).ok_or("a type without its NUL")?;
        if &head[8..8 + end] != b"req" {
            return Err(format!("type {:?}", String::from_utf8_lossy(&head[8..8 + end])));
        }
        let (fields, pids) = payload.split_at_checked(16).ok_or("a short request")?;
        let number = |bytes: &[u8]| i32::from_ne_bytes(bytes.try_into().unwrap());
        let (ready, count) = (number(&fields[..4]), number(&fields[4..8]));
        let job = i64::from_ne_bytes(fields[8..].try_into().unwrap());
        let pids: Vec<i32> = pids.chunks_exact(4).map(number).collect();
        if count < 1 || count as usize != pids.len() {
            return Err(format!("says {count} pids and has {}", pids.len()));
        }
        let mut jobs = self.jobs.lock().unwrap();
        let processes = jobs.entry(job).or_default();
        let key: BTreeSet<i32> = pids.iter().copied().collect();
        let process = processes.entry(key).or_insert_with(|| Process {
            pids,
            ready,
            questions: 0,
            config: String::new(),
        });
        process.ready = ready;
        process.questions += 1;
        let config = if ready & 2 == 0 || process.config.is_empty() {
            String::new()
        } else {
            std::mem::take(&mut process.config) + "\n"
        };
        Ok(Some(config))
    }

    fn answer_commands(&self, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            let Ok(mut stream) = stream else { continue };
            let Ok(Ok(request)) = receive(&mut stream).map(|text| serde_json::from_slice(&text))
            else {
                continue;
            };
            let _ = send(&mut stream, self.command(&request).to_string().as_bytes());
        }
    }

    fn command(&self, request: &Value) -> Value {
        match request["fn"].as_str() {
            Some("setKinetOnDemandRequest") => {}
            Some("getStatus") => return json!({"status": 1}),
            _ => return json!({"status": "failed"}),
        }
        let config = request["config"].as_str().unwrap();
        let wanted: BTreeSet<i32> = request["pids"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p.as_i64().unwrap() as i32)
            .collect();
        let limit = request["process_limit"].as_u64().unwrap_or(1000) as usize;
        let all = wanted.is_empty() || wanted == BTreeSet::from([0]);
        let (mut matched, mut triggered, mut busy) = (Vec::new(), Vec::new(), 0);
        let mut jobs = self.jobs.lock().unwrap();
        let processes = jobs.get_mut(&request["job_id"].as_i64().unwrap_or(0));
        for (pids, process) in processes.into_iter().flatten() {
            if !all && pids.is_disjoint(&wanted) {
                continue;
            }
            matched.push(process.pids[0]);
            if triggered.len() >= limit {
                continue;
            }
            if process.config.is_empty() {
                let id = 1_000_000 + process.pids[0];
                process.config = format!("\n    {config}\n    REQUEST_TRACE_ID={id}");
                triggered.push(process.pids[0]);
            } else {
                busy += 1;
            }
        }
        json!({
            "processesMatched": matched,
            "eventProfilersTriggered": [],
            "activityProfilersTriggered": triggered,
            "eventProfilersBusy": 0,
            "activityProfilersBusy": busy,
        })
    }
}

/// A datagram.
pub fn message(kind: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u64).to_ne_bytes().to_vec();
    bytes.extend_from_slice(kind.as_bytes());
    bytes.resize(40, 0);
    bytes.extend_from_slice(payload);
    bytes
}

fn send(stream: &mut TcpStream, text: &[u8]) -> io::Result<()> {
    stream.write_all(&(text.len() as i32).to_ne_bytes())?;
    stream.write_all(text)
}

fn receive(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut text = vec![0; i32::from_ne_bytes(length).clamp(0, 1 << 20) as usize];
    stream.read_exact(&mut text)?;
    Ok(text)
}

/// `dyno gputrace`, with the defaults of its options.
#[derive(Clone, Debug)]
pub struct Gputrace {
    pub log_file: String,
    pub job_id: u64,
    pub pids: String,
    pub process_limit: u32,
    pub duration_ms: u64,
    pub iterations: i64,
    pub profile_start_time: u64,
    pub profile_start_iteration_roundup: u64,
    pub record_shapes: bool,
    pub profile_memory: bool,
    pub with_stacks: bool,
    pub with_flops: bool,
    pub with_modules: bool,
}

impl Gputrace {
    pub fn to(log_file: impl Into<String>) -> Gputrace {
        Gputrace {
            log_file: log_file.into(),
            job_id: 0,
            pids: "0".to_owned(),
            process_limit: 3,
            duration_ms: 500,
            iterations: -1,
            profile_start_time: 0,
            profile_start_iteration_roundup: 1,
            record_shapes: false,
            profile_memory: false,
            with_stacks: false,
            with_flops: false,
            with_modules: false,
        }
    }

    /// The request's text.
    pub fn config(&self) -> String {
        let mut lines = vec![format!("ACTIVITIES_LOG_FILE={}", self.log_file)];
        if self.iterations > 0 {
            lines.push("PROFILE_START_ITERATION=0".to_owned());
            let roundup = self.profile_start_iteration_roundup;
            lines.push(format!("PROFILE_START_ITERATION_ROUNDUP={roundup}"));
            lines.push(format!("ACTIVITIES_ITERATIONS={}", self.iterations));
        } else {
            lines.push(format!("PROFILE_START_TIME={}", self.profile_start_time));
            lines.push(format!("ACTIVITIES_DURATION_MSECS={}", self.duration_ms));
        }
        lines.push(format!("PROFILE_REPORT_INPUT_SHAPES={}", self.record_shapes));
        if self.profile_memory {
            lines.push("PROFILE_PROFILE_MEMORY=true".to_owned());
            lines.push("PROFILE_MEMORY=true".to_owned());
            lines.push(format!("PROFILE_MEMORY_DURATION_MSECS={}", self.duration_ms));
        }
        lines.push(format!("PROFILE_WITH_STACK={}", self.with_stacks));
        lines.push(format!("PROFILE_WITH_FLOPS={}", self.with_flops));
        lines.push(format!("PROFILE_WITH_MODULES={}", self.with_modules));
        lines.join("\n")
    }

    /// What goes over TCP, after its length.
    pub fn request(&self) -> String {
        format!(
            "\n{{\n    \"fn\": \"setKinetOnDemandRequest\",\n    \"config\": \"{}\",\n    \
             \"job_id\": {},\n    \"pids\": [{}],\n    \"process_limit\": {}\n}}",
            self.config().replace('\n', "\\n"),
            self.job_id,
            self.pids,
            self.process_limit
        )
    }

    /// Sends it; the daemon's answer.
    pub fn run(&self, port: u16) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        send(&mut stream, self.request().as_bytes()).unwrap();
        serde_json::from_slice(&receive(&mut stream).unwrap()).unwrap()
    }

    /// Where the command says that the trace will be.
    pub fn printed(&self, pid: u32) -> String {
        self.log_file.replace(".json", &format!("_{pid}.json"))
    }
}
