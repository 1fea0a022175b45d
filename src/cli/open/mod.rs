//! `kymo open`: shows a trace in Perfetto's UI, which reads it from this machine.
//!
//! The UI is a web page that fetches the trace from a server on 127.0.0.1. Other pages and
//! other users of the machine can reach that server, too, so it answers only requests that
//!
//! * name it as their host: a page whose name was pointed at 127.0.0.1 names itself;
//! * come from the UI's origin: the browser says so, and a page cannot make it lie;
//! * know the path, which is random, and told to the UI;
//! * come from a process of the same user, as the kernel says: others can read the path in
//!   the arguments of the command that starts the browser ([`Audience`]).
//!
//! [`Site`] decides the first three, without a socket; [`serve`] has the sockets. The port is 9001
//! because the UI's content security policy allows no other.

mod audience;
mod live;
mod perfetto;
mod serve;
mod site;
mod view;

use super::{Failure, part, say, status};
use audience::Audience;
use clap::Args;
pub(super) use live::View;
use site::Site;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// The one port that the UI may fetch from.
const PORT: u16 = 9001;
/// Plugins of the UI that show devices by process, and what kernels are made of.
const PLUGINS: &str = "dev.perfetto.GpuByProcess,com.meta.GpuCompute";

const EXAMPLES: &str = "\
EXAMPLES
  In the browser of this machine:
      kymo open app.pftrace
  On a machine without one: prints the link, and how to reach it from yours:
      kymo open --no-browser app.pftrace.zst
  At the place that a page of `kymo report` named:
      kymo open app.pftrace --at 1.5s..1.6s";

/// Shows a trace in Perfetto's UI, served once from this machine.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Open {
    /// The trace: Perfetto's format or JSON, as it is or packed with gzip or zstd.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Only print the link, on standard output.
    #[arg(long)]
    no_browser: bool,
    /// Where to serve it, on 127.0.0.1; 0 takes any port that is free.
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// How long to wait until it is fetched.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = kymograph::config::duration)]
    timeout: Duration,
    /// Show this part of it first: two times after its beginning, such as 1.5s..2s or 100ms.. .
    #[arg(long, value_name = "A..B", value_parser = part::parse_range)]
    at: Option<(i64, i64)>,
    /// The UI to open it in, if you run your own. Only its pages can read the trace.
    #[arg(long, value_name = "URL", default_value = "https://ui.perfetto.dev")]
    #[arg(value_parser = site::parse_ui)]
    ui: site::Ui,
}

impl Open {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let file = open(&self.trace)?;
        let listener = listen(self.port)?;
        let port = listener.local_addr()?.port();
        let remote = std::env::var("SSH_CONNECTION").ok().filter(|it| !it.is_empty());
        // Where the browser is, the tunnel begins at the port that the UI may fetch from.
        let seen = if remote.is_some() { PORT } else { port };
        let name = self.trace.file_name().unwrap_or_else(|| OsStr::new("trace"));
        let site = Site::new(seen, &self.ui.origin, &secret()?, name);
        let time = self.at.map_or(view::Time::First, |(from, to)| view::Time::After(from, to));
        let link = link(&self.ui.page, &site, &view::parameters(&self.trace, &file, time)?);
        // A closed stdout is no reason to fail.
        let _ = writeln!(io::stdout(), "{link}").and_then(|()| io::stdout().flush());
        if let Some(connection) = remote {
            let tunnel = tunnel(&connection, std::env::var("USER").ok(), PORT, port);
            say(&format!("on your own machine run `{tunnel}`, and open the link there"));
        } else if !self.no_browser && !Audience::can_be_told() {
            say("other users could read the link in a browser's arguments; open it yourself");
        } else if !self.no_browser && !browse(&link) {
            say("there is no browser to open here; open the link yourself");
        }
        if seen != PORT && self.ui.is_default() {
            say(&format!(
                "that UI fetches from port {PORT} only: the link works with a --ui of yours"
            ));
        }
        let size = status::size(file.metadata()?.len());
        say(&format!("serving {} ({size}) once; Ctrl-C to stop", self.trace.display()));
        if serve::once(listener, site, file, self.timeout) {
            say("the UI has it");
            return Ok(ExitCode::SUCCESS);
        }
        say(&format!(
            "no browser fetched it in {} s; run `kymo open` again, or open the file at {} (Open \
             trace file)",
            self.timeout.as_secs(),
            self.ui.origin
        ));
        Ok(ExitCode::FAILURE)
    }
}

fn open(path: &Path) -> Result<File, Failure> {
    let shown = path.display();
    // Without blocking: the writer of a pipe may never come.
    let mut options = File::options();
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.read(true).open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no {shown}; check the path"),
        _ => format!("cannot read {shown}: {error}"),
    })?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(Failure(format!("{shown} is not a file; name a trace")));
    }
    if metadata.len() == 0 {
        return Err(Failure(format!("{shown} is empty: nothing was recorded into it")));
    }
    Ok(file)
}

fn listen(port: u16) -> Result<TcpListener, Failure> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => Failure(format!(
            "port {port} is in use, perhaps by another `kymo open` or by trace_processor: stop \
             that one; on a remote machine, --port 0 takes another"
        )),
        _ => Failure(format!("cannot listen on 127.0.0.1:{port}: {error}")),
    })
}

/// 128 random bits, as text.
fn secret() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    // SAFETY: the kernel writes at most as many bytes as there are.
    let written = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if written != bytes.len() as isize {
        return Err(io::Error::last_os_error());
    }
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Where the UI shows what `site` serves. The part after `#` stays in the browser.
fn link(ui: &str, site: &Site, view: &str) -> String {
    let url = site::escape(site.url().as_bytes(), b":/");
    format!("{ui}/#!/?url={url}&referrer=kymo{view}&enablePlugins={PLUGINS}")
}

/// Whether a browser was asked to show `link`.
fn browse(link: &str) -> bool {
    let seen = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if !seen("DISPLAY") && !seen("WAYLAND_DISPLAY") && !seen("WSL_DISTRO_NAME") {
        return false;
    }
    let mut command = Command::new("xdg-open");
    command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}

/// The command that lets a browser elsewhere reach `port` of this machine, as `here` of its own.
/// `connection` is `SSH_CONNECTION`: the client's address and port, then ours.
fn tunnel(connection: &str, user: Option<String>, here: u16, port: u16) -> String {
    let mut words = connection.split(' ').skip(2);
    let host = words.next().filter(|host| !host.is_empty()).unwrap_or("HOST");
    let at = user.map_or(String::new(), |user| format!("{user}@"));
    let by = match words.next() {
        None | Some("22") => String::new(),
        Some(ssh) => format!(" -p {ssh}"),
    };
    format!("ssh -N -L {here}:127.0.0.1:{port}{by} {at}{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_names_the_trace_and_the_plugins() {
        let site = Site::new(9001, "https://ui.perfetto.dev", "5ec3e7", OsStr::new("a b&c.zst"));
        assert_eq!(
            link("https://ui.perfetto.dev", &site, "&visStart=7"),
            "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/5ec3e7/a%2520b%2526c\
             &referrer=kymo&visStart=7&enablePlugins=dev.perfetto.GpuByProcess,com.meta.GpuCompute"
        );
    }

    #[test]
    fn a_tunnel_leads_to_where_the_user_came_in() {
        let user = || Some("ada".to_owned());
        assert_eq!(
            tunnel("10.0.0.1 5555 10.0.0.2 22", user(), PORT, 9001),
            "ssh -N -L 9001:127.0.0.1:9001 ada@10.0.0.2"
        );
        assert_eq!(
            tunnel("fe80::1 5555 fe80::2 2222", None, PORT, 9002),
            "ssh -N -L 9001:127.0.0.1:9002 -p 2222 fe80::2"
        );
        assert_eq!(tunnel("", user(), PORT, 9001), "ssh -N -L 9001:127.0.0.1:9001 ada@HOST");
    }

    #[test]
    fn secrets_differ() {
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert_eq!(one.len(), 32);
        assert_ne!(one, other);
    }
}
