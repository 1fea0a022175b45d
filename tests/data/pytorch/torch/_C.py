"""The extension module: profiler states of threads."""

import atexit
import os
import threading
import types

from torch import _log

_states = {}


def _enable_profiler(config, activities, scopes=frozenset()):
    """Enables."""
    thread = threading.get_ident()
    if thread in _states:
        raise RuntimeError("Profiler is already enabled on this thread.")
    _log.line("enable %s shapes=%s" % (config.state, config.shapes))
    _states[thread] = config


def _disable_profiler():
    """Disables."""
    config = _states.pop(threading.get_ident(), None)
    if config is None:
        raise RuntimeError("Can't disable Kineto profiler when it's not running")
    _log.line("disable " + config.state)


def _profiler_enabled():
    return threading.get_ident() in _states


@atexit.register
def _leaks():
    # Later than handlers that were registered later.
    if os.getpid() == _pid:
        for config in _states.values():
            _log.line("Leaked callback handle: " + config.state)


_pid = os.getpid()
_autograd = types.SimpleNamespace(
    _enable_profiler=_enable_profiler,
    _disable_profiler=_disable_profiler,
    _profiler_enabled=_profiler_enabled,
)
