# Runs inside a Python program that starts a thread: tells what its threads are called. Before
# Python 3.14 the system does not know that, and then only the first 15 bytes of it.
#
# It is a guest, as pytorch.py is. names.rs puts `tell` into the globals, and calls `attach`
# while `threading` is imported, or when a thread is about to start, until that returns true.

import _thread
import sys


def like(original, function):
    """Gives a function the face of the one that it stands for."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        try:
            setattr(function, name, getattr(original, name))
        except Exception:
            pass
    return function


def name_of(thread):
    """Not by the property: a subclass may have one of its own, which does anything."""
    name = thread.__dict__.get("_name")
    return name if type(name) is str else ""


def announce(what, id, thread):
    try:
        tell("%s %d %s" % (what, id, name_of(thread)))
    except Exception:
        pass


def follow_starts(Thread, others):
    """The method is one that each new thread runs before its work begins, and has returned by
    then: it is in no traceback of the program."""
    method = "_set_native_id" if hasattr(Thread, "_set_native_id") else "_set_ident"
    original = getattr(Thread, method)

    def started(self):
        original(self)
        if not isinstance(self, others):
            announce("starts", 0, self)

    setattr(Thread, method, like(original, started))


def follow_renames(Thread, Main):
    original = Thread.__dict__.get("name")
    if type(original) is not property or original.fset is None:
        return

    def name(self, value):
        original.fset(self, value)
        ident = self.__dict__.get("_ident")
        # After a fork the thread has another id, and does not know it.
        here = ident == _thread.get_ident() and hasattr(_thread, "get_native_id")
        id = _thread.get_native_id() if here else self.__dict__.get("_native_id")
        # A thread without an id has not started yet, and is announced then.
        if type(id) is int:
            announce("main" if isinstance(self, Main) else "renamed", id, self)

    setter = like(original.fset, name)
    Thread.name = property(original.fget, setter, original.fdel, original.__doc__)


def imported(threading):
    follow_starts(threading.Thread, (threading._MainThread, threading._DummyThread))
    follow_renames(threading.Thread, threading._MainThread)
    main = threading.main_thread()
    id = main.__dict__.get("_native_id")
    if type(id) is int and name_of(main) != "MainThread":
        announce("main", id, main)
    # Those that run already, if this begins late.
    for thread in list(threading._active.values()):
        id = thread.__dict__.get("_native_id")
        if thread is not main and type(id) is int:
            announce("renamed", id, thread)


def attach():
    """Arranges for `imported` to be called; whether there is nothing left to arrange. As in
    pytorch.py, the import system says that a module is complete by a mark on its spec."""
    threading = sys.modules.get("threading")
    if threading is None:
        return False
    spec = threading.__dict__.get("__spec__")
    plain = type(sys.__spec__)
    if type(spec) is not plain or not spec.__dict__.get("_initializing"):
        if hasattr(threading, "_DummyThread"):
            imported(threading)
        return True

    class ModuleSpec(plain):
        @property
        def _initializing(self):
            return self.__dict__.get("_initializing", False)

        @_initializing.setter
        def _initializing(self, value):
            self.__dict__["_initializing"] = value
            if not value:
                self.__class__ = plain
                try:
                    imported(threading)
                except Exception:
                    pass

    ModuleSpec.__module__, ModuleSpec.__qualname__ = plain.__module__, plain.__qualname__
    spec.__class__ = ModuleSpec
    return True
