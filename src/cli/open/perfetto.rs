//! From a place on a page of `kymo view` to the same place in Perfetto's UI.

use super::super::Failure;
use super::site::{Site, Ui};
use super::{PORT, link, listen, open, secret, serve, view};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Serves traces to the UI as `kymo open` does, for as long as the pages are served.
pub(super) struct Perfetto {
    ui: Ui,
    /// Started when it is first needed, since the UI fetches from one port only.
    server: Mutex<Option<(Arc<serve::Server>, u16)>>,
}

impl Perfetto {
    pub(super) fn new(ui: Ui) -> Perfetto {
        Perfetto { ui, server: Mutex::new(None) }
    }

    /// Where the UI shows a trace between two times after its first event.
    pub(super) fn link(&self, path: &Path, from: i64, to: i64) -> Result<String, Failure> {
        let file = open(path)?;
        let parameters = view::parameters(path, &file, view::Time::After(from, to))?;
        let (server, port) = self.server()?;
        let name = path.file_name().unwrap_or_else(|| OsStr::new("trace"));
        let site = Site::new(port, &self.ui.origin, &secret()?, name);
        let link = link(&self.ui.page, &site, &parameters);
        server.add(site, file);
        Ok(link)
    }

    fn server(&self) -> Result<(Arc<serve::Server>, u16), Failure> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((server, port)) = &*server {
            return Ok((Arc::clone(server), *port));
        }
        let listener = listen(if self.ui.is_default() { PORT } else { 0 })?;
        let port = listener.local_addr()?.port();
        let started = Arc::new(serve::Server::new(None));
        let theirs = Arc::clone(&started);
        std::thread::spawn(move || serve::accept(&listener, &theirs, serve::Server::attend));
        *server = Some((Arc::clone(&started), port));
        Ok((started, port))
    }
}
