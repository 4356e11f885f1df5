"""Labels the GPU work of a PyTorch program that sets no labels: by the modules of its models, and by its operators.

`gapscope record --label-modules` and `--label-ops` write this file into the trace's folder, and the sitecustomize beside it imports
it. It does not import torch itself, but acts once the program has imported it. No exception leaves it; a failure is written to the
file `failed`, which the recording session reads.

A module's label is its path in the model (`blocks.3.attn.qkv`), within those of the enclosing modules. In the forward pass,
PyTorch's global module hooks begin and end it. In the backward pass, the engine runs the nodes of a graph in reverse order of their
creation, so a module's nodes are a few stretches of that order, and a hook on the first node of each stretch switches the label.
The hooks do not change what the nodes compute.

Operators are labelled by PyTorch's own observer for NVTX, that of `torch.autograd.profiler.emit_nvtx`, whose ranges
gapscope's library records.
"""

import atexit
import bisect
import collections
import operator
import os
import sys
import threading
import weakref

_MODULES = 0
# The most nodes of one module that are examined.
_MAX_NODES = 4096
# The most walks through one model to find modules that were added later.
_MAX_WALKS = 16
_BACKWARD = b"backward"
# Path components that PyTorch's wrappers add.
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")

_number = operator.itemgetter(0)
_folder = ""


def begin(folder):
    """Installs the labels of GAPSCOPE_LABELS as soon as torch is imported."""
    global _folder
    _folder = folder
    wanted = os.environ.get("GAPSCOPE_LABELS", "").split(",")
    modules, operators = "modules" in wanted, "operators" in wanted
    if not (modules or operators) or not os.environ.get("GAPSCOPE_SPOOL"):
        return
    _leave_file("python")

    def imported(torch):
        try:
            _install(torch, modules, operators)
            _leave_file("torch")
        except Exception as error:
            _failed(error)

    if "torch" in sys.modules:
        imported(sys.modules["torch"])
    else:
        sys.meta_path.insert(0, _Finder(imported))


def _leave_file(name, text=""):
    """Writes a file for the session; the first file of a name stays."""
    try:
        with open(os.path.join(_folder, name), "x") as file:
            file.write(text)
    except OSError:
        pass


def _failed(error):
    _leave_file("failed", f"{type(error).__name__}: {error}"[:300])


def _hooks_of_process():
    """Returns the function `hooks` of `_gapscope_hooks.py` beside this file, whose folder is no longer in the module path."""
    from importlib import util

    spec = util.spec_from_file_location("_gapscope_hooks", os.path.join(_folder, "_gapscope_hooks.py"))
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.hooks


class _Finder:
    """Finds torch as the other finders do, and acts after its import."""

    def __init__(self, imported):
        self._imported = imported

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        try:
            sys.meta_path.remove(self)
        except ValueError:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                try:
                    self._watch(spec.loader)
                except Exception as error:
                    _failed(error)
                return spec
        # torch may become available later.
        sys.meta_path.insert(0, self)
        return None

    def _watch(self, loader):
        def exec_module(module):
            # The loader is restored before anybody sees it.
            del loader.exec_module
            loader.exec_module(module)
            self._imported(module)

        loader.exec_module = exec_module


def _install(torch, modules, operators):
    if operators:
        observer = _Observer(torch)
        observer.install()
    if modules:
        _ModuleLabels(torch, observer.on_this_thread if operators else None).install()
    elif operators:
        # The hook switches the observer on in threads that the program starts.
        _GlobalHooks(torch).pre(lambda module, args: observer.on_this_thread())


class _GlobalHooks:
    """Registers global module hooks that PyTorch does not count as the program's own.

    PyTorch warns about global hooks when a compiled module is called.
    """

    def __init__(self, torch):
        self._module = torch.nn.modules.module
        self._ids = set()
        theirs = getattr(self._module, "_has_any_global_hook", None)
        if theirs is not None:
            self._module._has_any_global_hook = self._has_any_of_others

    def pre(self, hook):
        self._ids.add(self._module.register_module_forward_pre_hook(hook).id)

    def post(self, hook):
        self._ids.add(self._module.register_module_forward_hook(hook, always_call=True).id)

    def _has_any_of_others(self):
        return any(
            hook not in self._ids
            for name in (
                "_global_backward_pre_hooks",
                "_global_backward_hooks",
                "_global_forward_pre_hooks",
                "_global_forward_hooks",
                "_global_forward_hooks_always_called",
                "_global_forward_hooks_with_kwargs",
            )
            for hook in getattr(self._module, name, ())
        )


class _Names:
    """The names of modules: their paths in the first model in which they were seen."""

    def __init__(self):
        # The key is the id and not the module, whose class may define equality.
        self._texts = {}
        self._walks = {}

    def name_of(self, module, root, parent):
        known = self._texts.get(id(module))
        if known is not None:
            return known[1]
        if root is module:
            self._walk(module)
            # The root of a compiled model has the name of the module that was compiled.
            is_compiled = type(module).__name__ == "OptimizedModule"
            inner = getattr(module, "_orig_mod", module) if is_compiled else module
            self._add(module, type(inner).__name__)
        elif self._walks.get(id(root), (None, 0))[1] < _MAX_WALKS:
            self._walk(root)
        known = self._texts.get(id(module))
        if known is None:
            # The module is not a part of the model that calls it.
            self._add(module, f"{parent.decode('utf-8', 'replace')}.{type(module).__name__}")
            known = self._texts[id(module)]
        return known[1]

    def _walk(self, root):
        key = id(root)
        gone, walks = self._walks.get(key) or (weakref.ref(root, lambda _: self._walks.pop(key, None)), 0)
        self._walks[key] = (gone, walks + 1)
        for path, module in root.named_modules():
            if path and id(module) not in self._texts:
                self._add(module, ".".join(part for part in path.split(".") if part not in _WRAPPERS) or path)

    def _add(self, module, text):
        key = id(module)
        gone = weakref.ref(module, lambda _: self._texts.pop(key, None))
        self._texts[key] = (gone, text.replace("\0", "\ufffd").encode("utf-8", "replace")[:1024])


class _Call:
    """A module whose forward pass is running."""

    __slots__ = ("before", "begun", "chain", "children", "module", "pushed", "walked")

    def __init__(self, module, chain, begun, pushed):
        self.module = module
        # The labels, outermost first.
        self.chain = chain
        # The number of the next node of the graph when the module began.
        self.begun = begun
        # The ranges of nodes that the inner modules made.
        self.children = []
        # The nodes that made the inputs of the inner modules, and of the outermost one.
        self.before = []
        # Whether the inputs are not known from the arguments, but only by walking from the module's nodes.
        self.walked = False
        self.pushed = pushed


class _Forward(threading.local):
    """The state of a thread that runs modules."""

    def __init__(self):
        self.calls = []
        self.hooks = ()
        # The number of running modules while there is no hook, and the id of the outermost one.
        self.silent = 0
        self.silent_root = 0
        # The ranges of nodes that the last outermost modules made.
        self.models = collections.deque(maxlen=64)


class _Backward(threading.local):
    """The state of a thread that runs nodes of a backward pass."""

    def __init__(self):
        self.task = None
        self.open = ()
        self.hooks = ()


class _ModuleLabels:
    def __init__(self, torch, on_this_thread):
        self._hooks = _hooks_of_process()
        self._torch = torch
        self._on_this_thread = on_this_thread
        self._names = _Names()
        self._forward = _Forward()
        self._backward = _Backward()
        self._dead = False
        autograd = torch._C._autograd
        self._sequence = getattr(autograd, "_get_sequence_nr", None)
        self._task = getattr(torch._C, "_current_graph_task_id", None)
        self._engine = torch.autograd.Variable._execution_engine
        functorch = getattr(torch._C, "_functorch", None)
        self._transforms = getattr(functorch, "peek_interpreter_stack", None)
        self._no_function = torch._C.DisableTorchFunction

    def install(self):
        compiling = self._torch.compiler.is_compiling
        begin, end = self._begin, self._end

        # Dynamo traces these two functions, and finds no operations in them.
        def before(module, args):
            if compiling():
                return
            begin(module, args)

        def after(module, args, result):
            if compiling():
                return
            end(module, result)

        hooks = _GlobalHooks(self._torch)
        hooks.post(after)
        hooks.pre(before)

    def _begin(self, module, args):
        if self._dead:
            return
        forward = self._forward
        try:
            if not forward.calls:
                if forward.silent and forward.silent_root != id(module):
                    forward.silent += 1
                    return
                if self._on_this_thread is not None:
                    self._on_this_thread()
                forward.hooks = tuple(hook for hook in self._hooks() if hook.push_layer is not None)
                forward.silent = 0 if forward.hooks else 1
                if forward.silent:
                    forward.silent_root = id(module)
                    return
            elif forward.calls[0].module is module:
                # An exception that hooks do not see has ended the last call.
                self._unwind(0)
            calls = forward.calls
            outer = calls[-1] if calls else None
            text = self._names.name_of(module, calls[0].module if calls else module, outer.chain[-1] if outer else b"")
            chain = (*outer.chain, text) if outer else (text,)
            begun = self._next_node()
            pushed = tuple(hook for hook in forward.hooks if hook.push_layer(_MODULES, text, len(text)) == 0)
            call = _Call(module, chain, begun, pushed)
            if begun is not None:
                inputs = self._nodes(args)
                call.walked = not inputs
                (outer or call).before += inputs
            calls.append(call)
        except Exception as error:
            self._die(error)

    def _end(self, module, result):
        if self._dead:
            return
        forward = self._forward
        try:
            if forward.silent:
                forward.silent -= 1
                return
            calls = forward.calls
            at = len(calls) - 1
            while at >= 0 and calls[at].module is not module:
                at -= 1
            if at < 0:
                return
            call = calls[at]
            self._unwind(at)
            if call.begun is None or result is None:
                return
            ended = self._next_node()
            if ended is None or ended <= call.begun:
                return
            starts, before = self._starts_of_stretches(call, result, ended)
            for node in starts:
                node.register_prehook(_LabelSwitch(self, call.chain))
            if calls:
                calls[-1].children.append((call.begun, ended))
                if call.walked:
                    calls[-1].before += before
            else:
                self._leave(forward, call, before, ended)
        except Exception as error:
            self._die(error)

    def _leave(self, forward, call, before, ended):
        """Ends a model: nodes that made its inputs, and belong to no other model, run backward without a label."""
        nodes = {node._sequence_nr(): node for node in (*before, *call.before)}
        latest = max((number for number in nodes if number < call.begun), default=None)
        if latest is not None and not any(first <= latest < last for first, last in forward.models):
            nodes[latest].register_prehook(_LabelSwitch(self, ()))
        forward.models.append((call.begun, ended))

    def _unwind(self, depth):
        """Ends the labels of all calls deeper than `depth`."""
        calls = self._forward.calls
        while len(calls) > depth:
            for hook in calls.pop().pushed:
                hook.pop_layer(_MODULES)

    def _next_node(self):
        """Returns the number of the next graph node on this thread, or None where no graph is made."""
        if self._sequence is None or not self._torch.is_grad_enabled():
            return None
        if self._transforms is not None and self._transforms() is not None:
            return None
        return self._sequence()

    def _nodes(self, values, depth=2):
        """Returns the nodes that made the tensors in some values."""
        found = []
        tensor = self._torch.Tensor
        # Overrides of tensor functions must not see this access.
        with self._no_function():
            left = [(values, depth)]
            while left:
                value, depth = left.pop()
                if isinstance(value, tensor):
                    node = value.grad_fn
                    if node is not None:
                        found.append(node)
                elif depth and type(value) in (tuple, list):
                    left.extend((inner, depth - 1) for inner in value[:64])
                elif depth and isinstance(value, dict):
                    left.extend((inner, depth - 1) for inner in list(dict.values(value))[:64])
        return found

    def _starts_of_stretches(self, call, result, ended):
        """Returns the own nodes of a module before which the backward pass runs nodes of others, and the nodes of others to which
        its own lead. Nodes of inner modules do not count as own."""
        begun, children = call.begun, call.children
        made = self._nodes(result)
        if not children and not call.walked:
            # The node of the result is the first that runs backward.
            made = [(node._sequence_nr(), node) for node in made]
            made = [(number, node) for number, node in made if begun <= number < ended]
            return [max(made, key=_number)[1]] if made else [], []
        own, before = {}, []
        begins = [first for first, _ in children]
        made += call.before
        while made and len(own) < _MAX_NODES:
            node = made.pop()
            number = node._sequence_nr()
            if number < begun:
                before.append(node)
            elif number < ended and number not in own:
                child = bisect.bisect_right(begins, number) - 1
                if child < 0 or number >= children[child][1]:
                    own[number] = node
                    made += [following for following, _ in node.next_functions if following is not None]
        starts = []
        above = ended
        child = len(children) - 1
        for number in sorted(own, reverse=True):
            others_between = above == ended
            while child >= 0 and children[child][0] > number:
                others_between = True
                child -= 1
            if others_between:
                starts.append(own[number])
            above = number
        return starts, before

    def switch(self, chain):
        """Switches the labels of this thread to those of a module in the backward pass."""
        if self._dead:
            return
        try:
            backward = self._backward
            task = self._task() if self._task is not None else -1
            if task != backward.task or task == -1:
                self._move(backward, ())
                backward.hooks = tuple(hook for hook in self._hooks() if hook.push_layer is not None)
                if not backward.hooks:
                    return
                backward.task = task
                self._engine.queue_callback(lambda: self._finish(task))
            self._move(backward, (_BACKWARD, *chain))
        except Exception as error:
            self._die(error)

    def _move(self, backward, chain):
        """Ends and begins labels so that those of `chain` are open."""
        before = backward.open
        common = 0
        while common < len(before) and common < len(chain) and before[common] == chain[common]:
            common += 1
        for hook in backward.hooks:
            for _ in before[common:]:
                hook.pop_layer(_MODULES)
            for text in chain[common:]:
                hook.push_layer(_MODULES, text, len(text))
        backward.open = chain

    def _finish(self, task):
        """Ends the labels of a backward pass, if this thread ran its nodes."""
        try:
            backward = self._backward
            if backward.task == task:
                self._move(backward, ())
                backward.task = None
        except Exception as error:
            self._die(error)

    def _die(self, error):
        """Stops labelling after a failure."""
        self._dead = True
        _failed(error)


class _LabelSwitch:
    """A hook on a node that switches labels and leaves the gradients as they are."""

    __slots__ = ("_chain", "_labels")

    def __init__(self, labels, chain):
        self._labels = labels
        self._chain = chain

    def __call__(self, gradients):
        self._labels.switch(self._chain)


class _Observer:
    """PyTorch's observer of operators for NVTX, which applies to a thread and those that run its backward passes.

    A thread has one profiler at a time, so ours is off while the program has its own.
    """

    def __init__(self, torch):
        self._torch = torch
        profiler = torch.autograd.profiler
        self._profiler = profiler
        self._enable = profiler._enable_profiler
        self._disable = profiler._disable_profiler
        self._state = threading.local()
        self._dead = False

    def install(self):
        self._profiler._enable_profiler = self._theirs_begins
        self._profiler._disable_profiler = self._theirs_ends
        os.register_at_fork(after_in_child=self._off)
        # PyTorch warns about an observer that is left on at the end.
        atexit.register(self._off)
        # The observer starts only when the process uses a GPU.
        self._torch.cuda._lazy_call(self._on)

    def on_this_thread(self):
        if self._torch.cuda.is_initialized():
            self._on()

    def _on(self):
        state = self._state
        if self._dead or getattr(state, "on", False) or getattr(state, "theirs", 0):
            return
        try:
            profiler = self._profiler
            nothing = profiler._ExperimentalConfig()
            config = profiler.ProfilerConfig(profiler.ProfilerState.NVTX, False, False, False, False, False, nothing)
            self._enable(config, set())
            state.on = True
        except Exception as error:
            self._dead = True
            _failed(error)

    def _off(self):
        if getattr(self._state, "on", False):
            self._state.on = False
            try:
                self._disable()
            except Exception as error:
                self._dead = True
                _failed(error)

    def _theirs_begins(self, *arguments, **named):
        self._off()
        try:
            result = self._enable(*arguments, **named)
            self._state.theirs = getattr(self._state, "theirs", 0) + 1
            return result
        finally:
            self.on_this_thread()

    def _theirs_ends(self, *arguments, **named):
        self._off()
        try:
            return self._disable(*arguments, **named)
        finally:
            self._state.theirs = max(getattr(self._state, "theirs", 0) - 1, 0)
            self.on_this_thread()
