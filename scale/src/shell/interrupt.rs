//! Ctrl-C while a query runs.

use futures::future::{Either, pending, select};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// How often it is looked whether Ctrl-C was pressed.
const OFTEN: Duration = Duration::from_millis(20);

static PRESSED: AtomicBool = AtomicBool::new(false);

extern "C" fn pressed(_: libc::c_int) {
    PRESSED.store(true, Ordering::Relaxed);
}

/// From now on Ctrl-C does not end the program.
pub fn listen() {
    let handler: extern "C" fn(libc::c_int) = pressed;
    // SAFETY: the handler does nothing but store to an atomic, which may be done in a handler; an
    // action of zeros is one without flags that blocks no other signals.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut());
    }
}

/// What was pressed until now ends nothing that begins later.
pub fn forget() {
    PRESSED.store(false, Ordering::Relaxed);
}

/// Carries out work until it is done, or until Ctrl-C is pressed: then it is dropped where it is,
/// and gives nothing.
pub async fn unless_interrupted<T>(work: impl Future<Output = T>) -> Option<T> {
    let (tell, told) = oneshot::channel();
    let watch = move || {
        while !tell.is_closed() {
            if PRESSED.load(Ordering::Relaxed) {
                // The work may be done meanwhile.
                let _ = tell.send(());
                return;
            }
            std::thread::sleep(OFTEN);
        }
    };
    drop(std::thread::Builder::new().spawn(watch));
    let pressed = async {
        // Without a thread that watches, it is never known.
        if told.await.is_err() {
            pending::<()>().await;
        }
    };
    match select(pin!(work), pin!(pressed)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}
