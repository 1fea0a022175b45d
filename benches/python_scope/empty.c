/* Context managers that do nothing, as somebody who knows C writes them: what a scope is held
 * against. `Empty(name)` makes an object, as all context managers in C do that are types;
 * `shared(name)` gives away one object, the least that can be called and entered. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct {
    PyObject_HEAD
    PyObject *name;
} Empty;

static PyObject *empty_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *name;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "U", &name)) {
        return NULL;
    }
    Empty *self = (Empty *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->name = Py_NewRef(name);
    }
    return (PyObject *)self;
}

static void empty_dealloc(PyObject *self) {
    Py_XDECREF(((Empty *)self)->name);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *empty_enter(PyObject *self, PyObject *none) {
    (void)none;
    return Py_NewRef(self);
}

static PyObject *empty_exit(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self, (void)args, (void)count;
    Py_RETURN_NONE;
}

static PyMethodDef empty_methods[] = {
    {"__enter__", empty_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))empty_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject empty_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "empty.Empty",
    .tp_basicsize = sizeof(Empty),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = empty_new,
    .tp_dealloc = empty_dealloc,
    .tp_methods = empty_methods,
};

static PyObject *the_one;

static PyObject *shared(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self, (void)args, (void)count;
    return Py_NewRef(the_one);
}

static PyMethodDef functions[] = {
    {"shared", (PyCFunction)(void (*)(void))shared, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "empty", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_empty(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyType_Ready(&empty_type) < 0 ||
        PyModule_AddObjectRef(module, "Empty", (PyObject *)&empty_type) < 0) {
        return NULL;
    }
    the_one = PyObject_CallFunction((PyObject *)&empty_type, "s", "shared");
    return the_one == NULL ? NULL : module;
}
