"""A fake of PyTorch: its global hooks, a toy of its autograd engine, its observer for NVTX, on the stub of CUDA.

Where something here has a name of PyTorch, it is called as PyTorch's is. Nothing is computed but counts.
"""

import ctypes
import itertools
import os
import sys
import threading
import types

__version__ = "0.0-fake"


class _Cuda:
    """The stub of libcuda."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        assert self.library.cuInit(0) == 0
        self.context, self.function = ctypes.c_size_t(), ctypes.c_size_t()
        assert self.library.cuCtxCreate_v2(ctypes.byref(self.context), 0, 0) == 0
        # Of the stub, a module is its function.
        code = b".version 9.5\n.visible .entry gemm()\n{\nret;\n}\n"
        assert self.library.cuModuleLoadData(ctypes.byref(self.function), code) == 0

    def launch(self):
        size = ctypes.c_size_t
        assert self.library.cuLaunchKernel(self.function, 4, 1, 1, 256, 1, 1, 64, size(0), None, None) == 0


class _Nvtx:
    """NVTX as its header does it."""

    def __init__(self):
        path = os.environ.get("NVTX_INJECTION64_PATH")
        self.functions = (ctypes.c_void_p * 16)()
        self._slots = (ctypes.c_void_p * 16)(*(ctypes.addressof(self.functions) + 8 * at for at in range(16)))

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint32))
        def module_table(module, table, length):
            if module != 1:
                return 0
            table[0] = ctypes.addressof(self._slots)
            length[0] = 16
            return 1

        class Callbacks(ctypes.Structure):
            _fields_ = [("size", ctypes.c_size_t), ("module_table", ctypes.c_void_p)]

        callbacks = Callbacks(16, ctypes.cast(module_table, ctypes.c_void_p))

        @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
        def export_table(number):
            return ctypes.addressof(callbacks) if number == 1 else None

        self._kept = (module_table, export_table, callbacks)
        if path:
            attach = ctypes.CDLL(path).InitializeInjectionNvtx2
            attach(export_table)

    def push(self, text):
        if self.functions[9]:
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(self.functions[9])(text.encode())

    def pop(self):
        if self.functions[11]:
            ctypes.CFUNCTYPE(ctypes.c_int)(self.functions[11])()


def _module(name, **members):
    module = types.ModuleType(f"{__name__}.{name}")
    for key, value in members.items():
        setattr(module, key, value)
    sys.modules[module.__name__] = module
    parent, _, last = name.rpartition(".")
    setattr(sys.modules[f"{__name__}.{parent}" if parent else __name__], last, module)
    return module


# CUDA

_state = types.SimpleNamespace(cuda=None, nvtx=None, calls=[], number=itertools.count(1), operator=0, task=-1)


def _initialise():
    if _state.cuda is None:
        _state.cuda, _state.nvtx = _Cuda(), _Nvtx()
        for call in _state.calls:
            call()


def _lazy_call(call):
    if _state.cuda is None:
        _state.calls.append(call)
    else:
        call()


_module(
    "cuda",
    _lazy_call=_lazy_call,
    is_initialized=lambda: _state.cuda is not None,
    init=_initialise,
    synchronize=lambda: _state.cuda.library.cuCtxSynchronize(),
)
_module("cuda.nvtx", range_push=lambda text: _state.nvtx.push(text), range_pop=lambda: _state.nvtx.pop())
_module("compiler", is_compiling=lambda: False)


# Operators, and the observer of them

_observer = threading.local()


def _enable_profiler(config, activities):
    if getattr(_observer, "config", None) is not None:
        raise RuntimeError("Profiler is already enabled on this thread")
    _observer.config = config


def _disable_profiler():
    if getattr(_observer, "config", None) is None:
        raise RuntimeError("Can't disable profiler when it's not running")
    _observer.config = None


class _operator:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        config = getattr(_observer, "config", None)
        self.observed = config is not None and config.state == "NVTX"
        if self.observed:
            _state.operator += 1
            _state.nvtx.push(f"{self.name}, op_id = {_state.operator}")

    def __exit__(self, *_):
        if self.observed:
            _state.nvtx.pop()


_module("autograd")
_module(
    "autograd.profiler",
    _enable_profiler=_enable_profiler,
    _disable_profiler=_disable_profiler,
    ProfilerState=types.SimpleNamespace(NVTX="NVTX", KINETO="KINETO"),
    ProfilerConfig=lambda state, *_: types.SimpleNamespace(state=state),
    _ExperimentalConfig=lambda: None,
)


# Autograd

_sequence = types.SimpleNamespace(next=0)


class _Node:
    def __init__(self, kernels, inputs):
        self._number = _sequence.next
        _sequence.next += 1
        self._hooks = []
        self.kernels = kernels
        self.next_functions = tuple((node, 0) for node in inputs)

    def _sequence_nr(self):
        return self._number

    def register_prehook(self, hook):
        self._hooks.append(hook)


class Tensor:
    def __init__(self, grad_fn=None):
        self.grad_fn = grad_fn

    def backward(self):
        nodes, left = {}, [self.grad_fn]
        while left:
            node = left.pop()
            if node is not None and node._number not in nodes:
                nodes[node._number] = node
                left += [following for following, _ in node.next_functions]
        _state.task, callbacks = _state.task + 1, []
        _engine.callbacks = callbacks

        def run():
            # On a thread of the engine, as for work on a device; the observer comes along.
            _observer.config = config
            _state.cuda.library.cuCtxSetCurrent(_state.cuda.context)
            for number in sorted(nodes, reverse=True):
                with _operator("autograd::engine::evaluate_function: MmBackward0"):
                    for hook in nodes[number]._hooks:
                        assert hook((None,)) is None
                    with _operator("aten::mm"):
                        for _ in range(nodes[number].kernels):
                            _state.cuda.launch()
            for callback in callbacks:
                callback()

        config = getattr(_observer, "config", None)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()


_engine = types.SimpleNamespace(queue_callback=lambda callback: _engine.callbacks.append(callback))
autograd.Variable = types.SimpleNamespace(_execution_engine=_engine)  # noqa: F821


def mm(*inputs, kernels=1, backward=2):
    """Launches kernels, and makes a node that launches others."""
    with _operator("aten::linear"), _operator("aten::mm"):
        for _ in range(kernels):
            _state.cuda.launch()
    return Tensor(_Node(backward, [tensor.grad_fn for tensor in inputs if tensor.grad_fn is not None]))


class _nothing:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def is_grad_enabled():
    return True


_module("_C", DisableTorchFunction=_nothing, _current_graph_task_id=lambda: _state.task)
_module("_C._autograd", _get_sequence_nr=lambda: _sequence.next)
_module("_C._functorch", peek_interpreter_stack=lambda: None)


# Modules

_module("nn")
_module("nn.modules")
_hooks = _module(
    "nn.modules.module",
    _global_forward_pre_hooks={},
    _global_forward_hooks={},
)
_hooks._has_any_global_hook = lambda: bool(_hooks._global_forward_pre_hooks or _hooks._global_forward_hooks)


def _register(hooks, hook):
    handle = types.SimpleNamespace(id=next(_state.number))
    hooks[handle.id] = hook
    return handle


_hooks.register_module_forward_pre_hook = lambda hook: _register(_hooks._global_forward_pre_hooks, hook)
_hooks.register_module_forward_hook = lambda hook, *, always_call=False: _register(_hooks._global_forward_hooks, hook)


class Module:
    def named_modules(self, prefix=""):
        yield prefix, self
        for name, part in vars(self).items():
            parts = enumerate(part) if isinstance(part, list) else [(None, part)]
            for at, inner in parts:
                if isinstance(inner, Module):
                    path = ".".join(str(one) for one in (prefix, name, at) if one not in ("", None))
                    yield from inner.named_modules(path)

    def __call__(self, *arguments):
        result = None
        for hook in _hooks._global_forward_pre_hooks.values():
            assert hook(self, arguments) is None
        try:
            result = self.forward(*arguments)
        finally:
            for hook in _hooks._global_forward_hooks.values():
                assert hook(self, arguments, result) is None
        return result


nn.Module = Module  # noqa: F821
