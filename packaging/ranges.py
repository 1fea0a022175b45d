"""Thirty NVTX ranges without the package nvtx: for machines that have Python alone.

NVTX is a header: a program that includes it loads the library that NVTX_INJECTION64_PATH names,
and has it fill in tables of functions. The same is done here by hand: the tables of NVTX 3's two
core modules, of which two functions are called.
"""

import ctypes
import os

CORE, CORE2 = 1, 5
CALLBACKS = 1
TABLE_SIZE = 32
RANGE_PUSH_A, RANGE_POP = 9, 11

library = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
functions = {module: (ctypes.c_void_p * TABLE_SIZE)() for module in (CORE, CORE2)}
slots = {module: (ctypes.c_void_p * TABLE_SIZE)() for module in functions}
for module, table in functions.items():
    for number in range(1, TABLE_SIZE):
        slots[module][number] = ctypes.addressof(table) + number * ctypes.sizeof(ctypes.c_void_p)


class Callbacks(ctypes.Structure):
    pass


GET_MODULE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint))
GET_TABLE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint)
Callbacks._fields_ = [("size", ctypes.c_size_t), ("get_module", GET_MODULE)]


@GET_MODULE
def get_module(module, table, size):
    if module not in slots:
        return 0
    table[0] = ctypes.addressof(slots[module])
    size[0] = TABLE_SIZE
    return 1


callbacks = Callbacks(ctypes.sizeof(Callbacks), get_module)


@GET_TABLE
def get_table(which):
    return ctypes.addressof(callbacks) if which == CALLBACKS else 0


library.InitializeInjectionNvtx2.argtypes = [GET_TABLE]
assert library.InitializeInjectionNvtx2(get_table) == 1
push = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(functions[CORE][RANGE_PUSH_A])
pop = ctypes.CFUNCTYPE(ctypes.c_int)(functions[CORE][RANGE_POP])
for number in range(30):
    push(b"a step")
    sum(range(10000))
    pop()
