"""A scope is a context manager in each way in which Python uses one."""

import contextlib
import gc
import sys

import pytest

import kymograph as ky


def lasting(name):
    """The scope of a name that has come twice: it lives as long as the process."""
    ky.scope(name)
    return ky.scope(name)


def test_a_scope_keeps_its_methods():
    scope = lasting("keeps its methods")
    assert scope is lasting("keeps its methods")
    assert scope.__enter__ is scope.__enter__ and scope.__exit__ is scope.__exit__
    assert scope.__enter__() is scope and scope.__exit__(None, None, None) is None
    once = ky.scope("comes once")
    assert once.__enter__ is not once.__enter__
    assert once.__enter__() is once and once.__exit__(None, None, None) is None


def test_methods_of_the_class_take_the_scope():
    kind = type(lasting("of the class"))
    scope = lasting("of the class")
    assert kind.__enter__(scope) is scope and kind.__exit__(scope, None, None, None) is None
    for method in (kind.__enter__, kind.__exit__):
        with pytest.raises(TypeError):
            method(object())
    with pytest.raises(TypeError):
        kind.__dict__["__enter__"].__get__(5)()
    assert kind.__dict__["__enter__"].__get__(None, kind) is kind.__enter__


def test_stacks_of_context_managers():
    with contextlib.ExitStack() as stack:
        entered = [stack.enter_context(lasting("in a stack")) for _ in range(3)]
        stack.enter_context(ky.scope("in a stack, once", n=1))
    assert entered == [lasting("in a stack")] * 3
    with pytest.raises(KeyError), lasting("in a stack"):
        raise KeyError


def test_nothing_is_left_behind():
    def work(turn):
        for number in range(500):
            # Names that come twice are kept: these come once.
            name = f"{turn}, number {number}"
            with lasting("again"), ky.scope(name), ky.scope("with", n=number):
                pass

    work(0)
    gc.collect()
    before = sys.getallocatedblocks()
    work(1)
    gc.collect()
    assert sys.getallocatedblocks() - before < 300
