# Runs inside a Python program that imports PyTorch: has its operators observed by native code,
# and where that does not know this PyTorch, makes it tell of them through the ranges that
# `torch.autograd.profiler.emit_nvtx` and `emit_itt` also use.
#
# It is a guest: it changes no file and no environment, imports nothing that PyTorch has
# not imported, lets no exception of its own out, and steps aside for the program's own
# use of a profiler. It works from Python 3.8 and PyTorch 1.8 on.
#
# mod.rs puts `tell`, `observe`, `step`, `observer`, `mechanisms`, `shapes`, `daemons` and `steps`
# into the globals, and calls `attach` whenever a part of PyTorch is about to be imported, until that returns true.
#
# emit_nvtx itself is not used: it calls torch.cuda.synchronize(), which initialises CUDA.
# A program that forks or chooses its device afterwards would not survive that.

import sys
from _thread import _local, get_ident


class Guest:
    """Our profiler, in all threads of the process."""

    def __init__(self, profiler, describe, config):
        self.profiler, self.describe, self.config = profiler, describe, config
        self.enable, self.disable = profiler._enable_profiler, profiler._disable_profiler
        self.local = _local()
        self.failed = False

    def here(self):
        return getattr(self.local, "thread", None)

    def start(self):
        """Switches on in this thread, until it ends."""
        if self.here() is None:
            thread = Thread(self)
            thread.resume()
            self.local.thread = thread

    def start_quietly(self, thread):
        """As `start`, at the beginning of a thread."""
        try:
            if thread.daemon and not daemons:
                tell("daemon")
                return
            self.start()
        except Exception as error:
            if not self.failed:
                self.failed = True
                tell("%s; failed in a thread: %s" % (self.describe, first_line(error)))

    def stop(self):
        """Switches off in this thread, for good."""
        thread = self.here()
        if thread is not None:
            self.local.thread = None
            thread.suspend()


class Thread:
    """Our profiler in one thread.

    PyTorch's own state of a thread must be gone when the thread ends: it complains on
    stderr otherwise. The interpreter drops this object, which hangs on the thread, before.
    """

    __slots__ = ("guest", "ident", "on", "yields")

    def __init__(self, guest):
        self.guest, self.ident, self.on, self.yields = guest, get_ident(), False, False

    def resume(self):
        self.guest.enable(self.guest.config, set())
        self.on = True
        if hasattr(self.guest.profiler, "_is_profiler_enabled"):
            # Python code of PyTorch asks this before it announces compiled kernels.
            self.guest.profiler._is_profiler_enabled = True

    def suspend(self):
        if self.on:
            self.on = False
            self.guest.disable()

    def __del__(self):
        # What daemon threads leave is dropped by the main thread.
        if self.ident == get_ident():
            try:
                self.suspend()
            except Exception:
                pass


def first_line(error):
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def like(original, function):
    """Gives a function the face of the one that it stands for."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        try:
            setattr(function, name, getattr(original, name))
        except Exception:
            pass
    return function


def stand_aside(guest, enable, disable):
    """Stand-ins for the functions by which a program uses a profiler itself. There can be
    one in a thread, so ours is switched off while the program has one."""

    def enabling(*args, **kwargs):
        thread = guest.here()
        if thread is None or not thread.on:
            return enable(*args, **kwargs)
        thread.suspend()
        try:
            result = enable(*args, **kwargs)
        except BaseException:
            thread.resume()
            raise
        thread.yields = True
        return result

    def disabling(*args, **kwargs):
        thread = guest.here()
        if thread is None:
            return disable(*args, **kwargs)
        # On: the program has no profiler. It gets the error that it would get without us.
        thread.suspend()
        try:
            result = disable(*args, **kwargs)
            thread.yields = False
            return result
        finally:
            if not thread.yields:
                thread.resume()

    return like(enable, enabling), like(disable, disabling)


def replace(original, new):
    """Puts a stand-in wherever PyTorch or the program looks a function up."""
    modules = ("_C._autograd", "autograd", "autograd.profiler", "autograd.profiler_legacy")
    for name in modules:
        module = sys.modules.get("torch." + name)
        if module is None and name == "_C._autograd":
            module = getattr(sys.modules.get("torch._C"), "_autograd", None)
        if module is not None and getattr(module, original.__name__, None) is original:
            setattr(module, original.__name__, new)


def yield_to_profilers(guest):
    autograd = sys.modules["torch.autograd"]
    for suffix in ("", "_legacy"):
        enable = getattr(autograd, "_enable_profiler" + suffix, None)
        disable = getattr(autograd, "_disable_profiler" + suffix, None)
        if enable is not None and disable is not None:
            enabling, disabling = stand_aside(guest, enable, disable)
            replace(enable, enabling)
            replace(disable, disabling)
    stopped = getattr(guest.profiler, "_run_on_profiler_stop", None)
    if stopped is not None:

        def on_stop():
            stopped()
            thread = guest.here()
            if thread is not None and thread.on:
                guest.profiler._is_profiler_enabled = True

        guest.profiler._run_on_profiler_stop = like(stopped, on_stop)


def follow_threads(guest):
    """Switches on in each thread that is started from now on.

    PyTorch hands its profiler on to the threads of autograd, not to the program's. Daemon
    threads are followed on request only: those that still run when the interpreter ends are
    killed (before Python 3.14) where no Python code can run, and PyTorch would complain.

    The method is one that runs first in a new thread, and has returned when its work begins:
    it is in no traceback of the program.
    """
    threading = sys.modules["threading"]
    original = threading.Thread._set_ident
    others = (threading._MainThread, threading._DummyThread)

    def _set_ident(self):
        original(self)
        if not isinstance(self, others):
            guest.start_quietly(self)

    threading.Thread._set_ident = like(original, _set_ident)


def may_keep():
    """Whether this thread, which has imported PyTorch, is one that is followed."""
    threading = sys.modules["threading"]
    # Not current_thread(): that makes one up for a thread that threading does not know.
    thread = threading._active.get(get_ident())
    if thread is None or isinstance(thread, threading._DummyThread):
        return daemons
    if thread.daemon and not daemons:
        tell("daemon")
    return daemons or not thread.daemon


def configure(profiler, state):
    """What to enable: its constructor has got more parameters over the years.

    With shapes, PyTorch keeps a table of tensors without a lock; threads of autograd for
    several devices share it. That is its bug, and one more reason not to ask by default.
    """
    rest = (shapes, False, False, False, False)
    experimental = getattr(profiler, "_ExperimentalConfig", None)
    if experimental is not None:
        return profiler.ProfilerConfig(state, *rest, experimental())
    for length in (5, 4, 3):
        try:
            return profiler.ProfilerConfig(state, *rest[:length])
        except TypeError:
            pass
    return profiler.ProfilerConfig(state, *rest[:2])


def choose(torch, profiler):
    """The mechanism: NVTX says the most, but only a build for CUDA has it."""
    if "nvtx" in mechanisms and getattr(torch.version, "cuda", None):
        return profiler.ProfilerState.NVTX, "nvtx, with shapes" if shapes else "nvtx"
    if "itt" in mechanisms and hasattr(profiler.ProfilerState, "ITT"):
        return profiler.ProfilerState.ITT, "itt, names only"
    return None, None


class Steps:
    """Iterations, as PyTorch counts them for Kineto: several may say that one has ended (each
    optimizer's step, torch.profiler's step), and who has said so most often is right."""

    def __init__(self):
        self.counts, self.most = {}, 0

    def count(self, who):
        count = self.counts[who] = self.counts.get(who, 0) + 1
        if count > self.most:
            self.most = count
            step(None)


def follow_steps():
    """Has optimizers and torch.profiler say where iterations end. Without a hook for
    optimizers (PyTorch before 2.0) the program has to call kymo_step()."""
    steps = Steps()
    tracker = getattr(sys.modules["torch.autograd.profiler"], "KinetoStepTracker", None)
    original = getattr(tracker, "increment_step", None)
    if original is not None:

        def increment_step(requester):
            result = original(requester)
            steps.count(requester)
            return result

        # For kymograph.profile, whose steps are counted here, too.
        increment_step.counts_for_kymograph = True
        tracker.increment_step = staticmethod(like(original, increment_step))
    optimizer = sys.modules.get("torch.optim.optimizer")
    register = getattr(optimizer, "register_optimizer_step_post_hook", None)
    # With this variable PyTorch adds a hook of its own, which calls the tracker.
    if register is not None and not sys.modules["os"].environ.get("KINETO_USE_DAEMON"):

        def optimizer_step(optimizer, args, kwargs):
            steps.count("Optimizer")

        register(optimizer_step)


def announce_compiled(profiler):
    """Has PyTorch's Python code announce what it compiles, for which it asks whether somebody
    profiles: also after a profile that the program itself takes."""
    if not hasattr(profiler, "_is_profiler_enabled"):
        return
    profiler._is_profiler_enabled = True
    stopped = getattr(profiler, "_run_on_profiler_stop", None)
    if stopped is not None:

        def on_stop():
            stopped()
            profiler._is_profiler_enabled = True

        profiler._run_on_profiler_stop = like(stopped, on_stop)


def begin(torch):
    profiler = sys.modules["torch.autograd.profiler"]
    if observer and observe(torch.__version__):
        announce_compiled(profiler)
        return
    state, describe = choose(torch, profiler)
    if state is None:
        tell("off: this PyTorch has no ranges that are recorded")
        return
    guest = Guest(profiler, describe, configure(profiler, state))
    # Also finds out whether it works at all, which is why a thread that must not keep it
    # starts as well.
    guest.start()
    if not may_keep():
        guest.stop()
    import atexit

    # Of this thread: others are dropped as they end.
    atexit.register(guest.stop)
    yield_to_profilers(guest)
    follow_threads(guest)
    tell("%s; PyTorch %s" % (describe, torch.__version__))


def imported(spec):
    """The import of PyTorch has ended, well or not."""
    torch = sys.modules.get("torch")
    if torch is None or getattr(torch, "__spec__", None) is not spec:
        tell("again")
        return
    try:
        if steps:
            follow_steps()
        begin(torch)
    except Exception as error:
        tell("off: " + first_line(error))


def attach():
    """Arranges for `imported` to be called; whether there is nothing left to arrange.

    The import system takes a mark off the module's spec when it has executed the module
    or given up: that is what we listen for. So neither sys.meta_path nor the loader is
    touched, and no frame of ours is in the traceback of an import that fails.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    # Not by attribute: that would load a module that importlib.util.LazyLoader delays.
    spec = object.__getattribute__(torch, "__dict__").get("__spec__")
    plain = type(sys.__spec__)
    if type(spec) is not plain or not spec.__dict__.get("_initializing"):
        return False

    class ModuleSpec(plain):
        @property
        def _initializing(self):
            return self.__dict__.get("_initializing", False)

        @_initializing.setter
        def _initializing(self, value):
            self.__dict__["_initializing"] = value
            if not value:
                self.__class__ = plain
                imported(self)

    ModuleSpec.__module__, ModuleSpec.__qualname__ = plain.__module__, plain.__qualname__
    spec.__class__ = ModuleSpec
    return True
